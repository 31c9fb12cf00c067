package plan_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// wants gives a pod a node selector of several labels.
func wants(pairs ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeSelector = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			pod.Spec.NodeSelector[pairs[i]] = pairs[i+1]
		}
	}
}

func several(options ...func(*karpv1.NodePool)) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		for _, option := range options {
			option(pool)
		}
	}
}

func minValues(key string, operator corev1.NodeSelectorOperator, n int, values ...string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		spec := &pool.Spec.Template.Spec
		spec.Requirements = append(spec.Requirements,
			karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values, MinValues: &n})
	}
}

// The reason names everything that together stops a pod, and nothing else.
func TestTheShortestTrueReason(t *testing.T) {
	t.Parallel()
	const (
		zone     = corev1.LabelTopologyZone
		capacity = karpv1.CapacityTypeLabelKey
		family   = "karpenter.k8s.aws/instance-family"
		arch     = corev1.LabelArchStable
	)
	noSpot := func(name string, zones ...string) []*cloud.InstanceType {
		types := smallCatalogue()
		for _, typ := range types {
			if typ.Labels[family] == name {
				typ.Offerings = slices.DeleteFunc(typ.Offerings, func(o cloud.Offering) bool {
					return o.CapacityType == "spot" && slices.Contains(zones, o.Zone)
				})
			}
		}
		return types
	}
	// This machine would do if it were sold as spot in zone b.
	fat := append(smallCatalogue(), machineSpec{name: "m6g.fat", arch: "arm64", cores: 8, memory: 64, price: 0.4, kinds: []string{"on-demand"}}.instanceType())
	fat[len(fat)-1].Offerings = append(fat[len(fat)-1].Offerings, cloud.Offering{CapacityType: "spot", Zone: "us-east-1a", Price: 0.1, Available: true})
	refused := func(zones ...string) map[cloud.OfferingKey]time.Time {
		keys := map[cloud.OfferingKey]time.Time{}
		for i, z := range zones {
			keys[cloud.OfferingKey{InstanceType: "m6g.large", Zone: z, CapacityType: "spot"}] = now.Add(time.Duration(3-i) * time.Minute)
		}
		return keys
	}
	tests := []struct {
		name, reason, want string
		pod                *corev1.Pod
		pool               func(*karpv1.NodePool)
		types              []*cloud.InstanceType
		unavailable        map[cloud.OfferingKey]time.Time
	}{
		{
			name: "the pool's own requirement", reason: "what the pool forbids is not the cloud's fault", want: "the pool requires kubernetes.io/arch In [amd64]",
			pod: newPod("a", "1", "1Gi", wants(arch, "arm64", zone, "us-east-1a")), pool: requires(arch, corev1.NodeSelectorOpIn, "amd64"),
		},
		{
			name: "the pool's zones", reason: "the same with zones", want: "the pool requires topology.kubernetes.io/zone In [us-east-1a us-east-1b]",
			pod: newPod("a", "1", "1Gi", wants(zone, "us-east-1c")), pool: requires(zone, corev1.NodeSelectorOpIn, "us-east-1a", "us-east-1b"),
		},
		{
			name: "the pool's capacity type", reason: "the same with capacity types", want: "the pool requires karpenter.sh/capacity-type In [on-demand]",
			pod: newPod("a", "1", "1Gi", wants(capacity, "spot")), pool: onDemand(),
		},
		{
			name: "zone, capacity type and family", reason: "no two of them would be true", want: "zone us-east-1c has no spot c6i",
			pod: newPod("a", "1", "1Gi", wants(zone, "us-east-1c", capacity, "spot", family, "c6i", corev1.LabelOSStable, "linux")), pool: several(), types: noSpot("c6i", "us-east-1c"),
		},
		{
			name: "and the room", reason: "memory is short only of this family", want: "no arm64 instance type has memory 300Gi free, the most is 228.5Gi",
			pod: newPod("a", "1", "300Gi", wants(arch, "arm64")), pool: several(),
		},
		{
			name: "and the limit", reason: "it would fit, and a machine large enough would exceed the limit",
			want: "limit cpu 8 leaves 8, and the smallest instance type with memory 100Gi free has 16",
			pod:  newPod("a", "1", "100Gi"), pool: limit(corev1.ResourceCPU, "8"),
		},
		{
			name: "zone and room and limit", reason: "the sentence of the specification",
			want: "limit cpu 8 leaves 8, and the smallest spot m6g with memory 50Gi free in zone us-east-1b has 16",
			pod:  newPod("a", "1", "50Gi", wants(zone, "us-east-1b", capacity, "spot", family, "m6g")), pool: limit(corev1.ResourceCPU, "8"), types: fat,
		},
		{
			name: "device of the other architecture", reason: "nothing of what it asks for has the device", want: "no arm64 instance type has nvidia.com/gpu",
			pod: newPod("a", "1", "1Gi", wants(arch, "arm64"), asks("nvidia.com/gpu", "1")), pool: several(),
		},
		{
			name: "two resources", reason: "each would be there alone", want: "there is no c6i.xlarge or r6i.large with cpu 3 and memory 12Gi free",
			pod: newPod("a", "3", "12Gi", needs(expr(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "c6i.xlarge", "r6i.large"))), pool: several(),
		},
		{
			name: "refused", reason: "what was refused comes back at a known time", want: "no spot m6g.large is available until 12:01:00 UTC",
			pod: newPod("a", "1", "1Gi", wants(corev1.LabelInstanceTypeStable, "m6g.large", capacity, "spot")), pool: several(), unavailable: refused(threeZones...),
		},
		{
			name: "refused in the zone", reason: "elsewhere it is there", want: "zone us-east-1b has no spot m6g.large available until 12:03:00 UTC",
			pod: newPod("a", "1", "1Gi", wants(corev1.LabelInstanceTypeStable, "m6g.large", capacity, "spot", zone, "us-east-1b")), pool: several(), unavailable: refused("us-east-1b"),
		},
		{
			name: "contradiction", reason: "the pool leaves the label to the pods, and the pod contradicts itself", want: "no value of team meets all its requirements",
			pod: newPod("a", "1", "1Gi", wants("team", "a"), func(pod *corev1.Pod) {
				needs(expr("team", corev1.NodeSelectorOpNotIn, "a"))(pod)
			}), pool: requires("team", corev1.NodeSelectorOpExists),
		},
		{
			name: "nearest alternative", reason: "of two alternatives the one that came nearest is told", want: "limit nodes 0 leaves 0",
			pod: newPod("a", "1", "1Gi", needs(expr(family, corev1.NodeSelectorOpIn, "m6g"), expr(family, corev1.NodeSelectorOpIn, "z9"))), pool: limit(karpv1.ResourceNodes, "0"),
		},
		{
			name: "too little choice", reason: "what holds the pod comes from too few families",
			want: "minValues asks for 3 values of karpenter.k8s.aws/instance-family, and only 1 have any instance type with memory 300Gi free",
			pod:  newPod("a", "1", "300Gi"), pool: several(minValues(family, corev1.NodeSelectorOpExists, 3), requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r")),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{inPool(nodePool("p", test.pool), orDefault(test.types, smallCatalogue()))}}
			in := w.input()
			in.Unavailable = test.unavailable
			p := plan.Pack(in)
			if len(p.Unplaced) != 1 {
				t.Fatalf("%d pods are unplaced, want 1; claims %v", len(p.Unplaced), p.Claims)
			}
			if got := p.Unplaced[0].Reasons[0].Message; got != test.want {
				t.Errorf("reason %q, want %q: %s", got, test.want, test.reason)
			}
		})
	}
}

