package plan_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

func limits(pairs ...string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		pool.Spec.Limits = karpv1.Limits{}
		for i := 0; i < len(pairs); i += 2 {
			pool.Spec.Limits[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
		}
	}
}

// All of a pool's nodes, and those on their way, count against its limits, whatever their state.
func TestWhatLimitsCount(t *testing.T) {
	t.Parallel()
	full := func(n *plan.Node) { n.Allocatable = plan.Resources{} }
	inFlight := func(types ...string) *plan.Node {
		return &plan.Node{Claim: "waiting", Pool: "p", Labels: map[string]string{}, Created: now, Taints: []corev1.Taint{{Key: "busy", Effect: corev1.TaintEffectNoSchedule}},
			Requirements: model.Term{
				among(corev1.LabelInstanceTypeStable, types...),
				// Every claim of the planner has these; no instance type does.
				among(karpv1.CapacityTypeLabelKey, "on-demand"), among(corev1.LabelTopologyZone, "us-east-1a"), among("team", "blue"),
			}}
	}
	launched := inFlight("m6i.large")
	launched.Launched, launched.Capacity = true, plan.ResourcesOf(machineSpec{name: "m6i.large", cores: 2, memory: 8}.instanceType().Capacity)
	tests := []struct {
		name, reason string
		nodes        []*plan.Node
		pool         func(*karpv1.NodePool)
		claims       int
	}{
		{name: "nothing yet", reason: "four machines of two cores", pool: limits("cpu", "8"), claims: 4},
		{name: "a node", reason: "it has two of the cores", nodes: []*plan.Node{existing("n", "m6i.large", full)}, pool: limits("cpu", "8"), claims: 3},
		{name: "a node of another pool", reason: "it does not count",
			nodes: []*plan.Node{existing("n", "m6i.large", full, func(n *plan.Node) { n.Pool = "q" })}, pool: limits("cpu", "8"), claims: 4},
		{name: "a node that is going", reason: "it counts until it is gone",
			nodes: []*plan.Node{existing("n", "m6i.large", full, func(n *plan.Node) { n.Deleting = true })}, pool: limits("cpu", "8"), claims: 3},
		{name: "a node whose machine is being terminated", reason: "it counts until it is gone",
			nodes: []*plan.Node{existing("n", "m6i.large", full, func(n *plan.Node) { n.Deleting, n.Terminating = true, true })},
			pool:  limits("cpu", "8"), claims: 3},
		{name: "a claim in flight", reason: "it counts as the largest it may become",
			nodes: []*plan.Node{inFlight("m6i.large", "m6i.xlarge")}, pool: limits("cpu", "8"), claims: 2},
		{name: "a launched claim", reason: "it counts as what it has become", nodes: []*plan.Node{launched}, pool: limits("cpu", "8"), claims: 3},
		{name: "memory", reason: "any resource may be limited", pool: limits("memory", "23Gi"), claims: 3},
		{name: "pods", reason: "even pods", pool: limits("pods", "60"), claims: 2},
		{name: "nodes", reason: "or the number of machines", nodes: []*plan.Node{existing("n", "m6i.large", full)}, pool: limits("nodes", "3"), claims: 2},
		{name: "several", reason: "the tightest counts", pool: limits("cpu", "100", "nodes", "50", "memory", "8Gi"), claims: 1},
		{name: "a device", reason: "what a machine does not have is not limited", pool: limits("nvidia.com/gpu", "0"), claims: 5},
		{name: "more than allowed", reason: "a limit that was lowered leaves nothing, and not less",
			nodes: []*plan.Node{existing("n", "m6i.16xlarge", full)}, pool: limits("cpu", "8"), claims: 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			large := requires(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m6i.large")
			// Each pod fills an m6i.large.
			w := world{pods: manyPods(5, "a", "1800m", "1Gi"), nodes: test.nodes, pools: []plan.Pool{inPool(nodePool("p", onDemand(), large, test.pool), smallCatalogue())}}
			p := plan.Pack(w.input())
			if len(p.Claims) != test.claims {
				t.Errorf("%d claims, want %d: %s; %v", len(p.Claims), test.claims, test.reason, p.Unplaced)
			}
		})
	}
}

