// Package world is the laboratory for the end-to-end tests: a real Kubernetes control plane, a real Temporal server, EC2
// simulated over HTTP, and Tenon's worker as a process that can be killed. Tests act on it as people and clusters do, and
// rely only on what the API server, the Temporal server and the simulated cloud say.
package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	temporal "go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/lab/labtest"
	"github.com/tenon-sh/tenon/worker"
)

// World is a running laboratory.
type World struct {
	T testing.TB
	client.WithWatch
	Temporal temporal.Client
	Lab      *lab.Lab
	options  lab.Options
	// tenon is the path of the production program.
	tenon string
	// Codec has the key that encrypts what Temporal keeps, if any does.
	Codec Codec
}

// Options are the differences that a test wants.
type Options struct {
	// Worker, Simulator and Temporal are further flags of the worker, the simulator and the Temporal server.
	Worker, Simulator, Temporal []string
	// WorkerEnv are further environment variables of the worker, as NAME=VALUE.
	WorkerEnv []string
	// Provider is aws, or kwok (see lab.Options); aws when empty.
	Provider string
	// BootDelay is how long an instance takes to boot; two seconds when zero.
	BootDelay time.Duration
	// SchedulerQPS slows down the kube-scheduler (see lab.Options).
	SchedulerQPS int
	// Reads makes the API server also record what the workers read, for Requests.
	Reads bool
	// Postgres runs Temporal's released server on PostgreSQL (see lab.Options). The environment variable TENON_POSTGRES does so
	// for every test.
	Postgres bool
	// Large reduces the load of thousands of nodes on the machine (see lab.Options).
	Large bool
	// Codec has the worker, the commands and World.Temporal encrypt what Temporal keeps, with the key of World.Codec.
	Codec bool
}

// auditPolicy makes the API server record every write, with its user, and nothing else.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
`

// auditReads makes it record all requests of Tenon's workers, and nothing else.
const auditReads = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  users: [tenon]
- level: None
`

// Start starts a laboratory in its own directory, with the default EC2NodeClass and NodePool, and stops it when the test
// ends. It keeps the logs of a failed test and names their directory.
func Start(t testing.TB, o Options) *World {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, "kubelab")); err != nil {
		t.Fatalf("the laboratory is not built (make lab): %v", err)
	}
	dir, err := os.MkdirTemp("", "tenon-test-") //nolint:usetesting // the logs of a test that has failed are kept
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(dir, "audit-policy.yaml")
	noted := auditPolicy
	if o.Reads {
		noted = auditReads
	}
	if err := os.WriteFile(policy, []byte(noted), 0o600); err != nil {
		t.Fatal(err)
	}
	if o.BootDelay == 0 {
		o.BootDelay = 2 * time.Second
	}
	w := &World{T: t, tenon: labtest.Build(t, dir), options: lab.Options{
		Dir: dir, Bin: bin, TenonLab: labtest.BuildLab(t, dir), BootDelay: o.BootDelay, SchedulerQPS: o.SchedulerQPS, Large: o.Large, Provider: o.Provider,
		Postgres: o.Postgres || os.Getenv("TENON_POSTGRES") != "",
		Args: map[lab.Component][]string{
			lab.APIServer: {"--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit.log"), "--audit-log-maxsize=4096"},
			lab.Worker:    o.Worker, lab.EC2Sim: o.Simulator, lab.Temporal: o.Temporal,
		},
		Env: map[lab.Component][]string{lab.Worker: o.WorkerEnv},
	}}
	if o.Codec {
		w.Codec = newCodec(t, dir)
		o.WorkerEnv = append(o.WorkerEnv, w.Codec.env()...)
		w.options.Env[lab.Worker] = o.WorkerEnv
	}
	if !o.Large { // nobody measures the worker's memory
		w.options.Env[lab.Worker] = append([]string{"GOGC=400"}, o.WorkerEnv...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs of all processes: %s", filepath.Join(dir, "logs"))
			return
		}
		_ = os.RemoveAll(dir)
	})
	w.start()
	t.Cleanup(func() {
		if err := w.Lab.Stop(); err != nil {
			t.Error(err)
		}
		checkWorkerLog(t, filepath.Join(dir, "logs", string(lab.Worker)+".log"))
	})
	return w
}