// Machines with devices are kept for pods that ask for them, even if the plain pool is at its limit.
func TestDevicesAreKept(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(1, "a", "1", "1Gi"), pools: []plan.Pool{
		inPool(nodePool("gpu", requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "g")), smallCatalogue()),
		inPool(nodePool("plain", limit(corev1.ResourceCPU, "1")), smallCatalogue()),
	}}
	p := plan.Pack(w.input())
	want := []plan.Reason{
		{NodePool: "plain", Message: "limit cpu 1 leaves 1, and the smallest instance type has 2"},
		{NodePool: "gpu", Message: "every instance type has devices, which are kept for pods that ask for them"},
	}
	if len(p.Unplaced) != 1 || !slices.Equal(p.Unplaced[0].Reasons, want) {
		t.Errorf("unplaced %v, want %v", p.Unplaced, want)
	}
}

// The pool that came nearest is first: with many pools, the others say only that they are for other pods.
func TestTheNearestPoolIsFirst(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(1, "a", "1", "1Gi", wants("team", "x")), pools: []plan.Pool{
		inPool(nodePool("a-other-label", requires("team", corev1.NodeSelectorOpIn, "y")), smallCatalogue()),
		inPool(nodePool("b-no-label"), smallCatalogue()),
		inPool(nodePool("c-not-ready", notReady("no subnets")), smallCatalogue()),
		inPool(nodePool("d-tainted", tainted("dedicated")), smallCatalogue()),
		inPool(nodePool("e-too-small", requires("team", corev1.NodeSelectorOpIn, "x"), limit(karpv1.ResourceNodes, "0")), smallCatalogue()),
	}}
	var order []string
	for _, r := range plan.Pack(w.input()).Unplaced[0].Reasons {
		order = append(order, r.NodePool)
	}
	if want := []string{"e-too-small", "a-other-label", "b-no-label", "d-tainted", "c-not-ready"}; !slices.Equal(order, want) {
		t.Errorf("reasons in the order %v, want %v", order, want)
	}
}