// A large machine may be cheaper than a small one, as with spot prices, but a limit may leave room for the small one
// only.
func TestACheaperMachineBeyondTheLimit(t *testing.T) {
	t.Parallel()
	types := []*cloud.InstanceType{
		machineSpec{name: "m6i.large", cores: 2, memory: 8, price: 0.30}.instanceType(),
		machineSpec{name: "m6i.4xlarge", cores: 16, memory: 64, price: 0.20}.instanceType(),
	}
	w := world{pods: manyPods(2, "a", "1800m", "1Gi"), pools: []plan.Pool{inPool(nodePool("p", onDemand(), limits("cpu", "4")), types)}}
	p := plan.Pack(w.input())
	check(t, &w, p)
	if len(p.Claims) != 2 {
		t.Errorf("%d claims, want two small machines: %v", len(p.Claims), p.Unplaced)
	}
}

// Whichever instance types the claims get, no limit is exceeded, and pods are left only for a reason.
func TestNoChoiceExceedsALimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		types := smallCatalogue()
		for _, typ := range types {
			factor := rapid.Float64Range(0.2, 3).Draw(t, "price")
			for i := range typ.Offerings {
				typ.Offerings[i].Price *= factor
			}
		}
		pool := func(name string) plan.Pool {
			options := []func(*karpv1.NodePool){limits(
				"cpu", fmt.Sprint(rapid.IntRange(1, 80).Draw(t, "cpu")), "memory", fmt.Sprint(rapid.IntRange(4, 300).Draw(t, "memory"))+"Gi",
				"nodes", fmt.Sprint(rapid.IntRange(1, 12).Draw(t, "nodes")))}
			if rapid.Bool().Draw(t, "choice") {
				options = append(options, minValues("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpExists, rapid.IntRange(2, 4).Draw(t, "families")))
			}
			if rapid.Bool().Draw(t, "spot") {
				options = append(options, requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot"))
			}
			return inPool(nodePool(name, options...), types)
		}
		w := &world{pools: []plan.Pool{pool("p")}}
		if rapid.Bool().Draw(t, "two pools") {
			w.pools = append(w.pools, pool("q"))
		}
		for s := range rapid.IntRange(1, 4).Draw(t, "shapes") {
			cpu := rapid.SampledFrom([]string{"250m", "1", "1700m", "3", "15"}).Draw(t, "cpu")
			memory := rapid.SampledFrom([]string{"256Mi", "2Gi", "6Gi", "20Gi"}).Draw(t, "memory")
			w.pods = append(w.pods, manyPods(rapid.IntRange(1, 12).Draw(t, "count"), fmt.Sprint("s", s), cpu, memory)...)
		}
		p := plan.Pack(w.input())
		check(t, w, p)
		for _, u := range p.Unplaced {
			for _, r := range u.Reasons {
				if r.Message == "no offering that fits it could be launched" {
					t.Fatalf("pod %s is left, and pool %s does not know why", u.Pod.Key(), r.NodePool)
				}
			}
		}
	})
}

// A distant limit leaves a launch its choice; a near one takes away only what could exceed it.
func TestLimitsLeaveChoice(t *testing.T) {
	t.Parallel()
	largest := func(cpu string) int64 {
		w := world{pods: manyPods(1, "a", "1800m", "1Gi"), pools: []plan.Pool{inPool(nodePool("p", onDemand(), limits("cpu", cpu),
			requires(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m6i.large", "r6i.large", "m6i.xlarge", "r6i.2xlarge", "r6i.16xlarge")), smallCatalogue())}}
		p := plan.Pack(w.input())
		check(t, &w, p)
		most := int64(0)
		for _, c := range p.Claims {
			for _, typ := range smallCatalogue() {
				for _, name := range c.InstanceTypes {
					if typ.Name == name {
						most = max(most, typ.Capacity.Cpu().Value())
					}
				}
			}
		}
		return most
	}
	for _, test := range []struct {
		limit string
		want  int64
	}{{"1000", 64}, {"63", 8}, {"8", 8}, {"7", 4}, {"3", 2}} {
		if got := largest(test.limit); got != test.want {
			t.Errorf("with a limit of %s cores the largest choice has %d, want %d", test.limit, got, test.want)
		}
	}
}
