package walk_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
)

// queueName is the queue into which EventBridge puts interruptions.
const queueName = lab.DefaultCluster // the one that deploy/iam lets the worker read

// workerFlags are the flags of both workers.
var workerFlags = []string{"--sweep-interval=10s", "--interruption-queue=" + queueName, "--sweep-most=1"}

// workloads are Deployments in namespaces of their names, which have a NodePool's machines to themselves.
var workloads = []string{"api", "batch", "web"}

// walker walks in a laboratory.
type walker struct {
	*world.World
	guard  *world.Guard
	ledger *world.BudgetLedger
	second *secondWorker
	witness
	// pool and class are the NodePool and the EC2NodeClass in their original state.
	pool  *karpv1.NodePool
	class *awsv1.EC2NodeClass
	// wanted is how many pods each workload should have, story is what has happened.
	wanted map[string]int
	story  []string
	// pending are the delayed actions that are still to come.
	pending sync.WaitGroup
	// heldUntil is until when another controller holds the Lease; zero if none does.
	holding   sync.Mutex
	heldUntil time.Time
}

// enter starts a laboratory with two workers, in which unneeded nodes are removed soon.
func enter(t *testing.T) *walker {
	t.Helper()
	w := &walker{World: world.Start(t, world.Options{Simulator: []string{"--queue=" + queueName}, Worker: workerFlags}), wanted: map[string]int{}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	for _, patch := range []client.Patch{
		client.RawPatch(types.MergePatchType, []byte(`{"spec": {"disruption": {"consolidateAfter": "5s", "budgets": [{"nodes": "50%"}]}}}`)),
		client.RawPatch(types.JSONPatchType, []byte(`[{"op": "test", "path": "/spec/template/spec/requirements/2/key", "value": "karpenter.sh/capacity-type"},
			{"op": "replace", "path": "/spec/template/spec/requirements/2/values", "value": ["spot"]}]`)),
	} {
		if err := w.Patch(t.Context(), pool, patch); err != nil {
			t.Fatal(err)
		}
	}
	w.class = &awsv1.EC2NodeClass{}
	for _, object := range []client.Object{pool, w.class} {
		if err := w.Get(t.Context(), client.ObjectKey{Name: "default"}, object); err != nil {
			t.Fatal(err)
		}
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetFinalizers(nil)
	}
	w.pool = pool
	w.second = startSecond(w.World)
	w.guard, w.ledger = w.Guard(), w.WatchBudgets("")
	w.watchPods()
	t.Cleanup(func() {
		w.pending.Wait()
		w.second.end()
		w.guard.End(t)
	})
	return w
}

// walk takes the steps of a leg and then waits until everything is at rest. It returns what went wrong; empty if nothing
// did.
func (w *walker) walk(way []step) (wrong string) {
	w.story = nil
	for i, s := range way {
		random := rand.New(rand.NewPCG(s.seed, 0)) // a walk must be repeatable
		w.story = append(w.story, fmt.Sprintf("%2d. %s %s", i+1, time.Now().UTC().Format("15:04:05"), deeds[s.deed](w, random)))
		time.Sleep(s.pause)
	}
	w.pending.Wait()
	if wrong := w.rest(); wrong != "" {
		return wrong
	}
	return w.judge()
}

// restore creates the NodePool and the EC2NodeClass again if they are gone. If the class is being deleted, it deletes the
// claims, as the class's owner would.
func (w *walker) restore() error {
	var class awsv1.EC2NodeClass
	err := w.Get(w.Context(), client.ObjectKeyFromObject(w.class), &class)
	switch {
	case apierrors.IsNotFound(err):
		err = w.Create(w.Context(), w.class.DeepCopy())
	case err == nil && !class.DeletionTimestamp.IsZero():
		err = w.DeleteAllOf(w.Context(), &karpv1.NodeClaim{})
	}
	if again := w.Create(w.Context(), w.pool.DeepCopy()); !apierrors.IsAlreadyExists(again) {
		err = errors.Join(err, again)
	}
	return err
}

// later does something after a delay.
func (w *walker) later(after time.Duration, what func()) {
	w.pending.Go(func() {
		time.Sleep(after)
		what()
	})
}

// anyClaim returns some NodeClaim, or nil if there is none or the API server does not answer.
func (w *walker) anyClaim(random *rand.Rand) *karpv1.NodeClaim {
	var list karpv1.NodeClaimList
	if err := w.List(w.Context(), &list); err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[random.IntN(len(list.Items))]
}

// anyNode returns the name of some Node, or an empty string if there is none or the API server does not answer.
func (w *walker) anyNode(random *rand.Rand) string {
	var list corev1.NodeList
	if err := w.List(w.Context(), &list); err != nil || len(list.Items) == 0 {
		return ""
	}
	return list.Items[random.IntN(len(list.Items))].Name
}

// executions returns the ids of workflows; none if Temporal does not answer.
func (w *walker) executions(query string) []string {
	asking, stop := context.WithTimeout(w.Context(), 5*time.Second)
	defer stop()
	list, err := w.Temporal.ListWorkflow(asking, &workflowservice.ListWorkflowExecutionsRequest{Query: query})
	if err != nil {
		return nil
	}
	var ids []string
	for _, execution := range list.GetExecutions() {
		ids = append(ids, execution.GetExecution().GetWorkflowId())
	}
	return ids
}

// leaseName is the Lease that decides who acts.
const leaseName = "karpenter-leader-election"

// hold lets somebody hold the Lease for a while, renewing it, and then releases it. If somebody holds it already, that lasts
// longer.
func (w *walker) hold(holder string, held time.Duration) error {
	w.holding.Lock()
	defer w.holding.Unlock()
	until := time.Now().Add(held)
	if !w.heldUntil.IsZero() {
		if w.heldUntil.Before(until) {
			w.heldUntil = until
		}
		return nil
	}
	take := func(holder string, lasts int32) error {
		var lease coordinationv1.Lease
		if err := w.Get(w.Context(), client.ObjectKey{Namespace: "kube-system", Name: leaseName}, &lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.LeaseDurationSeconds = &holder, &metav1.MicroTime{Time: time.Now()}, &lasts
		return w.Update(w.Context(), &lease)
	}
	err := take(holder, 15)
	w.heldUntil = until
	from, last := time.Now(), time.Now()
	over := func() bool {
		w.holding.Lock()
		defer w.holding.Unlock()
		if time.Now().Before(w.heldUntil) {
			return false
		}
		if err == nil {
			w.stolen(from, last)
		}
		w.release()
		w.heldUntil = time.Time{}
		return true
	}
	w.pending.Go(func() {
		for ; !over(); time.Sleep(time.Second) {
			if take(holder, 15) == nil {
				last = time.Now()
			}
		}
	})
	return err
}

// release releases the Lease if a holder other than Tenon's workers has it.
func (w *walker) release() {
	var lease coordinationv1.Lease
	for range 10 {
		if err := w.Get(w.Context(), client.ObjectKey{Namespace: "kube-system", Name: leaseName}, &lease); err == nil {
			holder := lease.Spec.HolderIdentity
			if holder == nil || *holder == "" || strings.HasPrefix(*holder, "tenon_") {
				return
			}
			lease.Spec.HolderIdentity = new("")
			if w.Update(w.Context(), &lease) == nil {
				return
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// secondWorker is a worker beside the laboratory's own. It is restarted whenever it dies. Its connections to the API server
// and to Temporal can be cut.
type secondWorker struct {
	apiServer, temporal *world.Wire
	// clock is the worker's own clock; nil if it uses this machine's.
	clock *clock

	mu  sync.Mutex
	cmd *exec.Cmd
	// build is the version of Tenon for its next start; empty for the first worker's.
	build   string
	stopped bool
	ended   sync.WaitGroup
}

func startSecond(w *world.World) *secondWorker {
	w.T.Helper()
	config, err := clientcmd.LoadFromFile(filepath.Join(w.Lab.Dir(), "config", "tenon.kubeconfig"))
	if err != nil {
		w.T.Fatal(err)
	}
	s := &secondWorker{apiServer: world.NewWire(w.T, strings.TrimPrefix(w.Lab.APIServerURL(), "https://")), temporal: world.NewWire(w.T, w.Lab.TemporalAddress())}
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + s.apiServer.Address()
	}
	kubeconfig := filepath.Join(w.Lab.Dir(), "config", "second.kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		w.T.Fatal(err)
	}
	if os.Getenv("TENON_WALK_CLOCKS") != "" {
		s.clock = buildWithClock(w.T)
	}
	s.ended.Go(func() {
		for {
			s.mu.Lock()
			if s.stopped {
				s.mu.Unlock()
				return
			}
			s.cmd = w.Command(append([]string{"worker", "--metrics-address=", "--health-probe-address=", "--leader-election-namespace=kube-system", "--identity=second", "--build-id=" + s.build}, workerFlags...)...)
			if s.clock != nil {
				s.cmd.Path = s.clock.program
				s.cmd.Env = append(s.cmd.Env, "WALK_CLOCK="+s.clock.file)
			}
			s.cmd.Env = append(s.cmd.Env, "KUBECONFIG="+kubeconfig, "TEMPORAL_ADDRESS="+s.temporal.Address())
			log, err := os.OpenFile(filepath.Join(w.Lab.Dir(), "logs", "second-worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err == nil {
				s.cmd.Stdout, s.cmd.Stderr = log, log
				err = s.cmd.Start()
			}
			s.mu.Unlock()
			if err == nil {
				_ = s.cmd.Wait()
			}
			_ = log.Close()
			time.Sleep(time.Second)
		}
	})
	return s
}

// kill kills the process, which is then restarted.
func (s *secondWorker) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Kill()
	}
}

// roll stops the process gracefully; it is restarted with another build, or with the first worker's again.
func (s *secondWorker) roll() (build string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.build == "" {
		s.build = "next"
	} else {
		s.build = ""
	}
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGTERM)
	}
	return s.build
}

// end kills the worker for good.
func (s *secondWorker) end() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.kill()
	s.ended.Wait()
}

// workload returns a Deployment; the pods of api need a machine each.
func workload(name string, replicas int) string {
	load := flow.Workload{Namespace: name, Replicas: replicas, Requests: "cpu: 700m, memory: 1Gi"}
	if name == "api" {
		load.Apart = name
	}
	return load.Manifest()
}

// budget returns a PodDisruptionBudget that lets this many pods of a workload be unavailable.
func budget(name string, most int) string {
	return fmt.Sprintf("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: %[1]s, name: app}\nspec: {maxUnavailable: %[2]d, selector: {matchLabels: {app: %[1]s}}}\n", name, most)
}