// start starts or resumes the laboratory and connects to it.
func (w *World) start() {
	w.T.Helper()
	ctx, stop := context.WithTimeout(context.Background(), Patience(2*time.Minute))
	defer stop()
	var err error
	if w.Lab, err = lab.Start(ctx, w.options); err != nil {
		w.T.Fatal(err)
	}
	config, err := w.Lab.RESTConfig()
	if err != nil {
		w.T.Fatal(err)
	}
	config.QPS, config.Burst = 500, 1000
	if w.WithWatch, err = client.NewWithWatch(config, client.Options{Scheme: worker.Scheme()}); err != nil {
		w.T.Fatal(err)
	}
	if w.Temporal, err = temporal.Dial(temporal.Options{HostPort: w.Lab.TemporalAddress(), Logger: silent{},
		ConnectionOptions: temporal.ConnectionOptions{DialOptions: w.Codec.dial(w.T)}}); err != nil {
		w.T.Fatal(err)
	}
}

// CrashAndResume kills every process of the laboratory at once and restarts it from its directory.
func (w *World) CrashAndResume() {
	w.T.Helper()
	w.Temporal.Close()
	if err := w.Lab.Crash(); err != nil {
		w.T.Fatal(err)
	}
	w.start()
}

// Rebuild creates the cluster again under its old name, with only the default EC2NodeClass and NodePool in it. Temporal and
// the cloud stay as they are.
func (w *World) Rebuild() {
	w.T.Helper()
	w.Temporal.Close()
	if err := w.Lab.Crash(); err != nil {
		w.T.Fatal(err)
	}
	if err := w.Lab.ForgetCluster(); err != nil {
		w.T.Fatal(err)
	}
	w.start()
}

// RestartWorker stops the worker gracefully and restarts it with other additional flags.
func (w *World) RestartWorker(flags ...string) {
	w.T.Helper()
	ctx, stop := context.WithTimeout(w.Context(), Patience(2*time.Minute))
	defer stop()
	if err := w.Lab.Reconfigure(ctx, lab.Worker, flags...); err != nil {
		w.T.Fatal(err)
	}
}

// For returns the same laboratory for another test that runs while this one does.
func (w *World) For(t testing.TB) *World {
	other := *w
	other.T = t
	return &other
}

// Context is cancelled when the test ends.
func (w *World) Context() context.Context { return w.T.Context() }

// Await polls until done returns true. It fails the test, with the last state, if that takes longer than the limit, which is
// meant for an otherwise idle machine.
func (w *World) Await(what string, limit time.Duration, done func() (ok bool, state string)) {
	w.T.Helper()
	waiting, began := newPatience(limit), time.Now()
	for {
		ok, state := done()
		if ok {
			return
		}
		if waiting.over() {
			w.T.Fatalf("%s: not within %s: %s; there are %d NodeClaims and %d Nodes", what, limit, state, len(w.Claims()), len(w.Nodes()))
		}
		time.Sleep(pollAgain(time.Since(began)))
	}
}

// pollAgain returns when to poll again after having waited for a while: a wait takes at most a tenth longer than it has to,
// and the tests that wait do not keep the API server busy.
func pollAgain(waited time.Duration) time.Duration {
	return min(max(waited/10, 100*time.Millisecond), 500*time.Millisecond)
}

// Claims returns all NodeClaims.
func (w *World) Claims() []karpv1.NodeClaim {
	w.T.Helper()
	var list karpv1.NodeClaimList
	if err := w.List(w.Context(), &list); err != nil {
		w.T.Fatalf("list NodeClaims: %v", err)
	}
	return list.Items
}

// Nodes returns all Nodes.
func (w *World) Nodes() []corev1.Node {
	w.T.Helper()
	var list corev1.NodeList
	if err := w.List(w.Context(), &list); err != nil {
		w.T.Fatalf("list Nodes: %v", err)
	}
	return list.Items
}

// Pods returns the pods of a namespace.
func (w *World) Pods(namespace string) []corev1.Pod {
	w.T.Helper()
	var list corev1.PodList
	if err := w.List(w.Context(), &list, client.InNamespace(namespace)); err != nil {
		w.T.Fatalf("list pods: %v", err)
	}
	return list.Items
}

