// Package handover_test hands one cluster back and forth between Karpenter and Tenon: the real Karpenter, as its authors
// release it, on the same API server and the same simulated AWS. Both run all the time; the Lease decides who acts.
//
// The holder of the Lease does everything a controller has to do: nodes are launched and removed, a node that the other has
// launched is drained, and a drain that the other has begun is finished. Meanwhile the other writes nothing, which the API
// server's audit log shows. Pods that nobody asked to move stay where they are all the time.
//
// TENON_HANDOVER sets how long each holds the cluster: `make handover` gives each ten minutes.
package handover_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/migrate"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 1)) }

const (
	queueName = lab.DefaultCluster // the one that deploy/iam lets the worker read
	// eachVariable names the environment variable that sets how long each holds the cluster; minEach is the default, and the
	// least in which the work of a turn can be done.
	eachVariable = "TENON_HANDOVER"
	minEach      = 30 * time.Second
	// adoptedWithin is how long a worker may take to adopt every NodeClaim after it has taken the Lease.
	adoptedWithin = 15 * time.Second
	// takenWithin is how long a Lease may take to change hands if its holder does not release it.
	takenWithin = 40 * time.Second
	// nodesWithin is how long nodes may take to be launched or removed.
	nodesWithin = 2 * time.Minute
)

// story is one cluster and the two controllers that hold it in turn.
type story struct {
	*world.World
	karpenter *world.Karpenter
	holders   *holders
	guard     *world.Guard
	// steady are the pods that have no reason to move, by UID, with the node each runs on.
	steady map[types.UID]string
	// begun is a claim that was deleted in the previous turn and whose pod a budget blocks; nil if there is none.
	begun *karpv1.NodeClaim
}

func TestHandover(t *testing.T) {
	each := minEach
	if text := os.Getenv(eachVariable); text != "" {
		var err error
		if each, err = time.ParseDuration(text); err != nil {
			t.Fatalf("%s: %v", eachVariable, err)
		}
	}
	w := world.Start(t, world.Options{Simulator: []string{"--queue=" + queueName}, Worker: []string{"--interruption-queue=" + queueName}})
	s := &story{World: w, karpenter: w.NewKarpenter(queueName), holders: watchHolders(w), guard: w.Guard(), steady: map[types.UID]string{}}
	began := time.Now()

	// The laboratory starts Tenon first, with nothing to do yet.
	s.awaitHolder(byTenon, takenWithin)
	s.halt()
	s.karpenter.Start()
	s.awaitHolder(byKarpenter, takenWithin)
	s.resume()
	s.Apply(scene)
	s.settle()
	s.surveyed("--check")
	s.turn(byKarpenter, each)

	t.Log("Karpenter is stopped")
	s.karpenter.Stop()
	s.adopted()
	s.karpenter.Start()
	s.turn(byTenon, each)
	s.surveyed("--check", "--back")

	t.Log("Tenon is stopped")
	s.halt()
	s.awaitHolder(byKarpenter, takenWithin)
	s.resume()
	s.turn(byKarpenter, each)

	t.Log("Karpenter is killed")
	s.karpenter.Kill()
	s.adopted()
	s.karpenter.Start()
	s.turn(byTenon, minEach)

	t.Log("Tenon's worker is stopped without knowing it, and wakes up when the Lease is another's")
	s.signal(syscall.SIGSTOP)
	s.awaitHolder(byKarpenter, takenWithin)
	s.signal(syscall.SIGCONT)
	s.finish()
	s.unmoved()

	s.guard.End(t)
	if unclaimed := s.guard.Unclaimed(); len(unclaimed) > 0 {
		t.Errorf("instances were launched that no claim ever had: %v", unclaimed)
	}
	s.checkWrites(map[controller]string{byKarpenter: world.KarpenterUser, byTenon: "tenon"}, began)
}

// turn is one controller's time with the cluster: it finishes what the other has begun, and begins what the other will have
// to finish.
func (s *story) turn(who controller, each time.Duration) {
	s.T.Helper()
	began := time.Now()
	until := began.Add(each)
	s.observes(who == byKarpenter)
	s.finish()
	s.scaleDown()
	s.drain(who)
	s.T.Logf("%s has done everything after %s", who, time.Since(began).Round(100*time.Millisecond))
	for time.Now().Add(each / 4).Before(until) {
		time.Sleep(each / 8)
		s.scaleUp()
		s.scaleDown()
	}
	time.Sleep(time.Until(until))
	s.unmoved()
	s.begin()
	if now := s.holders.now(); now.who != who {
		s.T.Errorf("%q holds the Lease in %s's turn", now.who, who)
	}
	s.guard.Check(s.T)
}

