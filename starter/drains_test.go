package starter

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// heldNode returns a node whose drain has been blocked since a moment.
func heldNode(name string, since time.Time) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Annotations: map[string]string{karpv1.DrainBlockedAnnotationKey: since.UTC().Format(time.RFC3339)}}}
}

// TestBlockedDrainsAreWokenWhenTheyMayGoOn changes the pods and budgets of nodes whose drains are blocked, and checks
// which drains are woken.
func TestBlockedDrainsAreWokenWhenTheyMayGoOn(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	budget := &plan.DisruptionBudget{Namespace: "team", Name: "web", Selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	e := newEdge(t)
	e.mirror.budgets = []*plan.DisruptionBudget{budget}
	pod := func(name string, change func(*plan.Pod)) *cluster.Pod {
		pod := &plan.Pod{Namespace: "team", Name: name, UID: types.UID(name), Ready: true, Labels: &plan.Labels{Set: map[string]string{"app": "web"}}}
		if change != nil {
			change(pod)
		}
		return &cluster.Pod{Pod: pod}
	}
	e.mirror.nodes = map[string]*corev1.Node{"early": heldNode("early", begin.Add(-time.Hour)), "late": heldNode("late", begin.Add(-time.Minute)),
		"busy": {ObjectMeta: metav1.ObjectMeta{Name: "busy", UID: "uid-busy"}}}
	e.mirror.pods = map[string][]*cluster.Pod{"early": {pod("e1", nil), pod("e2", nil)}, "late": {pod("l1", nil)}, "busy": {pod("b1", nil)}}
	at := time.Duration(0)
	// look is the drains that are woken, and when the next look is due.
	type look struct {
		woken []string
		wait  time.Duration
	}
	step := func(reason string, after time.Duration, want look) {
		t.Helper()
		at += after
		before := len(e.temporal.all)
		got := e.drains.wake(t.Context(), begin.Add(at))
		var woken []string
		for _, sent := range e.temporal.all[before:] {
			if waiter, ok := sent.Fact.(workflows.DrainWaiter); ok && waiter.Wake && waiter.NodeUID != "" {
				woken = append(woken, sent.Workflow)
			}
		}
		if diff := cmp.Diff(want.woken, woken); diff != "" || got != want.wait {
			t.Errorf("%s: look again in %s, want %s; woken (-want +got):\n%s", reason, got, want.wait, diff)
		}
	}
	early, late := "c/drain/early", "c/drain/late"
	step("the budget holds all of them, and they have just looked", 0, look{})
	budget.Allows = 1
	step("one pod may go: who waits longest has it", time.Second, look{woken: []string{early}, wait: takesFor})
	step("and has a while to take it", time.Second, look{wait: takesFor})
	budget.Allows = 0
	e.mirror.pods["early"] = []*cluster.Pod{pod("e1", func(p *plan.Pod) { p.Deletion = begin }), pod("e2", nil)}
	step("it took it", time.Second, look{wait: takesFor})
	e.mirror.pods["early"] = []*cluster.Pod{pod("e2", nil)}
	step("its pod is gone, which may let others go that come after", 10*time.Second, look{woken: []string{early}, wait: takesFor})
	budget.Allows = 2
	step("two may go", 10*time.Second, look{woken: []string{early, late}, wait: takesFor})
	step("something else refuses them: not told again at once", 20*time.Second, look{wait: 40 * time.Second})
	step("but after a minute", 40*time.Second, look{woken: []string{early, late}, wait: takesFor})
	step("and then after two", time.Minute, look{wait: time.Minute})
	budget.Allows = 0
	e.mirror.pods["late"] = []*cluster.Pod{pod("l1", func(p *plan.Pod) { p.DoNotDisrupt = true })}
	step("held again", time.Hour, look{})
	e.mirror.pods["late"] = []*cluster.Pod{pod("l1", nil)}
	e.mirror.budgets = nil
	step("the annotation and the budget are gone", time.Second, look{woken: []string{early, late}, wait: takesFor})
	e.mirror.budgets = []*plan.DisruptionBudget{budget}
	step("a budget holds them again", time.Minute, look{})
	node := e.mirror.nodes["early"]
	claimed := node.DeepCopy()
	claimed.Labels = map[string]string{karpv1.NodePoolLabelKey: "default"}
	closed := claimed.DeepCopy()
	closed.Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	e.mirror.nodes["early"] = closed
	step("a closed node stays closed", time.Second, look{})
	e.mirror.nodes["early"] = claimed
	step("somebody has opened it: its drain closes it", time.Second, look{woken: []string{early}, wait: takesFor})
	step("it is still open: not told again at once", 20*time.Second, look{wait: 40 * time.Second})
	e.mirror.nodes["early"] = closed
	step("closed again", time.Second, look{})
	e.mirror.nodes["early"] = claimed
	step("and opened again", time.Second, look{woken: []string{early}, wait: takesFor})
	e.mirror.nodes["early"] = node
	e.mirror.pods["late"] = []*cluster.Pod{pod("agent", func(p *plan.Pod) { p.Daemon = true })}
	step("nothing is left on one", 10*time.Second, look{woken: []string{late}, wait: takesFor})
	delete(e.mirror.nodes, "late")
	e.mirror.nodes["early"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "early", UID: "uid-early"}}
	step("no drain waits", time.Minute, look{})
	e.drains.tellGone(t.Context(), []cluster.Event{{Kind: cluster.NodeChanged, Name: "early"}, {Kind: cluster.NodeChanged, Name: "late"}, {Kind: cluster.PodsChanged, Name: "late"}})
	if last := e.temporal.all[len(e.temporal.all)-1]; last.Workflow != late || last.Fact != (workflows.DrainWaiter{Gone: true}) {
		t.Errorf("the drain whose node is gone was told last, and not %+v", last)
	}
	if len(e.drains.told) != 0 {
		t.Errorf("%d drains that are over are remembered", len(e.drains.told))
	}
}

// TestADrainThatCouldNotBeWokenIsWokenAgain lets Temporal refuse a signal.
func TestADrainThatCouldNotBeWokenIsWokenAgain(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	now := time.Now()
	e.mirror.nodes = map[string]*corev1.Node{"n": heldNode("n", now)}
	e.mirror.pods = map[string][]*cluster.Pod{"n": {{Pod: &plan.Pod{UID: "p", Labels: &plan.Labels{}}}}}
	e.temporal.refuses = 1
	for range 2 {
		e.drains.wake(t.Context(), now)
	}
	if n := len(slices.DeleteFunc(e.temporal.all, func(s signal) bool { return s.Name != workflows.SignalDrainNotify })); n != 1 {
		t.Errorf("%d signals arrived, want 1", n)
	}
}