// AwaitRunning waits until exactly this many pods of a namespace run.
func (w *World) AwaitRunning(namespace string, want int, limit time.Duration) {
	w.T.Helper()
	w.Await(fmt.Sprintf("%d pods of %s Running", want, namespace), limit, func() (bool, string) {
		running := 0
		for _, pod := range w.Pods(namespace) {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp.IsZero() {
				running++
			}
		}
		return running == want, fmt.Sprintf("%d run", running)
	})
}

// AwaitNoPods waits until no pod of a namespace is left.
func (w *World) AwaitNoPods(namespace string, limit time.Duration) {
	w.T.Helper()
	w.Await("pods of "+namespace+" gone", limit, func() (bool, string) {
		left := len(w.Pods(namespace))
		return left == 0, fmt.Sprintf("%d are left", left)
	})
}

// AwaitNothing waits until no claim, node or living instance is left.
func (w *World) AwaitNothing(limit time.Duration) {
	w.T.Helper()
	w.Await("everything gone", limit, func() (bool, string) {
		if len(w.Claims())+len(w.Nodes()) > 0 {
			return false, "Tenon has not removed all of them"
		}
		living := len(w.Living())
		return living == 0, fmt.Sprintf("%d instances live", living)
	})
}

// DeletePool deletes a NodePool and waits until it is gone.
func (w *World) DeletePool(name string) {
	w.T.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := w.Delete(w.Context(), pool); client.IgnoreNotFound(err) != nil {
		w.T.Fatalf("delete NodePool %s: %v", name, err)
	}
	w.Await("NodePool "+name+" gone", time.Minute, func() (bool, string) {
		err := w.Get(w.Context(), client.ObjectKey{Name: name}, pool)
		return apierrors.IsNotFound(err), "it is still there"
	})
}

// Kubectl runs kubectl as the cluster's administrator would.
func (w *World) Kubectl(args ...string) (string, error) {
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.options.Bin, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.Lab.Kubeconfig())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Instances returns every instance that the simulated cloud remembers, in its true state.
func (w *World) Instances() []ec2sim.Instance {
	w.T.Helper()
	var all []ec2sim.Instance
	w.Sim(http.MethodGet, "/_sim/instances", nil, &all)
	return all
}

// Living returns the instances that exist and have not been terminated.
func (w *World) Living() []ec2sim.Instance {
	w.T.Helper()
	var living []ec2sim.Instance
	for _, instance := range w.Instances() {
		if instance.EndedAt == nil {
			living = append(living, instance)
		}
	}
	return living
}

// Cost returns what the living instances cost, in US dollars per hour.
func (w *World) Cost() ec2sim.Cost {
	w.T.Helper()
	var cost ec2sim.Cost
	w.Sim(http.MethodGet, "/_sim/cost", nil, &cost)
	return cost
}

// Faults sets the faults, replacing the previous ones.
func (w *World) Faults(faults ec2sim.Faults) {
	w.T.Helper()
	w.Sim(http.MethodPut, "/_sim/faults", faults, nil)
}

// Heal ends all faults.
func (w *World) Heal() {
	w.T.Helper()
	w.Sim(http.MethodDelete, "/_sim/faults", nil, nil)
}

// Sim talks to the simulator's control endpoint.
func (w *World) Sim(method, path string, question, answer any) {
	w.T.Helper()
	var body io.Reader
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			w.T.Fatal(err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, w.Lab.EC2SimURL()+path, body)
	if err != nil {
		w.T.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		w.T.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if answer != nil {
		if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
			w.T.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// Tenon runs the tenon command as a person would.
func (w *World) Tenon(args ...string) (string, error) {
	out, err := w.Command(args...).CombinedOutput()
	return string(out), err
}

// Command returns the tenon command, ready to be started, with the environment of the laboratory and none of this machine's
// AWS, Kubernetes and Temporal settings. A worker is that of tenon-lab, which obeys failpoints, and gets a worker's
// permissions in AWS. The command ends with the test.
func (w *World) Command(args ...string) *exec.Cmd {
	program, env := w.tenon, w.Lab.Env()
	if len(args) > 0 && args[0] == "worker" {
		program, env = w.options.TenonLab, w.Lab.WorkerEnv()
	}
	cmd := exec.CommandContext(w.Context(), program, args...)
	cmd.Env = lab.Environ()
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, w.Codec.env()...)
	return cmd
}

// silent keeps the Temporal client's log out of the test's log.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
