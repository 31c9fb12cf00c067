package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// relation is a test of pods with rules about each other.
type relation struct {
	name, reason string
	pods         []*corev1.Pod
	nodes        []*plan.Node
	bound        map[string][]*corev1.Pod
	pools        []*karpv1.NodePool
	policy       plan.PreferencePolicy
	// by is the label by which planned pods are counted. want is the number in each domain, in the form "a=2 b=1" with
	// zones by their letter. Nodes are listed by their number of pods only: "3 3 1".
	by, want string
	left     int
	why      string
}

func (r relation) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	w := world{pods: r.pods, nodes: r.nodes, bound: r.bound, namespaces: namespaces, policy: r.policy}
	for _, pool := range orDefault(r.pools, []*karpv1.NodePool{nodePool("p")}) {
		w.pools = append(w.pools, plan.Pool{NodePool: pool, Types: smallCatalogue()})
	}
	p := plan.Pack(w.input())
	check(t, &w, p)
	if got := w.population(t, p, r.by); got != r.want {
		t.Errorf("pods by %s: %q, want %q: %s", r.by, got, r.want, r.reason)
	}
	if len(p.Unplaced) != r.left {
		t.Errorf("%d pods are left, want %d: %s", len(p.Unplaced), r.left, r.reason)
	}
	if r.why != "" && len(p.Unplaced) > 0 && !strings.Contains(p.Unplaced[0].Reasons[0].Message, r.why) {
		t.Errorf("reason %q does not say %q", p.Unplaced[0].Reasons[0].Message, r.why)
	}
}

// population counts planned pods by the domains of a label.
func (w *world) population(t *testing.T, p plan.Plan, key string) string {
	t.Helper()
	first := func(int) int { return 0 }
	counts := map[string]int{}
	domain := func(node *corev1.Node) string { return strings.TrimPrefix(node.Labels[key], "us-east-1") }
	for i := range p.Claims {
		counts[domain(w.outcomes(t, &p.Claims[i], fmt.Sprint(i))[0])] += len(p.Claims[i].Pods)
	}
	_, byKey := w.standing(first)
	for _, placement := range p.Placements {
		counts[domain(byKey[placement.Node].node)]++
	}
	var text []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if key == hostname {
			text = append(text, fmt.Sprint(counts[name]))
			continue
		}
		text = append(text, fmt.Sprintf("%s=%d", name, counts[name]))
	}
	if key == hostname {
		slices.Sort(text)
	}
	return strings.Join(text, " ")
}

// runs returns pods that are bound to a node.
func runs(node string, count int, options ...func(*corev1.Pod)) []*corev1.Pod {
	return manyPods(count, "old-"+node, "100m", "64Mi", append(options, func(pod *corev1.Pod) {
		pod.Spec.NodeName = node
		pod.Status.Conditions = nil
	})...)
}

func inZone(letter string) func(*plan.Node) {
	return func(n *plan.Node) {
		n.Zone = "us-east-1" + letter
		n.Labels[zone] = n.Zone
	}
}

