package drain_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// TestDrains runs every kind of drain on one lab, all at once: each has its own node and namespace.
func TestDrains(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Minute)
	t.Cleanup(cancel)
	w := startWorld(ctx, t)
	// Drains wait more than they work, so they run in parallel whatever the number of processors.
	var checks sync.WaitGroup
	for name, check := range map[string]func(context.Context, *testing.T, *world){
		"an empty node costs one activity and one write":           drainEmpty,
		"pods go in order and daemons last":                        drainInOrder,
		"hooks and grace periods are waited for":                   drainWithHooks,
		"a budget is named and its relaxation frees the drain":     drainUnderBudget,
		"two budgets on a pod are both named":                      drainUnderTwoBudgets,
		"a protected pod holds up the drain until it is free":      drainProtected,
		"the deadline deletes what is protected":                   drainByDeadline,
		"what does not end is named at the deadline":               drainPastDeadline,
		"force does not wait":                                      drainByForce,
		"a successor of the same name is not mistaken":             drainReplacedPod,
		"a volume is waited for":                                   drainVolume,
		"a foreign node is cordoned, its daemons stay, and undone": drainForeign,
		"a cordon of somebody else stays":                          drainForeignCordoned,
		"pause, resume and cancel":                                 drainByOrder,
		"a node that vanishes ends the drain":                      drainVanishing,
		"a node of the same name is not touched":                   drainNamesake,
		"the command waits until node and claim are gone":          commandDrainsAndWaits,
		"the command keeps and cancels":                            commandKeepsAndCancels,
		"a pause is answered when evictions have stopped":          commandPauses,
	} {
		checks.Go(func() {
			t.Run(name, func(t *testing.T) { check(ctx, t, w) })
		})
	}
	checks.Wait()
}

func drainEmpty(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "empty")
	run := w.drain(ctx, t, node, "claim-empty", func(in *workflows.DrainInput) { in.Reason = workflows.ReasonEmpty })
	if got := result(ctx, t, run); got.Outcome != workflows.Drained {
		t.Errorf("result %+v", got)
	}
	var types []string
	for _, event := range w.history(ctx, t, run) {
		types = append(types, event.EventType.String())
	}
	if len(types) != 11 {
		t.Errorf("%d history events, want 11: %v", len(types), types)
	}
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	taint := karpv1.DisruptedNoScheduleTaint()
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) ||
		node.Labels[corev1.LabelNodeExcludeBalancers] != karpv1.ExcludeFromLoadBalancersValue || node.Spec.Unschedulable {
		t.Errorf("not cordoned as Karpenter does: taints %v, labels %v, unschedulable %v", node.Spec.Taints, node.Labels, node.Spec.Unschedulable)
	}
	for _, event := range w.events.all() {
		if strings.HasPrefix(event, "empty ") {
			t.Errorf("event %q about an uneventful drain", event)
		}
	}
	w.record(ctx, t, run, "empty")
}

func drainInOrder(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "ordered")
	w.namespace(ctx, t, "ordered")
	slow := w.pod(ctx, t, newPod("ordered", "web", node.Name, annotated("tenon.sh/termination-delay", "4s")))
	w.pod(ctx, t, newPod("ordered", "agent", node.Name, func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "DaemonSet", Name: "agent", UID: "none", Controller: new(true)}}
		pod.Finalizers = nil
	}))
	w.pod(ctx, t, newPod("ordered", "stays", node.Name, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}))
	run := w.drain(ctx, t, node, "claim-ordered", nil)
	// The owner does not exist, so the garbage collector may delete the daemon's pod at any time; only the order of
	// evictions counts.
	got := result(ctx, t, run)
	if got.Outcome != workflows.Drained || got.Evicted < 1 || got.Evicted > 2 {
		t.Errorf("result %+v", got)
	}
	evicted := slices.DeleteFunc(w.events.all(), func(event string) bool { return !strings.Contains(event, "from node ordered:") })
	if !slices.IsSortedFunc(evicted, func(a, b string) int {
		return strings.Compare(b, a) // web before agent
	}) || len(evicted) == 0 || !strings.HasPrefix(evicted[0], slow.Name+" ") {
		t.Errorf("evicted in the order %v", evicted)
	}
	if err := w.Get(ctx, kube.ObjectKey{Namespace: "ordered", Name: "stays"}, &corev1.Pod{}); err != nil {
		t.Errorf("the pod that tolerates everything: %v", err)
	}
}

