package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/disrupt"
)

// standing is a node of a test's cluster: its type, capacity type, zone and pods.
type standing struct {
	typ, capacity, zone string
	pods                []*corev1.Pod
	change              func(*plan.Node)
}

func onNode(typ string, pods ...*corev1.Pod) standing {
	return standing{typ: typ, capacity: "on-demand", zone: "us-east-1a", pods: pods}
}

func (s standing) as(capacity, zone string) standing { s.capacity, s.zone = capacity, zone; return s }

func (s standing) but(change func(*plan.Node)) standing { s.change = change; return s }

// townOf makes a cluster of nodes named n1 and so on.
func townOf(pool *karpv1.NodePool, nodes ...standing) *town {
	tn := newTown(&world{pools: []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}})
	for i, s := range nodes {
		name := fmt.Sprintf("n%d", i+1)
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: pool.Name}}}
		n := tn.place(claim, tn.poolOf(pool.Name).typeNamed(s.typ), s.zone, s.capacity, name)
		for _, pod := range s.pods {
			tn.settle(pod, n)
		}
		if s.change != nil {
			s.change(n)
		}
	}
	return tn
}

// describe returns a command in short form: "n1 n2 -> m6i.large spot".
func describe(c *plan.Command) string {
	nodes := slices.Sorted(slices.Values(c.Nodes))
	text := strings.Join(nodes, " ") + " ->"
	for i := range c.Replacements {
		text += " " + c.Replacements[i].InstanceTypes[0] + " " + c.Replacements[i].CapacityType
	}
	return text
}

