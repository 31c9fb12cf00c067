package plan_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

func ownedByReplicaSet(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: name, Controller: new(true)}}
	}
}

// mostOf returns the largest share of a workload's pods that one place carries, where place maps a claim to its key.
func mostOf(w world, p plan.Plan, place func(plan.Claim) string) float64 {
	owner, total, at := map[string]string{}, map[string]int{}, map[string]map[string]int{}
	for _, pod := range w.pods {
		name := pod.OwnerReferences[0].Name
		owner[string(pod.UID)] = name
		total[name]++
	}
	most := 0.0
	for _, claim := range p.Claims {
		key := place(claim)
		if at[key] == nil {
			at[key] = map[string]int{}
		}
		for _, uid := range claim.Pods {
			name := owner[string(uid)]
			at[key][name]++
			most = max(most, float64(at[key][name])/float64(total[name]))
		}
	}
	return most
}

// Where it costs almost nothing, no node carries more than a third of a workload.
func TestNoNodeCarriesMostOfAWorkload(t *testing.T) {
	t.Parallel()
	pool := nodePool("default", onDemand(), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"))
	types, err := ec2()
	if err != nil {
		t.Fatal(err)
	}
	w := world{pools: []plan.Pool{{NodePool: pool, Types: types, NodePrice: rootVolume}}}
	w.pods = append(manyPods(300, "small", "500m", "1Gi", ownedByReplicaSet("small")), manyPods(100, "large", "900m", "3Gi", ownedByReplicaSet("large"))...)
	cost := map[plan.Packing]float64{}
	share := map[plan.Packing]float64{}
	for _, packing := range []plan.Packing{plan.PackingSpread, plan.PackingCheapest} {
		w.pools[0].Packing = packing
		in := w.input()
		in.Nominates = true
		p := plan.Pack(in)
		cost[packing] = p.PricePerHour() + rootVolume*float64(len(p.Claims))
		nodes := 0
		share[packing] = mostOf(w, p, func(plan.Claim) string { nodes++; return string(rune(nodes)) })
	}
	if share[plan.PackingCheapest] <= 1.0/3 {
		t.Fatal("the cheapest plan has nothing to spread")
	}
	if share[plan.PackingSpread] > 1.0/3 {
		t.Errorf("a node carries %.2f of a workload, and spread over nodes these cost $%.4f instead of $%.4f", share[plan.PackingSpread], cost[plan.PackingSpread], cost[plan.PackingCheapest])
	}
	if cost[plan.PackingSpread] > cost[plan.PackingCheapest]*1.008 {
		t.Errorf("spread over nodes the pods cost $%.4f, and else $%.4f", cost[plan.PackingSpread], cost[plan.PackingCheapest])
	}
}

// equalSpotPrices returns types whose spot pools cost a third of the on-demand price, the same in every zone.
func equalSpotPrices(types []*cloud.InstanceType) []*cloud.InstanceType {
	for _, typ := range types {
		for i := range typ.Offerings {
			if o := &typ.Offerings[i]; o.CapacityType == "spot" {
				o.Price = typ.Offerings[0].Price / 3
			}
		}
	}
	return types
}

// Bare pods belong to no workload, so there is no spot pool that they depend on too much.
func TestBarePodsLeaveNoSpotPoolOut(t *testing.T) {
	t.Parallel()
	pool := nodePool("default", requires("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, "spot"))
	w := world{pools: []plan.Pool{{NodePool: pool, Types: equalSpotPrices(smallCatalogue()), Packing: plan.PackingSpread}}, pods: manyPods(900, "bare", "200m", "400Mi")}
	in := w.input()
	in.Nominates = true
	choices := map[string]map[string]int{} // of claims that are alike but for that
	for _, claim := range plan.Pack(in).Claims {
		alike := fmt.Sprint(claim.InstanceTypes[0], claim.Requests)
		if choices[alike] == nil {
			choices[alike] = map[string]int{}
		}
		choices[alike][fmt.Sprint(claim.InstanceTypes, claim.Zones)]++
	}
	most := 0
	for alike, choice := range choices {
		for _, claims := range choice {
			most = max(most, claims)
		}
		if len(choice) > 1 {
			t.Errorf("%s: alike claims for bare pods may launch %v", alike, choice)
		}
	}
	if most < 3 {
		t.Fatalf("at most %d claims are alike: too few to tell", most)
	}
}

// Where spot pools cost the same, none carries more than a third of a workload, running pods included.
func TestNoSpotPoolCarriesMostOfAWorkload(t *testing.T) {
	t.Parallel()
	pool := nodePool("default", requires("karpenter.sh/capacity-type", corev1.NodeSelectorOpIn, "spot"))
	types := equalSpotPrices(smallCatalogue())
	w := world{pools: []plan.Pool{{NodePool: pool, Types: types}}}
	w.pods = manyPods(900, "web", "200m", "400Mi", ownedByReplicaSet("web"))
	in := w.input()
	in.Nominates = true
	p := plan.Pack(in)
	if len(p.Unplaced) > 0 {
		t.Fatal(reasonsOf(p))
	}
	for _, claim := range p.Claims {
		if claim.CapacityType != "spot" || len(claim.InstanceTypes)*len(claim.Zones) < 6 {
			t.Errorf("a claim is for %s, %v in %v: too few for EC2 to choose from", claim.CapacityType, claim.InstanceTypes, claim.Zones)
		}
	}
	if most := mostOf(w, p, func(c plan.Claim) string { return c.InstanceTypes[0] + " " + c.Zones[0] }); most > 0.36 {
		t.Errorf("a spot pool carries %.2f of a workload", most)
	}
}