// drainWithHooks checks that pods get the time of their pre-stop hooks and grace periods: critical pods are evicted when all
// others are gone, not already when the others are terminating.
func drainWithHooks(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "hooks")
	w.namespace(ctx, t, "hooks")
	ends := func(hook, grace int64, class string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.PriorityClassName, pod.Spec.TerminationGracePeriodSeconds = class, &grace
			if hook > 0 {
				pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: hook}}}
			}
		}
	}
	w.pod(ctx, t, newPod("hooks", "patient", node.Name, ends(5, 30, "")))
	w.pod(ctx, t, newPod("hooks", "brief", node.Name, ends(2, 3, "")))
	w.pod(ctx, t, newPod("hooks", "critical", node.Name, ends(0, 30, "system-cluster-critical")))
	told, gone := map[string]time.Time{}, map[string]time.Time{}
	run := w.drain(ctx, t, node, "claim-hooks", nil)
	w.await(ctx, t, "all pods to be gone", func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := w.List(ctx, &pods, kube.InNamespace("hooks")); err != nil {
			return false, err
		}
		there, looked := map[string]bool{}, time.Now()
		for i := range pods.Items {
			pod := &pods.Items[i]
			there[pod.Name] = true
			if _, known := told[pod.Name]; !known && pod.DeletionTimestamp != nil {
				told[pod.Name] = looked
			}
		}
		for _, name := range []string{"patient", "brief", "critical"} {
			if _, known := gone[name]; !known && !there[name] {
				gone[name] = looked
			}
		}
		return len(gone) == 3, nil
	})
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 3 {
		t.Errorf("result %+v, want three pods evicted", got)
	}
	for name, least := range map[string]time.Duration{"patient": 5 * time.Second, "brief": 2 * time.Second} {
		if took := gone[name].Sub(told[name]); took < least {
			t.Errorf("%s was gone %s after it was told, want its hook and grace period played", name, took)
		}
		if told["critical"].Before(gone[name]) {
			t.Errorf("critical was told to go %s before %s was gone", gone[name].Sub(told["critical"]), name)
		}
	}
}

func drainUnderBudget(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "guarded")
	w.namespace(ctx, t, "guarded")
	w.pod(ctx, t, newPod("guarded", "web-0", node.Name))
	w.pod(ctx, t, newPod("guarded", "web-1", node.Name))
	budget := w.budget(ctx, t, "guarded", "web", 2)
	run := w.drain(ctx, t, node, "claim-guarded", func(in *workflows.DrainInput) { in.Delete = true })
	status := w.blocked(ctx, t, run)
	message := "PodDisruptionBudget web needs 2 healthy pods and has 2"
	want := []workflows.Blocker{
		{Pod: "guarded/web-0", Cause: "PodDisruptionBudget", By: "web", Message: message},
		{Pod: "guarded/web-1", Cause: "PodDisruptionBudget", By: "web", Message: message},
	}
	if diff := cmp.Diff(want, status.Blockers); diff != "" || status.Left != 2 {
		t.Errorf("%d left, blockers (-want +got):\n%s", status.Left, diff)
	}
	if !slices.ContainsFunc(w.events.all(), func(e string) bool {
		return strings.HasPrefix(e, "guarded FailedDraining: 2 pods are left") && strings.Contains(e, message)
	}) {
		t.Errorf("no event names the budget: %v", w.events.all())
	}
	if err := w.Delete(ctx, budget); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 2 {
		t.Errorf("result %+v", got)
	}
	if !slices.Contains(w.claims.all(), "claim-guarded") {
		t.Error("the claim was not deleted afterwards")
	}
	if drained := w.status(ctx, t, run); drained.Phase != workflows.PhaseFinished {
		t.Errorf("status afterwards %+v", drained)
	}
	w.record(ctx, t, run, "blocked-then-deleted")
}

func drainUnderTwoBudgets(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "twice")
	w.namespace(ctx, t, "twice")
	w.pod(ctx, t, newPod("twice", "web-0", node.Name))
	w.budget(ctx, t, "twice", "alpha", 1)
	w.budget(ctx, t, "twice", "beta", 1)
	run := w.drain(ctx, t, node, "claim-twice", nil)
	if status := w.blocked(ctx, t, run); len(status.Blockers) != 1 || status.Blockers[0].By != "alpha, beta" {
		t.Errorf("blockers %+v", status.Blockers)
	}
	if _, err := w.order(ctx, run, workflows.UpdateCancel, workflows.DrainOrder{}); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.DrainCanceled || len(got.Blockers) != 1 {
		t.Errorf("result %+v", got)
	}
}