// Topology spread, one field at a time.
func TestTopologySpread(t *testing.T) {
	t.Parallel()
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "900m", "1Gi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	full := func(letter string) *plan.Node {
		return existing("n", "m6i.large", inZone(letter), func(n *plan.Node) { n.Allocatable.CPU = 300 })
	}
	slots := nodePool("p", requires("slot", corev1.NodeSelectorOpIn, "1", "2", "3", "4", "5"))
	twoZones := nodePool("p", requires(zone, corev1.NodeSelectorOpIn, "us-east-1a", "us-east-1b"))
	dedicated := nodePool("q", tainted("dedicated"), requires(zone, corev1.NodeSelectorOpIn, "us-east-1c"))
	tests := []relation{
		{name: "zones", reason: "seven pods over three zones differ by one", pods: web(7, spreads(zone, 1)), by: zone, want: "a=3 b=2 c=2"},
		{name: "existing pods", reason: "two pods that run in zone a count", pods: web(4, spreads(zone, 1)),
			nodes: []*plan.Node{full("a")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"))}, by: zone, want: "b=2 c=2"},
		{name: "pods of others", reason: "pods the selector does not match do not count", pods: web(3, spreads(zone, 1)),
			nodes: []*plan.Node{full("a")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("cart"))}, by: zone, want: "a=1 b=1 c=1"},
		{name: "pods elsewhere", reason: "pods of another namespace do not count", pods: web(3, spreads(zone, 1)),
			nodes: []*plan.Node{full("a")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"), within("shop"))}, by: zone, want: "a=1 b=1 c=1"},
		{name: "skew of two", reason: "a zone with no capacity holds the others to maxSkew", pods: web(6, spreads(zone, 2)), pools: []*karpv1.NodePool{twoZones},
			nodes: []*plan.Node{full("c")}, by: zone, want: "a=2 b=2", left: 2, why: "topology spread over " + zone},
		{name: "minDomains unmet", reason: "with fewer domains than minDomains the least counts as zero", pods: web(5, spreads(zone, 1, minDomains(4))), by: zone, want: "a=1 b=1 c=1", left: 2},
		{name: "minDomains met", reason: "three zones are enough for minDomains of three", pods: web(6, spreads(zone, 1, minDomains(3))), by: zone, want: "a=2 b=2 c=2"},
		{name: "node affinity honored", reason: "zones the pod cannot go to do not count", pods: web(4, needs(in(zone, "us-east-1a", "us-east-1b")), spreads(zone, 1)), by: zone, want: "a=2 b=2"},
		{name: "node affinity ignored", reason: "with Ignore, a node in a zone the pod cannot go to makes a domain that stays empty",
			pods: web(4, needs(in(zone, "us-east-1a", "us-east-1b")), spreads(zone, 1, ignoresAffinity)), nodes: []*plan.Node{full("c")}, by: zone, want: "a=1 b=1", left: 2},
		{name: "taints ignored", reason: "by default a tainted node makes a domain, though the pod may not go there", pods: web(4, spreads(zone, 1)), pools: []*karpv1.NodePool{twoZones},
			nodes: []*plan.Node{existing("n", "m6i.large", inZone("c"), func(n *plan.Node) {
				n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			})}, by: zone, want: "a=1 b=1", left: 2},
		{name: "taints honored", reason: "with Honor the tainted node makes none", pods: web(4, spreads(zone, 1, honorsTaints)), pools: []*karpv1.NodePool{twoZones},
			nodes: []*plan.Node{existing("n", "m6i.large", inZone("c"), func(n *plan.Node) {
				n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			})}, by: zone, want: "a=2 b=2"},
		{name: "nobody goes to the tainted pool", reason: "a pool in a third zone that buys nothing makes no domain", pods: web(4, spreads(zone, 1, honorsTaints)), pools: []*karpv1.NodePool{twoZones, dedicated}, by: zone, want: "a=2 b=2"},
		{name: "matchLabelKeys", reason: "each version is spread by itself", by: zone, want: "a=2 b=2 c=2",
			pods: append(web(3, labeled("version", "1"), spreads(zone, 1, perVersion)), manyPods(3, "new", "900m", "1Gi", app("web"), labeled("version", "2"), spreads(zone, 1, perVersion))...)},
		{name: "matchLabelKeys, old version", reason: "pods of the old version do not count", pods: web(3, labeled("version", "2"), spreads(zone, 1, perVersion)),
			nodes: []*plan.Node{full("a")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"), labeled("version", "1"))}, by: zone, want: "a=1 b=1 c=1"},
		{name: "hosts", reason: "at most maxSkew on one node, as another node is always possible", pods: web(5, spreads(hostname, 2)), by: hostname, want: "1 2 2"},
		{name: "hosts with pods", reason: "a single host is as full as the emptiest, and takes all", pods: web(2, spreads(hostname, 1)), by: hostname, want: "2",
			nodes: []*plan.Node{existing("n", "m6i.4xlarge")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 1, app("web"))}},
		{name: "hosts and zones", reason: "several constraints hold together", pods: web(6, spreads(zone, 1), spreads(hostname, 1)), by: hostname, want: "1 1 1 1 1 1"},
		{name: "capacity type", reason: "half of the pods on spot, half on demand", pods: web(6, spreads(capacityType, 1)), by: capacityType, want: "on-demand=3 spot=3"},
		{name: "open label", reason: "a label the pool leaves open has the domains it lists", pods: web(10, spreads("slot", 1)), pools: []*karpv1.NodePool{slots}, by: "slot", want: "1=2 2=2 3=2 4=2 5=2"},
		{name: "label nobody has", reason: "a node without the label is no node for the pod", pods: web(2, spreads("nowhere", 1)), by: zone, want: "", left: 2},
		{name: "selects everything", reason: "the kube-scheduler counts nothing for an empty selector; the planner holds to it all the same", pods: web(3, spreads(zone, 1, of())), by: zone, want: "a=1 b=1 c=1"},
		{name: "selects others", reason: "pods that are not selected themselves stay where few of the selected are", pods: manyPods(3, "cart", "100m", "64Mi", app("cart"), spreads(zone, 1, of("web"))),
			nodes: []*plan.Node{full("a")}, bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"))}, by: zone, want: "b=3"},
		{name: "terminating pods", reason: "pods that are being deleted do not count", pods: web(3, spreads(zone, 1)), nodes: []*plan.Node{full("a")},
			bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"), func(pod *corev1.Pod) { pod.DeletionTimestamp = &pod.CreationTimestamp })}, by: zone, want: "a=1 b=1 c=1"},
		{name: "pods that move", reason: "pods of a node that goes away are spread anew, and count nowhere else", pods: web(1, spreads(zone, 1)),
			nodes: []*plan.Node{existing("n", "m6i.large", func(n *plan.Node) { n.Deleting = true })},
			bound: map[string][]*corev1.Pod{"claim-n": runs("n", 2, app("web"), spreads(zone, 1))}, by: zone, want: "a=1 b=1 c=1"},
		{name: "a limit", reason: "where a limit ends the buying, what is there still keeps to maxSkew", pods: web(9, spreads(zone, 1)), by: hostname, want: "2 2", left: 5,
			pools: []*karpv1.NodePool{nodePool("p", limit(karpv1.ResourceNodes, "2"), requires("karpenter.k8s.aws/instance-size", corev1.NodeSelectorOpIn, "large"))}},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}
