package plan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Two nodes may be removed without blocking each other, and one of them has just lost a pod.
func TestShrinkingClusterIsLetShrinkFirst(t *testing.T) {
	t.Parallel()
	const after = time.Minute
	for _, tc := range []struct {
		reason string
		// lost is how long ago the second node lost a pod, and before how long ago a third one did.
		lost, before time.Duration
		want         []string
	}{
		{reason: "the first waits for the second, as the cluster has just begun to shrink", lost: after / 2, before: time.Hour, want: []string{}},
		{reason: "both go once the second is quiet", lost: after, before: time.Hour, want: []string{"claim-quiet", "claim-losing"}},
		{reason: "where pods have been ending for long, nobody waits for them", lost: after / 2, before: 5 * after / 2, want: []string{"claim-quiet"}},
		{reason: "another node lost a pod when the first waits already", lost: after / 2, before: 3 * after / 2, want: []string{}},
	} {
		in := new(plan.Interner)
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, after)), Types: smallCatalogue()}}}
		since := func(ago time.Duration) func(*plan.Node) {
			return func(n *plan.Node) {
				n.Zone, n.CapacityType, n.LastPodEvent, n.InitializedAt = "us-east-1a", "on-demand", now.Add(-ago), now.Add(-2*time.Hour)
				for _, pod := range n.Pods {
					pod.Created, pod.Started = now.Add(-time.Hour), now.Add(-time.Hour)
				}
			}
		}
		small := func(name string) func(*plan.Node) { return running(in, newPod(name+tc.reason, "100m", "128Mi")) }
		kept := func(name string) func(*plan.Node) {
			return running(in, newPod(name+tc.reason, "400m", "1Gi", protects("true", 0)))
		}
		w.nodes = []*plan.Node{
			existing("quiet", "m6i.large", small("a"), since(30*time.Minute)),
			existing("losing", "m6i.large", small("b"), since(tc.lost)),
			existing("third", "m6i.large", kept("c"), since(tc.before)),
		}
		d := plan.Disrupt(w.input())
		got := []string{}
		for _, command := range d.Commands {
			got = append(got, command.Nodes...)
		}
		slices.Sort(got)
		slices.Sort(tc.want)
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v go, want %v; %s", tc.reason, got, tc.want, fmt.Sprint(d.Verdicts))
		}
		if len(got) == 0 && d.NextLook.IsZero() {
			t.Errorf("%s: nobody looks again", tc.reason)
		}
	}
}