func drainProtected(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "protected")
	w.namespace(ctx, t, "protected")
	pod := w.pod(ctx, t, newPod("protected", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true")))
	run := w.drain(ctx, t, node, "claim-protected", nil)
	want := []workflows.Blocker{{Pod: "protected/batch", Cause: "DoNotDisrupt", By: "karpenter.sh/do-not-disrupt", Message: "carries karpenter.sh/do-not-disrupt"}}
	if diff := cmp.Diff(want, w.blocked(ctx, t, run).Blockers); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	free := pod.DeepCopy()
	free.Annotations = nil
	if err := w.Patch(ctx, free, kube.MergeFrom(pod)); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 1 {
		t.Errorf("result %+v", got)
	}
}

func drainByDeadline(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "deadline")
	w.namespace(ctx, t, "deadline")
	w.pod(ctx, t, newPod("deadline", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true"), func(pod *corev1.Pod) {
		pod.Spec.TerminationGracePeriodSeconds = new(int64(90))
	}))
	w.pod(ctx, t, newPod("deadline", "web", node.Name))
	w.budget(ctx, t, "deadline", "all", 2)
	run := w.drain(ctx, t, node, "claim-deadline", func(in *workflows.DrainInput) { in.Deadline = time.Now().Add(2 * time.Minute) })
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 2 {
		t.Errorf("result %+v", got)
	}
}

func drainPastDeadline(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "late")
	w.namespace(ctx, t, "late")
	w.pod(ctx, t, newPod("late", "hangs", node.Name, unending))
	run := w.drain(ctx, t, node, "claim-late", func(in *workflows.DrainInput) { in.Deadline = time.Now().Add(10 * time.Second) })
	got := result(ctx, t, run)
	if got.Outcome != workflows.DeadlineReached || len(got.Blockers) != 1 || got.Blockers[0].Pod != "late/hangs" || got.Blockers[0].Cause != "Terminating" {
		t.Errorf("result %+v", got)
	}
	w.record(ctx, t, run, "deadline")
}

func drainByForce(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "forced")
	w.namespace(ctx, t, "forced")
	w.pod(ctx, t, newPod("forced", "web-0", node.Name))
	w.budget(ctx, t, "forced", "web", 1)
	run := w.drain(ctx, t, node, "claim-forced", nil)
	w.blocked(ctx, t, run)
	status, err := w.order(ctx, run, workflows.UpdateForce, workflows.DrainOrder{Note: "spot notice"})
	if err != nil || !status.Forced {
		t.Fatalf("force: %v, %+v", err, status)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 1 {
		t.Errorf("result %+v", got)
	}
	w.record(ctx, t, run, "forced")
}

func drainReplacedPod(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "replaced")
	w.namespace(ctx, t, "replaced")
	first := w.pod(ctx, t, newPod("replaced", "db-0", node.Name))
	other := w.node(ctx, t, "replacement")
	w.replaceOnEviction.Store("replaced/db-0", newPod("replaced", "db-0", other.Name))
	run := w.drain(ctx, t, node, "claim-replaced", nil)
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 0 {
		t.Errorf("result %+v", got)
	}
	var successor corev1.Pod
	if err := w.Get(ctx, kube.ObjectKeyFromObject(first), &successor); err != nil {
		t.Fatal(err)
	}
	if successor.UID == first.UID || successor.DeletionTimestamp != nil {
		t.Errorf("the successor on another node was evicted: %v", successor.DeletionTimestamp)
	}
}

func drainVolume(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "attached")
	volume := "data"
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "data-attached"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "ebs.csi.aws.com", NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
	if err := w.Create(ctx, attachment); err != nil {
		t.Fatal(err)
	}
	run := w.drain(ctx, t, node, "claim-attached", nil)
	want := []workflows.Blocker{{Cause: "Volume", By: "data", Message: "volume data is still attached"}}
	if diff := cmp.Diff(want, w.blocked(ctx, t, run).Blockers); diff != "" {
		t.Errorf("blockers (-want +got):\n%s", diff)
	}
	if err := w.Delete(ctx, attachment); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained {
		t.Errorf("result %+v", got)
	}
}

