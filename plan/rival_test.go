package plan_test

import (
	"slices"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// There is room for the pods of one of two nodes. The node that has just lost pods is the better one to remove.
func TestRivals(t *testing.T) {
	t.Parallel()
	const after = time.Minute
	for _, tc := range []struct {
		reason string
		// since is how long ago a pod last came to or left the better node. born is how long ago its pod was created.
		since, born time.Duration
		after       time.Duration
		want        []string
	}{
		{reason: "the better one is quiet", since: 2 * after, born: time.Hour, after: after, want: []string{"claim-light"}},
		{reason: "it will be in a moment", since: after / 2, born: time.Hour, after: after},
		{reason: "pods still come to it", since: after / 2, born: after / 2, after: after, want: []string{"claim-heavy"}},
		{reason: "it takes too long", since: after, born: time.Hour, after: 10 * time.Minute, want: []string{"claim-heavy"}},
	} {
		in := new(plan.Interner)
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized, tc.after)), Types: smallCatalogue()}}}
		sold := func(n *plan.Node) { n.Zone, n.CapacityType = "us-east-1a", "on-demand" }
		old := func(n *plan.Node) {
			n.LastPodEvent = now.Add(-30 * time.Minute)
			for _, pod := range n.Pods {
				pod.Created = now.Add(-time.Hour)
			}
		}
		heavy := existing("heavy", "m6i.large", sold, running(in, newPod("a"+tc.reason, "600m", "1Gi"), newPod("b"+tc.reason, "600m", "1Gi")), old)
		light := existing("light", "m6i.large", sold, running(in, newPod("c"+tc.reason, "1200m", "1Gi")), old)
		light.LastPodEvent = now.Add(-tc.since)
		light.Pods[0].Created = now.Add(-tc.born)
		// The third one has room for either of the two and is kept by its own pod.
		room := existing("room", "m6i.large", sold, running(in, newPod("d"+tc.reason, "400m", "1Gi", protects("true", 0))), old)
		w.nodes = []*plan.Node{heavy, light, room}
		d := plan.Disrupt(w.input())
		got := []string{}
		for _, command := range d.Commands {
			if len(command.Replacements) == 0 {
				got = append(got, command.Nodes...)
			}
		}
		if !slices.Equal(got, tc.want) && len(got)+len(tc.want) > 0 {
			t.Errorf("%s: %v go, want %v; %+v", tc.reason, got, tc.want, d.Verdicts)
		}
	}
}
