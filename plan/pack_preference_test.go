package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Preferences hold where possible, and are given up one after another where they are not.
func TestPreferences(t *testing.T) {
	t.Parallel()
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "900m", "1Gi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	twoZones := []*karpv1.NodePool{nodePool("p", requires(zone, corev1.NodeSelectorOpIn, "us-east-1a", "us-east-1b"))}
	pools := func(pools ...*karpv1.NodePool) []*karpv1.NodePool { return pools }
	fussy := func(name string) *karpv1.NodePool {
		return nodePool(name, tainted("fussy", corev1.TaintEffectPreferNoSchedule))
	}
	tests := []relation{
		{name: "node affinity", reason: "a preferred zone is used", pods: web(3, prefers(1, in(zone, "us-east-1c"))), by: zone, want: "c=3"},
		{name: "the heaviest first", reason: "of two preferences for nodes the heavier one holds", pods: web(3, prefers(1, in(zone, "us-east-1c")), prefers(9, in(zone, "us-east-1b"))), by: zone, want: "b=3"},
		{name: "the next heaviest", reason: "a zone that is not there is given up for the next", pods: web(3, prefers(1, in(zone, "us-east-1c")), prefers(9, in(zone, "us-east-1z"))), by: zone, want: "c=3"},
		{name: "nothing of it", reason: "a preference never keeps a pod from a node", pods: web(3, prefers(9, in(zone, "us-east-1z")), selects(zone, "us-east-1b")), by: zone, want: "b=3"},
		{name: "policy Ignore", reason: "preferences are left to the kube-scheduler", policy: plan.PreferencesIgnore, pods: web(3, prefers(9, in(capacityType, "on-demand"))), by: capacityType, want: "spot=3"},
		{name: "policy Respect", reason: "they are held to by default", pods: web(3, prefers(9, in(capacityType, "on-demand"))), by: capacityType, want: "on-demand=3"},
		{name: "required terms in their order", reason: "any term of a required node affinity will do", pods: web(2, needs(in(zone, "us-east-1z"), in(zone, "us-east-1b"))), by: zone, want: "b=2"},
		{name: "ScheduleAnyway", reason: "spread that is only wished for is done", pods: web(6, spreads(zone, 1, anyway)), by: zone, want: "a=2 b=2 c=2"},
		{name: "ScheduleAnyway over nothing", reason: "and given up where no node has the label", pods: web(6, spreads("nowhere", 1, anyway), selects(zone, "us-east-1a")), by: zone, want: "a=6"},
		{name: "ScheduleAnyway ignored", reason: "or not looked at", policy: plan.PreferencesIgnore, pods: web(2, spreads(hostname, 1, anyway)), by: hostname, want: "2"},
		{name: "ScheduleAnyway beside a full zone", reason: "pods that cannot be spread evenly are placed all the same", pods: web(3, spreads(zone, 1, anyway)), pools: twoZones,
			nodes: []*plan.Node{existing("n", "m6i.large", inZone("c"), func(n *plan.Node) { n.Allocatable.CPU = 0 })}, by: zone, want: "a=2 b=1"},
		{name: "preferred affinity", reason: "pods would be near each other, and there is room", pods: web(4, wouldJoin(1, zone, "")), by: zone, want: "a=4"},
		{name: "preferred affinity to nobody", reason: "there is none to be near to", pods: web(4, wouldJoin(1, zone, "db"), selects(zone, "us-east-1b")), by: zone, want: "b=4"},
		{name: "preferred anti-affinity", reason: "pods would be apart, so they are", pods: web(3, wouldAvoid(1, zone, "")), by: zone, want: "a=1 b=1 c=1"},
		{name: "preferred anti-affinity given up", reason: "with more pods than zones, the rest goes anywhere", pods: web(5, wouldAvoid(1, zone, ""), needs(in(zone, "us-east-1a", "us-east-1b")), spreads(zone, 1)), by: zone, want: "a=3 b=2"},
		{name: "affinity goes before anti-affinity", reason: "of two wishes that contradict each other, affinity is given up", pods: web(3, wouldJoin(100, hostname, ""), wouldAvoid(1, hostname, "")), by: hostname, want: "1 1 1"},
		{name: "PreferNoSchedule avoided", reason: "a taint that only asks is heeded while there is another pool, even a dearer one", pods: web(2), pools: pools(fussy("a"), nodePool("b", onDemand())), by: karpv1.NodePoolLabelKey, want: "b=2"},
		{name: "PreferNoSchedule tolerated", reason: "and put up with where there is none", pods: web(2), pools: pools(fussy("a")), by: karpv1.NodePoolLabelKey, want: "a=2"},
		{name: "PreferNoSchedule ignored", reason: "or not looked at", policy: plan.PreferencesIgnore, pods: web(2), pools: pools(fussy("a"), nodePool("b", onDemand())), by: karpv1.NodePoolLabelKey, want: "a=2"},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
