package plan_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/market"
)

// priced sets the offerings of a type in one zone.
func priced(typ *cloud.InstanceType, prices map[string]float64) *cloud.InstanceType {
	typ.Offerings = nil
	for _, kind := range []string{"on-demand", "spot"} {
		if price := prices[kind]; price > 0 {
			typ.Offerings = append(typ.Offerings, cloud.Offering{CapacityType: kind, Zone: "us-east-1a", ZoneID: "use1-az1", Price: price, Available: true})
		}
	}
	return typ
}

// crunch is a market in which spot is scarce: what is left of it is large and dear.
func crunch() []*cloud.InstanceType {
	return []*cloud.InstanceType{
		priced(machineSpec{name: "m5.24xlarge", cores: 96, memory: 384, pods: 737}.instanceType(), map[string]float64{"on-demand": 4.608, "spot": 2.55}),
		priced(machineSpec{name: "m5.2xlarge", cores: 8, memory: 32, pods: 58}.instanceType(), map[string]float64{"on-demand": 0.384, "spot": 0.12}),
		priced(machineSpec{name: "m5.large", cores: 2, memory: 8, pods: 29}.instanceType(), map[string]float64{"on-demand": 0.096}),
	}
}

// Spot is bought and listed if it is cheaper than the cheapest on-demand machine that would do, whatever its type.
func TestSpotAgainstOnDemand(t *testing.T) {
	t.Parallel()
	spot := in(karpv1.CapacityTypeLabelKey, "spot")
	dear := slices.Delete(crunch(), 1, 2)
	tests := []struct {
		name, reason string
		types        []*cloud.InstanceType
		pod          *corev1.Pod
		pool         *karpv1.NodePool
		capacityType string
		list         []string
	}{
		{name: "dear spot", reason: "a small on-demand machine costs less than a large one on spot", types: dear, pod: newPod("a", "500m", "1Gi"), pool: nodePool("p"),
			capacityType: "on-demand", list: []string{"m5.large", "m5.24xlarge"}},
		{name: "spot that is no bargain", reason: "spot of a larger type is dearer as well", types: crunch(), pod: newPod("a", "500m", "1Gi"), pool: nodePool("p"),
			capacityType: "on-demand", list: []string{"m5.large", "m5.2xlarge", "m5.24xlarge"}},
		{name: "cheap spot", reason: "on demand it would be the 2xlarge; spot of the 24xlarge is dearer than that", types: crunch(), pod: newPod("a", "3", "1Gi"), pool: nodePool("p"),
			capacityType: "spot", list: []string{"m5.2xlarge"}},
		{name: "the pod wants spot", reason: "who asks for spot gets it, whatever it costs", types: dear, pod: newPod("a", "500m", "1Gi", needs(spot)), pool: nodePool("p"),
			capacityType: "spot", list: []string{"m5.24xlarge"}},
		{name: "the pool wants spot", reason: "the same where the pool asks for it", types: dear, pod: newPod("a", "500m", "1Gi"),
			pool: nodePool("p", requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot")), capacityType: "spot", list: []string{"m5.24xlarge"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{inPool(test.pool, test.types)}}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims, want 1", len(p.Claims))
			}
			claim := p.Claims[0]
			if claim.CapacityType != test.capacityType || !slices.Equal(claim.InstanceTypes, test.list) {
				t.Errorf("a claim for %s %v, want %s %v: %s", claim.CapacityType, claim.InstanceTypes, test.capacityType, test.list, test.reason)
			}
			object, err := claim.NodeClaim(test.pool, "c")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := plan.Offerings(nodeclass.Labels(), object, test.types, nil, now, plan.MinValuesStrict)
			if err != nil || len(keys) != len(test.list) || keys[0].InstanceType != test.list[0] || keys[0].CapacityType != test.capacityType {
				t.Errorf("%v would be launched (%v), which is not what was planned", keys, err)
			}
		})
	}
}

// Spot that is cheaper than on-demand in one zone may be dearer in another, and is not launched there. The claim names
// types and zones, of which a fleet may choose any pair.
func TestSpotInADearZone(t *testing.T) {
	t.Parallel()
	typ := priced(machineSpec{name: "m5.large", cores: 2, memory: 8, pods: 29}.instanceType(), map[string]float64{"on-demand": 0.096, "spot": 0.04})
	dear := cloud.Offering{CapacityType: "spot", Zone: "us-east-1b", ZoneID: "use1-az2", Price: 0.12, Available: true}
	typ.Offerings = append(typ.Offerings, dear)
	pool, types := nodePool("p"), []*cloud.InstanceType{typ}
	w := world{pods: []*corev1.Pod{newPod("a", "500m", "1Gi")}, pools: []plan.Pool{inPool(pool, types)}}
	p := plan.Pack(w.input())
	check(t, &w, p)
	object, err := p.Claims[0].NodeClaim(pool, "c")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := plan.Offerings(nodeclass.Labels(), object, types, nil, now, plan.MinValuesStrict)
	if want := []cloud.OfferingKey{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%v would be launched (%v), want %v", keys, err, want)
	}
	gone := map[cloud.OfferingKey]time.Time{keys[0]: now.Add(time.Minute)}
	if keys, err := plan.Offerings(nodeclass.Labels(), object, types, gone, now, plan.MinValuesStrict); !errors.Is(err, market.ErrNothingToLaunch) {
		t.Errorf("with the cheap zone gone %v would be launched (%v), want to plan again", keys, err)
	}
	if again := plan.Pack(func() plan.Input { in := w.input(); in.Unavailable = gone; return in }()); again.Claims[0].CapacityType != "on-demand" {
		t.Errorf("planned again it is %s, want on-demand", again.Claims[0].CapacityType)
	}
}