func drainForeign(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "foreign")
	w.namespace(ctx, t, "foreign")
	w.pod(ctx, t, newPod("foreign", "web-0", node.Name))
	w.pod(ctx, t, newPod("foreign", "agent", node.Name, func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
	}))
	w.pod(ctx, t, newPod("foreign", "batch", node.Name, annotated(karpv1.DoNotEvictAnnotationKey, "true")))
	run := w.drain(ctx, t, node, "", nil)
	w.blocked(ctx, t, run)
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if !node.Spec.Unschedulable || node.Labels[corev1.LabelNodeExcludeBalancers] != "" {
		t.Errorf("unschedulable %v, labels %v: want the ordinary cordon", node.Spec.Unschedulable, node.Labels)
	}
	if _, err := w.order(ctx, run, workflows.UpdateCancel, workflows.DrainOrder{}); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.DrainCanceled || got.Evicted != 1 {
		t.Errorf("result %+v", got)
	}
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if node.Spec.Unschedulable || len(node.Annotations["tenon.sh/cordoned"]) > 0 {
		t.Errorf("unschedulable %v, annotations %v after the drain was taken back", node.Spec.Unschedulable, node.Annotations)
	}
	if err := w.Get(ctx, kube.ObjectKey{Namespace: "foreign", Name: "agent"}, &corev1.Pod{}); err != nil {
		t.Errorf("the daemon's pod: %v", err)
	}
	w.record(ctx, t, run, "canceled")
}

func drainForeignCordoned(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "cordoned")
	cordoned := node.DeepCopy()
	cordoned.Spec.Unschedulable = true
	if err := w.Patch(ctx, cordoned, kube.MergeFrom(node)); err != nil {
		t.Fatal(err)
	}
	w.namespace(ctx, t, "cordoned")
	w.pod(ctx, t, newPod("cordoned", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true")))
	run := w.drain(ctx, t, node, "", nil)
	w.blocked(ctx, t, run)
	if _, err := w.order(ctx, run, workflows.UpdateCancel, workflows.DrainOrder{}); err != nil {
		t.Fatal(err)
	}
	result(ctx, t, run)
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if !node.Spec.Unschedulable {
		t.Error("lifted the cordon of somebody else")
	}
}

func drainByOrder(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "ordersgiven")
	w.namespace(ctx, t, "orders")
	w.pod(ctx, t, newPod("orders", "web-0", node.Name))
	budget := w.budget(ctx, t, "orders", "web", 1)
	run := w.drain(ctx, t, node, "claim-orders", nil)
	w.blocked(ctx, t, run)
	if _, err := w.order(ctx, run, workflows.UpdateResume, workflows.DrainOrder{}); err == nil || !strings.Contains(err.Error(), "not paused") {
		t.Errorf("resume of a running drain: %v", err)
	}
	if status, err := w.order(ctx, run, workflows.UpdatePause, workflows.DrainOrder{}); err != nil || status.Phase != workflows.PhasePaused {
		t.Fatalf("pause: %v, %+v", err, status)
	}
	w.await(ctx, t, "the pass has stopped", func(ctx context.Context) (bool, error) {
		described, err := w.temporal.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
		return err == nil && len(described.GetPendingActivities()) == 0, err
	})
	if err := w.Delete(ctx, budget); err != nil {
		t.Fatal(err)
	}
	if _, err := w.order(ctx, run, workflows.UpdateResume, workflows.DrainOrder{}); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.Drained || got.Evicted != 1 {
		t.Errorf("result %+v", got)
	}
	w.record(ctx, t, run, "paused-and-resumed")
}

func drainVanishing(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "vanishing")
	w.namespace(ctx, t, "vanishing")
	w.pod(ctx, t, newPod("vanishing", "batch", node.Name, annotated(karpv1.DoNotDisruptAnnotationKey, "true")))
	run := w.drain(ctx, t, node, "claim-vanishing", nil)
	w.blocked(ctx, t, run)
	if err := w.Delete(ctx, node); err != nil {
		t.Fatal(err)
	}
	if got := result(ctx, t, run); got.Outcome != workflows.NodeGone {
		t.Errorf("result %+v", got)
	}
	w.record(ctx, t, run, "node-gone")
}

func drainNamesake(ctx context.Context, t *testing.T, w *world) {
	node := w.node(ctx, t, "namesake")
	run := w.drain(ctx, t, node, "claim-namesake", func(in *workflows.DrainInput) { in.NodeUID = "of-an-earlier-node" })
	if got := result(ctx, t, run); got.Outcome != workflows.NodeGone {
		t.Errorf("result %+v", got)
	}
	if err := w.Get(ctx, kube.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) > 0 {
		t.Errorf("tainted: %v", node.Spec.Taints)
	}
}