// A pool that is closed is near if it would do once it is open: an Event has room for the nearest pools only.
func TestAClosedPoolThatWouldDoIsFirst(t *testing.T) {
	t.Parallel()
	pausedPool := func(pool *karpv1.NodePool) {
		pool.Annotations = map[string]string{karpv1.PauseAnnotationKey: "provisioning"}
	}
	fixed := func(pool *karpv1.NodePool) { pool.Spec.Replicas = new(int64(1)) }
	team := requires("team", corev1.NodeSelectorOpIn, "x")
	tests := map[string]struct {
		closed func(*karpv1.NodePool)
		want   []string
	}{
		"paused":                  {several(pausedPool, team), []string{"closed", "limited", "other"}},
		"not Ready":               {several(notReady("no subnets"), team), []string{"closed", "limited", "other"}},
		"static, which stays":     {several(fixed, team), []string{"limited", "closed", "other"}},
		"paused, and for others":  {pausedPool, []string{"limited", "other", "closed"}},
		"paused, and not allowed": {several(pausedPool, team, tainted("dedicated")), []string{"limited", "other", "closed"}},
	}
	for reason, test := range tests {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(1, "a", "1", "1Gi", wants("team", "x")), pools: []plan.Pool{
				inPool(nodePool("closed", test.closed), smallCatalogue()),
				inPool(nodePool("limited", team, limit(karpv1.ResourceNodes, "0")), smallCatalogue()),
				inPool(nodePool("other"), smallCatalogue()),
			}}
			var order []string
			for _, r := range plan.Pack(w.input()).Unplaced[0].Reasons {
				order = append(order, r.NodePool)
			}
			if !slices.Equal(order, test.want) {
				t.Errorf("reasons in the order %v, want %v", order, test.want)
			}
		})
	}
}

// A limit that is used up is told apart from one that could never have been enough.
func TestALimitThatIsTooLittleAnyway(t *testing.T) {
	t.Parallel()
	w := world{pods: []*corev1.Pod{newPod("fat", "1", "100Gi"), newPod("other", "1", "1Gi")}, nodes: []*plan.Node{existing("n", "m6i.2xlarge", func(n *plan.Node) { n.Allocatable = plan.Resources{} })},
		pools: []plan.Pool{inPool(nodePool("p", limit(corev1.ResourceCPU, "8")), smallCatalogue())}}
	want := map[string]string{
		"fat":   "limit cpu 8 is too little, and the smallest instance type with memory 100Gi free has 16",
		"other": "limit cpu 8 leaves 0, and the smallest instance type has 2",
	}
	for _, u := range plan.Pack(w.input()).Unplaced {
		if got := u.Reasons[0].Message; got != want[u.Pod.Name] {
			t.Errorf("%s: %q, want %q", u.Pod.Name, got, want[u.Pod.Name])
		}
		delete(want, u.Pod.Name)
	}
	if len(want) > 0 {
		t.Errorf("placed: %v", want)
	}
}