// surveyed checks that tenon migrate counts what the other controller will continue with, and refuses nothing.
func (s *story) surveyed(args ...string) {
	s.T.Helper()
	out, err := s.Tenon(append(append([]string{"migrate"}, args...), "-o", "json")...)
	if err != nil {
		s.T.Fatalf("tenon migrate %v: %v\n%s", args, err, out)
	}
	var report migrate.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		s.T.Fatalf("%v:\n%s", err, out)
	}
	if claims := len(s.Claims()); report.NodeClaims != claims || report.NodePools == 0 || report.NodeClasses == 0 || report.Holder == "" {
		s.T.Errorf("tenon migrate %v: %+v; there are %d NodeClaims", args, report, claims)
	}
	s.T.Logf("tenon migrate %v: %+v", args, report)
}

// observes waits until Tenon's worker reports that it only observes, or that it acts.
func (s *story) observes(want bool) {
	s.T.Helper()
	line := map[bool]string{true: "tenon_acting 0", false: "tenon_acting 1"}[want]
	s.Await("the worker to say "+line, adoptedWithin, func() (bool, string) {
		response, err := http.Get(s.Lab.WorkerMetricsURL() + "/metrics")
		if err != nil {
			return false, err.Error()
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(response.Body)
		return err == nil && slices.Contains(strings.Split(string(text), "\n"), line), fmt.Sprint(err)
	})
}

// adopted waits until Tenon holds the Lease and every NodeClaim has its workflow.
func (s *story) adopted() {
	s.T.Helper()
	since := s.awaitHolder(byTenon, takenWithin)
	claims := s.Claims()
	s.Await("every NodeClaim to have its workflow", nodesWithin, func() (bool, string) {
		for i := range claims {
			if !s.lives(&claims[i]) {
				return false, fmt.Sprintf("NodeClaim %s has none %s after the Lease was taken", claims[i].Name, time.Since(since).Round(time.Second))
			}
		}
		return true, ""
	})
	took := time.Since(since)
	s.T.Logf("Tenon has adopted %d NodeClaims within %s of taking the Lease", len(claims), took.Round(10*time.Millisecond))
	if took > world.Patience(adoptedWithin) {
		s.T.Errorf("adoption took %s, want at most %s", took, adoptedWithin)
	}
}

// lives reports whether a claim's workflow runs, or the claim is gone by now.
func (s *story) lives(claim *karpv1.NodeClaim) bool {
	id := workflows.Cluster(s.Lab.Cluster()).NodeClaimID(claim.Name)
	described, err := s.Temporal.DescribeWorkflowExecution(s.Context(), id, "")
	if err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return true
	}
	var now karpv1.NodeClaim
	return client.IgnoreNotFound(s.Get(s.Context(), client.ObjectKeyFromObject(claim), &now)) == nil && now.UID != claim.UID
}

// halt stops Tenon's worker gracefully; resume starts it again.
func (s *story) halt() {
	s.T.Helper()
	if err := s.Lab.Halt(lab.Worker); err != nil {
		s.T.Fatal(err)
	}
}

func (s *story) resume() {
	s.T.Helper()
	if err := s.Lab.Resume(s.Context(), lab.Worker); err != nil {
		s.T.Fatal(err)
	}
}

func (s *story) signal(signal syscall.Signal) {
	s.T.Helper()
	if err := s.Lab.Kill(lab.Worker, signal); err != nil {
		s.T.Fatal(err)
	}
}

// settle waits for the first pods and records those that have to stay.
func (s *story) settle() {
	s.T.Helper()
	s.AwaitRunning("steady", steadyPods, nodesWithin)
	s.AwaitRunning("wave", wavePods, nodesWithin)
	s.AwaitRunning("held", 1, nodesWithin)
	for _, pod := range s.Pods("steady") {
		s.steady[pod.UID] = pod.Spec.NodeName
	}
}

// unmoved fails unless all steady pods still run on their nodes, unchanged, and no claim is to be replaced.
func (s *story) unmoved() {
	s.T.Helper()
	left := len(s.steady)
	for _, pod := range s.Pods("steady") {
		node, known := s.steady[pod.UID]
		switch {
		case !known:
			s.T.Errorf("pod %s is new", pod.Name)
			continue
		case pod.Spec.NodeName != node || pod.Status.Phase != corev1.PodRunning || !pod.DeletionTimestamp.IsZero():
			s.T.Errorf("pod %s was running on %s and is %s on %s", pod.Name, node, pod.Status.Phase, pod.Spec.NodeName)
		}
		for _, container := range pod.Status.ContainerStatuses {
			if container.RestartCount > 0 {
				s.T.Errorf("pod %s was restarted", pod.Name)
			}
		}
		left--
	}
	if left > 0 {
		s.T.Errorf("%d of %d steady pods are gone", left, len(s.steady))
	}
	for _, claim := range s.Claims() {
		if drifted := claim.Condition(karpv1.ConditionTypeDrifted); drifted != nil && drifted.Status == metav1.ConditionTrue {
			s.T.Errorf("NodeClaim %s has drifted: %s: %s", claim.Name, drifted.Reason, drifted.Message)
		}
	}
}