func TestConsolidation(t *testing.T) {
	t.Parallel()
	small := func(name string, options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(name, "1", "2Gi", options...)
	}
	tiny := func(name string, options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(name, "100m", "128Mi", options...)
	}
	large := func(name string, options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod(name, "3500m", "12Gi", options...)
	}
	amd := requires(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")
	general := requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i")
	unready := func(n *plan.Node) { n.Initialized = false }
	for _, tc := range []struct {
		reason string
		pool   *karpv1.NodePool
		nodes  []standing
		spot   bool
		want   []string
		// says are parts of verdicts, by node.
		says  map[string]string
		cause map[string]plan.Cause
		check func(t *testing.T, c []plan.Command)
	}{
		{reason: "a node whose pods fit on another goes",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", tiny("a")), onNode("m6i.xlarge", large("b"))},
			want:  []string{"n1 ->"}, says: map[string]string{"n2": "pod default/a is to come to it"}, cause: map[string]plan.Cause{"n2": plan.CauseNominated}},
		{reason: "a full node of the cheapest kind stays, and says what is missing",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", large("a")), onNode("m6i.xlarge", large("b"))},
			says:  map[string]string{"n1": "pod default/a would find no room on the other nodes, and the cheapest replacement, m6i.xlarge on-demand at $0.1920 an hour, saves nothing"},
			cause: map[string]plan.Cause{"n1": plan.CausePrice, "n2": plan.CausePrice}},
		{reason: "a node that is too large is replaced by what is enough",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.4xlarge", small("a"))},
			want:  []string{"n1 -> m6i.large on-demand"}},
		{reason: "no type in a replacement costs as much as the node that goes",
			pool:  nodePool("p", onDemand(), amd),
			nodes: []standing{onNode("m6i.xlarge", small("a"))},
			want:  []string{"n1 -> c5.large on-demand"},
			check: func(t *testing.T, c []plan.Command) {
				if types := c[0].Replacements[0].InstanceTypes; !slices.Equal(types, []string{"c5.large", "c6i.large", "m6i.large", "r6i.large", "c5.xlarge", "c6i.xlarge"}) {
					t.Errorf("types %v", types)
				}
			}},
		{reason: "on-demand is replaced by spot where the pool has both, and by nothing else",
			pool:  nodePool("p", general),
			nodes: []standing{onNode("m6i.large", small("a"))},
			want:  []string{"n1 -> m6i.large spot"},
			check: func(t *testing.T, c []plan.Command) {
				for _, r := range c[0].Replacements[0].Requirements {
					if r.Key == karpv1.CapacityTypeLabelKey && !slices.Equal(r.Values, []string{"spot"}) {
						t.Errorf("capacity types %v", r.Values)
					}
				}
			}},
		{reason: "spot is not replaced by spot without the feature gate",
			pool:  nodePool("p", general),
			nodes: []standing{onNode("m6i.4xlarge", small("a")).as("spot", "us-east-1a")},
			says:  map[string]string{"n1": "SpotToSpotConsolidation is off"}, cause: map[string]plan.Cause{"n1": plan.CausePrice}},
		{reason: "spot is replaced by spot where fifteen types are cheaper, and the launch chooses from fifteen", spot: true,
			pool:  nodePool("p"),
			nodes: []standing{onNode("r6i.16xlarge", small("a")).as("spot", "us-east-1a")},
			want:  []string{"n1 -> m6g.large spot"},
			check: func(t *testing.T, c []plan.Command) {
				if n := len(c[0].Replacements[0].InstanceTypes); n != disrupt.SpotChoice {
					t.Errorf("%d types to choose from, want %d", n, disrupt.SpotChoice)
				}
			}},
		{reason: "spot stays where fewer types are cheaper", spot: true,
			pool:  nodePool("p", general),
			nodes: []standing{onNode("m6i.4xlarge", small("a")).as("spot", "us-east-1a")},
			says:  map[string]string{"n1": "only where 15 types are cheaper, and 3 are"}, cause: map[string]plan.Cause{"n1": plan.CausePrice}},
		{reason: "spot goes for on-demand where nothing else is allowed and it is cheaper",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.16xlarge", small("a")).as("spot", "us-east-1a")},
			want:  []string{"n1 -> m6i.large on-demand"}},
		{reason: "a spot node in a dear zone is not replaced by its like in a cheap one", spot: true,
			pool:  nodePool("p", requires(capacityType, corev1.NodeSelectorOpIn, "spot"), requires(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m6i.large")),
			nodes: []standing{onNode("m6i.large", small("a")).as("spot", "us-east-1c")},
			says:  map[string]string{"n1": "saves nothing"}},
		{reason: "two nodes become one that costs less than both",
			pool:  nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i", "r6i")),
			nodes: []standing{onNode("r6i.xlarge", newPod("a", "2100m", "14200Mi")), onNode("r6i.xlarge", newPod("b", "2100m", "14200Mi"))},
			want:  []string{"n1 n2 -> m6i.2xlarge on-demand"}},
		{reason: "three nodes become one where no two would",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", newPod("a", "2100m", "4Gi")), onNode("m6i.xlarge", newPod("b", "2100m", "4Gi")), onNode("m6i.xlarge", newPod("c", "2100m", "4Gi"))},
			want:  []string{"n1 n2 n3 -> m6i.2xlarge on-demand"}},
		{reason: "nodes that are better replaced one by one are",
			pool: nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "r6i", "c6i")),
			nodes: []standing{onNode("r6i.large", newPod("a", "1800m", "2Gi")), onNode("r6i.large", newPod("b", "1800m", "2Gi")),
				onNode("r6i.xlarge", newPod("c", "3700m", "2Gi"))},
			want: []string{"n3 -> c6i.xlarge on-demand", "n1 -> c6i.large on-demand", "n2 -> c6i.large on-demand"}},
		{reason: "zones that pods are bound to are not mixed",
			pool: nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", newPod("a", "2100m", "4Gi", selects(zone, "us-east-1a"))), onNode("m6i.xlarge", newPod("b", "2100m", "4Gi", selects(zone, "us-east-1b"))),
				onNode("m6i.xlarge", newPod("c", "2100m", "4Gi", selects(zone, "us-east-1a")))},
			says: map[string]string{"n1": "saves nothing"}},
		{reason: "nobody moves to a node that is not initialized",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", small("a")), onNode("m6i.xlarge").but(unready)},
			says:  map[string]string{"n1": "pod default/a would go to n2, which is not initialized yet"}, cause: map[string]plan.Cause{"n1": plan.CauseRoom}},
		{reason: "a node whose price is not known goes when its pods fit elsewhere",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.xlarge", tiny("a")).but(func(n *plan.Node) { n.InstanceType = "m4.xlarge" }), onNode("m6i.xlarge", large("b")).but(func(n *plan.Node) { n.DoNotDisrupt = true })},
			want:  []string{"n1 ->"}},
		{reason: "a node whose price is not known is not replaced",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.4xlarge", small("a")).but(func(n *plan.Node) { n.InstanceType = "m4.4xlarge" })},
			says:  map[string]string{"n1": "what it costs is not known"}, cause: map[string]plan.Cause{"n1": plan.CausePrice}},
		{reason: "pods that are apart stay apart",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.large", tiny("a", app("x"), avoids(hostname, ""))), onNode("m6i.large", tiny("b", app("x"), avoids(hostname, "")))},
			says:  map[string]string{"n1": "saves nothing", "n2": "saves nothing"}},
		{reason: "a pod that others avoid does not go where they are",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.large", tiny("a", app("x"))), onNode("m6i.large", tiny("b", app("y"), avoids(hostname, "x")))},
			says:  map[string]string{"n1": "saves nothing", "n2": "saves nothing"}},
		{reason: "a pod that was bound to a zone does not leave it",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.large", tiny("a", selects(zone, "us-east-1a"))), onNode("m6i.xlarge", large("b", selects(zone, "us-east-1b"))).as("on-demand", "us-east-1b")},
			says:  map[string]string{"n1": "saves nothing"}},
		{reason: "pods that are spread stay spread",
			pool: nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.large", tiny("a", app("x"), spreads(zone, 1))), onNode("m6i.large", tiny("b", app("x"), spreads(zone, 1))).as("on-demand", "us-east-1b"),
				onNode("m6i.large", tiny("c", app("x"), spreads(zone, 1))).as("on-demand", "us-east-1c")},
			says: map[string]string{"n1": "saves nothing", "n2": "saves nothing", "n3": "saves nothing"}},
		{reason: "what is too little for so many pods is left alone",
			pool: nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i", "c6i")),
			nodes: []standing{onNode("m6i.large", manyPods(27, "crumb", "10m", "16Mi", selects(zone, "us-east-1a"))...),
				onNode("r6i.8xlarge", newPod("b", "30", "200Gi")).as("on-demand", "us-east-1b")},
			says: map[string]string{"n1": "too little for moving 27 pods"}, cause: map[string]plan.Cause{"n1": plan.CausePrice}},
		{reason: "a replacement needs room within the limits beside what it replaces",
			pool:  nodePool("p", onDemand(), general, limit(corev1.ResourceCPU, "17")),
			nodes: []standing{onNode("m6i.4xlarge", small("a"))},
			says:  map[string]string{"n1": "limits leave no room for a replacement"}, cause: map[string]plan.Cause{"n1": plan.CauseRoom}},
		{reason: "a replacement leaves as much choice as minValues demands",
			pool: nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i", "r6i"),
				minValues("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpExists, 2)),
			nodes: []standing{onNode("r6i.2xlarge", newPod("a", "1800m", "3Gi"))},
			want:  []string{"n1 -> m6i.large on-demand"}},
		{reason: "where minValues demands more choice than is cheaper, a node stays",
			pool: nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i", "r6i"),
				minValues("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpExists, 2)),
			nodes: []standing{onNode("r6i.large", newPod("a", "1800m", "3Gi"))},
			says:  map[string]string{"n1": "minValues"}},
		{reason: "two nodes do not go for the same room",
			pool:  nodePool("p", onDemand(), general),
			nodes: []standing{onNode("m6i.large", small("a")), onNode("m6i.large", small("b")), onNode("m6i.xlarge", newPod("c", "2500m", "8Gi"))},
			want:  []string{"n1 ->"}},
		{reason: "budgets hold over all commands",
			pool: nodePool("p", onDemand(), general, func(p *karpv1.NodePool) { p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "1"}} }),
			nodes: []standing{onNode("m6i.4xlarge", small("a", selects(zone, "us-east-1a"))), onNode("m6i.4xlarge", small("b", selects(zone, "us-east-1b"))).as("on-demand", "us-east-1b"),
				onNode("m6i.4xlarge", small("c", selects(zone, "us-east-1c"))).as("on-demand", "us-east-1c")},
			want: []string{"n1 -> m6i.large on-demand"}, cause: map[string]plan.Cause{"n2": plan.CauseBudget, "n3": plan.CauseBudget}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			in := townOf(tc.pool, tc.nodes...).input()
			in.SpotToSpot = tc.spot
			d := plan.Disrupt(in)
			var got []string
			for i := range d.Commands {
				if d.Commands[i].Reason == karpv1.DisruptionReasonUnderutilized {
					got = append(got, describe(&d.Commands[i]))
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("commands %q, want %q; verdicts %v", got, tc.want, d.Verdicts)
				return
			}
			for _, v := range d.Verdicts {
				if v.Reason != karpv1.DisruptionReasonUnderutilized {
					continue
				}
				if says := tc.says[v.Node]; !strings.Contains(v.Message, says) {
					t.Errorf("of %s it is said %q, want %q", v.Node, v.Message, says)
				}
				if cause := tc.cause[v.Node]; cause != "" && cause != v.Cause {
					t.Errorf("%s stays because of %s (%s), want %s", v.Node, v.Cause, v.Message, cause)
				}
			}
			if tc.check != nil {
				tc.check(t, d.Commands)
			}
		})
	}
}
