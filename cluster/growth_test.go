package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestGrownCountsNodesThatCameUp brings up nodes for a pod that never runs for long.
func TestGrownCountsNodesThatCameUp(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m := feedable(t, clock)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	up := func(name string) {
		t.Helper()
		claim := testClaim(name, "aws:///"+name)
		must(m.claims.feed.Update(claim))
		m.Promise(name, []types.UID{"uid-a", "uid-b"}, clock.Now())
		must(m.nodes.feed.Update(testNode("node-"+name, "aws:///"+name)))
		claim = claim.DeepCopy()
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now())})
		must(m.claims.feed.Update(claim))
	}
	grown := func(reason, pod string, want int) {
		t.Helper()
		if got := m.Grown(nil)[types.UID(pod)]; got != want {
			t.Errorf("%s: %d nodes came up for %s, want %d", reason, got, pod, want)
		}
	}
	web := ownedBy("ReplicaSet", "web")
	pending := func(name string, change ...func(*corev1.Pod)) {
		must(m.pods.feed.Update(testPod(name, "", append([]func(*corev1.Pod){web, unschedulable}, change...)...)))
	}
	preempted := func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler})
	}
	pending("a")
	pending("b")
	grown("nothing came up", "uid-a", 0)
	up("first")
	grown("it was not bound to it", "uid-a", 1)
	must(m.pods.feed.Update(testPod("b", "node-first", web)))
	grown("it was bound", "uid-b", 0)
	up("second")
	grown("nor to the next", "uid-a", 2)
	grown("who is bound is promised nothing", "uid-b", 0)

	must(m.pods.feed.Update(testPod("b", "node-first", web, preempted)))
	must(m.pods.feed.Delete(testPod("b", "node-first", web, preempted)))
	pending("c")
	grown("it comes in the place of one that was preempted at once", "uid-c", 1)
	pending("d")
	grown("nobody was preempted for it", "uid-d", 0)
	must(m.pods.feed.Update(testPod("d", "node-first", web)))
	clock.Step(time.Hour)
	must(m.pods.feed.Update(testPod("d", "node-first", web, preempted)))
	must(m.pods.feed.Delete(testPod("d", "node-first", web)))
	pending("e")
	grown("its predecessor was served for an hour", "uid-e", 0)

	if got := m.Grown(map[types.UID]int{"uid-e": 2, "uid-gone": 7}); got["uid-e"] != 2 || got["uid-gone"] != 0 {
		t.Errorf("after a restart %v, want what was counted before of pods that wait", got)
	}
	pending("f", func(pod *corev1.Pod) { pod.Status.NominatedNodeName = "node-third" })
	for _, name := range []string{"third"} {
		claim := testClaim(name, "aws:///"+name)
		must(m.claims.feed.Update(claim))
		must(m.nodes.feed.Update(testNode("node-"+name, "aws:///"+name)))
		claim = claim.DeepCopy()
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue})
		must(m.claims.feed.Update(claim))
	}
	grown("another process has planned it, and had it nominated", "uid-f", 1)
}

func TestPlansBreakOnlyPromisesOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := feedable(t, clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)))
	for _, name := range []string{"a", "b", "c"} {
		if err := m.pods.feed.Update(testPod(name, "", unschedulable)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"one", "two"} {
		if err := m.claims.feed.Update(testClaim(name, "")); err != nil {
			t.Fatal(err)
		}
	}
	promised := func(key string) string {
		names := ""
		for _, pod := range m.Promised(key) {
			names += pod.Name
		}
		return names
	}
	until := time.Unix(1_700_000_100, 0)
	m.Promise("one", []types.UID{"uid-a", "uid-b"}, until)
	m.Promise("one", []types.UID{"uid-c"}, until.Add(-time.Minute))
	if got := promised("one"); got != "abc" || !m.Snapshot().Nodes[0].NominatedUntil.Equal(until) {
		t.Errorf("%q are promised until %s, want all that any plan has promised, and as long as the longest", got, m.Snapshot().Nodes[0].NominatedUntil)
	}
	pending := m.Snapshot().Pending
	m.Planned(planOf(pending[0], "two", pending[1]), until)
	if one, two := promised("one"), promised("two"); one != "c" || two != "a" {
		t.Errorf("%q are promised to the first and %q to the second: want the one moved, one given up, and one as before", one, two)
	}
}

// planOf returns a plan that places one pod and leaves another unplaced.
func planOf(placed *plan.Pod, key string, left *plan.Pod) plan.Plan {
	return plan.Plan{Placements: []plan.Placement{{Pod: placed, Node: key}}, Unplaced: []plan.Unplaced{{Pod: left}}}
}