// A claim written by hand is launched by the same rule.
func TestWhatAClaimByHandIsLaunchedAs(t *testing.T) {
	t.Parallel()
	metal := priced(machineSpec{name: "m5.metal", cores: 96, memory: 384, pods: 737}.instanceType(), map[string]float64{"on-demand": 0.05})
	gpu := priced(machineSpec{name: "g5.xlarge", cores: 4, memory: 16, pods: 58, gpus: 1}.instanceType(), map[string]float64{"on-demand": 0.06})
	metalGPU := priced(machineSpec{name: "g5.metal", cores: 4, memory: 16, pods: 58, gpus: 1}.instanceType(), map[string]float64{"on-demand": 0.02})
	cores := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	withGPU := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
	has := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	two := 2
	tests := []struct {
		name, reason string
		types        []*cloud.InstanceType
		requirements []karpv1.NodeSelectorRequirementWithMinValues
		requests     corev1.ResourceList
		want         []string
	}{
		{name: "dear spot", reason: "on-demand is cheaper, and allowed", types: slices.Delete(crunch(), 1, 2), requests: cores, want: []string{"m5.large on-demand", "m5.24xlarge on-demand"}},
		{name: "only spot", reason: "on-demand is not allowed", types: slices.Delete(crunch(), 1, 2), requests: cores,
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{has(karpv1.CapacityTypeLabelKey, "spot")}, want: []string{"m5.24xlarge spot"}},
		{name: "metal", reason: "bare metal is left out while there is another type, however cheap", types: append(crunch(), metal, gpu), requests: cores,
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{has(karpv1.CapacityTypeLabelKey, "on-demand")}, want: []string{"m5.large on-demand", "m5.2xlarge on-demand", "m5.24xlarge on-demand"}},
		{name: "only metal", reason: "there is nothing else", types: append(crunch(), metal), requests: cores,
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{has("karpenter.k8s.aws/instance-size", "metal")}, want: []string{"m5.metal on-demand"}},
		{name: "a device", reason: "machines with the device are what was asked for; the bare metal among them is not", types: append(crunch(), metalGPU, gpu), requests: withGPU, want: []string{"g5.xlarge on-demand"}},
		{name: "only metal has the device", reason: "there is nothing else", types: append(crunch(), metalGPU), requests: withGPU, want: []string{"g5.metal on-demand"}},
		{name: "minValues", reason: "two sizes are demanded, and the second is bare metal", types: append(crunch()[2:], metal), requests: cores,
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: "karpenter.k8s.aws/instance-size", Operator: corev1.NodeSelectorOpExists, MinValues: &two}},
			want:         []string{"m5.metal on-demand", "m5.large on-demand"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: test.requirements, Resources: karpv1.ResourceRequirements{Requests: test.requests}}}
			keys, err := plan.Offerings(nodeclass.Labels(), claim, test.types, nil, now, plan.MinValuesStrict)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, key := range keys {
				got = append(got, key.InstanceType+" "+key.CapacityType)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%v would be launched, want %v: %s", got, test.want, test.reason)
			}
		})
	}
}

// Bare metal is planned only where nothing else would do, so that the plan matches the launch.
func TestBareMetal(t *testing.T) {
	t.Parallel()
	const size = "karpenter.k8s.aws/instance-size"
	metal := priced(machineSpec{name: "m5.metal", cores: 96, memory: 384, pods: 737}.instanceType(), map[string]float64{"on-demand": 0.05, "spot": 0.01})
	types := append(crunch(), metal)
	tests := []struct {
		name, reason string
		pod          *corev1.Pod
		pools        []plan.Pool
		first, why   string
	}{
		{name: "a cheap one", reason: "it would be the cheapest", pod: newPod("a", "500m", "1Gi"), pools: []plan.Pool{inPool(nodePool("p"), types)}, first: "m5.large"},
		{name: "the pod asks for it", reason: "its node selector leaves nothing else", pod: newPod("a", "500m", "1Gi", selects(size, "metal")), pools: []plan.Pool{inPool(nodePool("p"), types)}, first: "m5.metal"},
		{name: "the pool has nothing else", reason: "its requirements ask for it", pod: newPod("a", "500m", "1Gi"),
			pools: []plan.Pool{inPool(nodePool("p", requires(size, corev1.NodeSelectorOpIn, "metal")), types)}, first: "m5.metal"},
		{name: "another pool is at its limit", reason: "the other pool has what would do, but for its limit", pod: newPod("a", "500m", "1Gi"),
			pools: []plan.Pool{inPool(nodePool("p", requires(size, corev1.NodeSelectorOpIn, "metal")), types), inPool(nodePool("q", requires(size, corev1.NodeSelectorOpNotIn, "metal"), limit(corev1.ResourceCPU, "1")), types)},
			why:   "every instance type is bare metal, which is launched only where nothing else would do"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{test.pod}, pools: test.pools}
			p := plan.Pack(w.input())
			check(t, &w, p)
			switch {
			case test.why != "":
				if len(p.Unplaced) != 1 || !slices.Contains(p.Unplaced[0].Reasons, plan.Reason{NodePool: "p", Message: test.why}) {
					t.Errorf("left: %v, want the reason %q: %s", p.Unplaced, test.why, test.reason)
				}
			case len(p.Claims) != 1 || p.Claims[0].InstanceTypes[0] != test.first:
				t.Errorf("claims %v, want one for %s: %s", p.Claims, test.first, test.reason)
			case test.first != "m5.metal" && slices.Contains(p.Claims[0].InstanceTypes, "m5.metal"):
				t.Errorf("the claim lists %v: %s", p.Claims[0].InstanceTypes, test.reason)
			}
		})
	}
}
