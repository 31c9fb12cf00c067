package drain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/workflows"
)

// tenon is one call of the command.
type tenon struct {
	out, err string
	code     int
}

// tenon runs the command against the world.
func (w *world) tenon(ctx context.Context, t *testing.T, args ...string) tenon {
	t.Helper()
	cmd := exec.CommandContext(ctx, w.binary, args...)
	cmd.Env = append(os.Environ(), "TENON_CLUSTER="+string(cluster))
	for name, value := range w.env {
		if name != "TENON_CLUSTER" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("tenon %s: %v", strings.Join(args, " "), err)
	}
	return tenon{out: out.String(), err: failed.String(), code: cmd.ProcessState.ExitCode()}
}

func (c tenon) must(t *testing.T, code int, out, err string) {
	t.Helper()
	if c.code != code || !strings.Contains(c.out, out) || !strings.Contains(c.err, err) {
		t.Errorf("exit %d, want %d, with %q on the one and %q on the other:\n%s\n%s", c.code, code, out, err, c.out, c.err)
	}
}

// claim creates the NodeClaim of a node.
func (w *world) claim(ctx context.Context, t *testing.T, name string, node *corev1.Node) {
	t.Helper()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpv1.NodeClaimSpec{
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelArchStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}},
		NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}}}
	if err := w.Create(ctx, claim); err != nil {
		t.Fatal(err)
	}
	running := claim.DeepCopy()
	running.Status.NodeName = node.Name
	if err := w.Status().Patch(ctx, running, kube.MergeFrom(claim)); err != nil {
		t.Fatal(err)
	}
}

func commandDrainsAndWaits(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "commanded")
	w.claim(ctx, t, "commanded-claim", node)
	w.namespace(ctx, t, "commanded")
	w.pod(ctx, t, newPod("commanded", "web-0", node.Name))
	budget := w.budget(ctx, t, "commanded", "web", 1)
	waiting := make(chan tenon, 1)
	go func() { waiting <- w.tenon(ctx, t, "drain", node.Name, "--wait", "--note", "kernel") }()
	run := w.temporal.GetWorkflow(ctx, cluster.DrainID(node.Name), "")
	w.await(ctx, t, "the drain is blocked", func(ctx context.Context) (bool, error) {
		status := w.tenon(ctx, t, "drain", "status", node.Name)
		return strings.Contains(status.out, "PodDisruptionBudget web needs 1 healthy pods and has 1"), nil
	})
	attached := w.tenon(ctx, t, "drain", node.Name)
	attached.must(t, 0, "is being drained already", "")
	if !strings.Contains(attached.out, "Ordered by:") || !strings.Contains(attached.out, lab.AdminUser) {
		t.Errorf("nobody knows who ordered the drain:\n%s", attached.out)
	}
	w.tenon(ctx, t, "drain", node.Name, "--deadline", "3h", "--note", "sooner").must(t, 0, "deadline by "+lab.AdminUser+": sooner", "")
	w.tenon(ctx, t, "drain", "status").must(t, 0, "PodDisruptionBudget web", "")
	w.tenon(ctx, t, "drain", "pause", node.Name, "--note", "incident").must(t, 0, "Paused", "")
	w.tenon(ctx, t, "drain", "pause", "commanded-not").must(t, 1, "", "no drain of node commanded-not is known")
	w.tenon(ctx, t, "drain", "deadline", node.Name, "2h").must(t, 0, "Deadline:", "")
	w.tenon(ctx, t, "drain", "deadline", node.Name, "none").must(t, 0, "none", "")
	w.tenon(ctx, t, "drain", "resume", node.Name).must(t, 0, "Blocked", "")
	if err := w.Delete(ctx, budget); err != nil {
		t.Fatal(err)
	}
	done := <-waiting
	done.must(t, 0, "node commanded and NodeClaim commanded-claim are gone", "")
	if !strings.Contains(done.out, "Blocked: 1 pods on the node\n  commanded/web-0 PodDisruptionBudget web needs 1 healthy pods and has 1") {
		t.Errorf("the progress does not name the budget:\n%s", done.out)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained {
		t.Errorf("result %+v", got)
	}
	w.tenon(ctx, t, "drain", "resume", node.Name).must(t, 1, "", "the drain of commanded has ended: Drained")
	w.tenon(ctx, t, "drain", node.Name).must(t, 1, "", "there is no node commanded")
}

// commandPauses checks that a pause is answered only when evictions have stopped: no activity of the drain is pending by
// then.
func commandPauses(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "pausing")
	w.namespace(ctx, t, "pausing")
	w.pod(ctx, t, newPod("pausing", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true")))
	w.tenon(ctx, t, "drain", node.Name).must(t, 0, "is being drained", "")
	pending := func() int {
		described, err := w.temporal.DescribeWorkflowExecution(ctx, cluster.DrainID(node.Name), "")
		if err != nil {
			t.Fatal(err)
		}
		return len(described.GetPendingActivities())
	}
	w.await(ctx, t, "the first pass", func(context.Context) (bool, error) { return pending() == 1, nil })
	w.tenon(ctx, t, "drain", "pause", node.Name).must(t, 0, "Paused", "")
	if pending() > 0 {
		t.Error("the pause was answered while pods were evicted")
	}
	w.tenon(ctx, t, "drain", "cancel", node.Name).must(t, 0, "", "")
}

func commandKeepsAndCancels(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "kept")
	w.claim(ctx, t, "kept-claim", node)
	w.tenon(ctx, t, "drain", node.Name, "--wait", "--keep").must(t, 0, "node kept is drained: 0 pods evicted", "")
	if err := w.Get(ctx, kube.ObjectKey{Name: "kept-claim"}, &karpv1.NodeClaim{}); err != nil {
		t.Errorf("the claim was not kept: %v", err)
	}
	w.tenon(ctx, t, "drain", "cancel", node.Name).must(t, 0, "the node is schedulable again", "")
	disrupted := karpv1.DisruptedNoScheduleTaint()
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.MatchTaint(&disrupted) }) {
		t.Errorf("the node that was kept and given back: taints %v, %v", node.Spec.Taints, err)
	}
	w.namespace(ctx, t, "kept")
	w.pod(ctx, t, newPod("kept", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true")))
	started := w.tenon(ctx, t, "drain", node.Name, "-o", "json")
	var status workflows.DrainStatus
	if err := json.Unmarshal([]byte(started.out), &status); err != nil || status.Claim != "kept-claim" || !status.Delete {
		t.Errorf("started: %v, %+v\n%s", err, status, started.err)
	}
	w.tenon(ctx, t, "drain", "cancel", node.Name).must(t, 0, "Canceling", "")
	w.tenon(ctx, t, "drain", "status", node.Name, "--wait").must(t, 1, "", "the drain of node kept was canceled")
	// A drain that a person terminated in Temporal's UI leaves its node closed, and can still be cancelled.
	w.tenon(ctx, t, "drain", node.Name, "--keep").must(t, 0, "is being drained", "")
	if err := w.temporal.TerminateWorkflow(ctx, cluster.DrainID(node.Name), "", "by a person"); err != nil {
		t.Fatal(err)
	}
	w.tenon(ctx, t, "drain", "cancel", node.Name).must(t, 0, "the node is schedulable again", "")
	w.tenon(ctx, t, "drain", "resume", node.Name).must(t, 1, "", "the drain of kept has ended: terminated")
}
