package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// What is bought for one pod, with one or more pools.
func TestWhatIsBought(t *testing.T) {
	t.Parallel()
	intel := requires(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "amd64")
	tests := []struct {
		name, reason string
		pod          *corev1.Pod
		pools        []*karpv1.NodePool
		first        string // cheapest type
		capacityType string
		zones        []string
		pool         string
		labels       map[string]string
	}{
		{
			name: "cheapest", reason: "without wishes, spot of the cheapest type that is large enough is bought, in any zone",
			pod: newPod("a", "1", "1Gi"), pools: []*karpv1.NodePool{nodePool("p")},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "architecture of the pool", reason: "the pool's requirements narrow the types",
			pod: newPod("a", "1", "1Gi"), pools: []*karpv1.NodePool{nodePool("p", intel)},
			first: "c5.large", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "deprecated label", reason: "beta.kubernetes.io/arch means kubernetes.io/arch",
			pod: newPod("a", "1", "1Gi", selects("beta.kubernetes.io/arch", "arm64")), pools: []*karpv1.NodePool{nodePool("p", onDemand())},
			first: "m6g.large", capacityType: "on-demand", zones: threeZones, pool: "p",
		},
		{
			name: "memory", reason: "what a kubelet keeps for itself cannot be given to pods",
			pod: newPod("a", "1", "7Gi"), pools: []*karpv1.NodePool{nodePool("p", onDemand(), intel)},
			first: "r6i.large", capacityType: "on-demand", zones: threeZones, pool: "p",
		},
		{
			name: "zone", reason: "a pod's zone narrows the claim's zones",
			pod: newPod("a", "1", "1Gi", selects(corev1.LabelTopologyZone, "us-east-1b")), pools: []*karpv1.NodePool{nodePool("p")},
			first: "m6g.large", capacityType: "spot", zones: []string{"us-east-1b"}, pool: "p",
		},
		{
			name: "zone id", reason: "a zone may be named by its id",
			pod: newPod("a", "1", "1Gi", selects("topology.k8s.aws/zone-id", "use1-az3")), pools: []*karpv1.NodePool{nodePool("p")},
			first: "m6g.large", capacityType: "spot", zones: []string{"us-east-1c"}, pool: "p",
		},
		{
			name: "capacity type", reason: "a pod may insist on on-demand",
			pod: newPod("a", "1", "1Gi", selects(karpv1.CapacityTypeLabelKey, "on-demand")), pools: []*karpv1.NodePool{nodePool("p")},
			first: "m6g.large", capacityType: "on-demand", zones: threeZones, pool: "p",
		},
		{
			name: "greater than", reason: "Gt compares integers, not strings",
			pod: newPod("a", "1", "1Gi", needs(expr("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpGt, "8"))), pools: []*karpv1.NodePool{nodePool("p")},
			first: "m6g.4xlarge", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "at least", reason: "NodePools know Gte, which includes its bound",
			pod:   newPod("a", "1", "1Gi"),
			pools: []*karpv1.NodePool{nodePool("p", requires("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpGte, "8"))},
			first: "m6g.2xlarge", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "second alternative", reason: "any one term of a node affinity is enough",
			pod: newPod("a", "1", "1Gi", needs(expr(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "riscv"),
				expr("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "r"))), pools: []*karpv1.NodePool{nodePool("p")},
			first: "r6i.large", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "weight", reason: "the heavier pool gets the pod even where it is dearer",
			pod: newPod("a", "1", "1Gi"), pools: []*karpv1.NodePool{nodePool("light"), nodePool("heavy", weighs(10), onDemand(), intel)},
			first: "c5.large", capacityType: "on-demand", zones: threeZones, pool: "heavy",
		},
		{
			name: "fallback by limit", reason: "a pool whose limit is used up leaves the pod to the next one",
			pod: newPod("a", "1", "1Gi"), pools: []*karpv1.NodePool{nodePool("light"), nodePool("heavy", weighs(10), limit(corev1.ResourceCPU, "1"))},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "light",
		},
		{
			name: "devices asked for", reason: "a GPU is bought for those who ask for it",
			pod: newPod("a", "1", "1Gi", asks("nvidia.com/gpu", "1")), pools: []*karpv1.NodePool{nodePool("p")},
			first: "g5.xlarge", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "only devices", reason: "where there are only machines with GPUs, they will do for everybody",
			pod:   newPod("a", "1", "1Gi"),
			pools: []*karpv1.NodePool{nodePool("p", requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "g"))},
			first: "g5.xlarge", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "custom label of the pool", reason: "a requirement with one value labels the node",
			pod: newPod("a", "1", "1Gi", selects("team", "x")), pools: []*karpv1.NodePool{nodePool("p", requires("team", corev1.NodeSelectorOpIn, "x"))},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "p", labels: map[string]string{"team": "x"},
		},
		{
			name: "custom label of the pod", reason: "where the pool says Exists, the pod chooses the value",
			pod: newPod("a", "1", "1Gi", selects("team", "y")), pools: []*karpv1.NodePool{nodePool("p", requires("team", corev1.NodeSelectorOpExists))},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "p", labels: map[string]string{"team": "y"},
		},
		{
			name: "init containers", reason: "an init container needs its room before the others need theirs",
			pod: newPod("a", "100m", "100Mi", func(pod *corev1.Pod) {
				pod.Spec.InitContainers = []corev1.Container{{Name: "i", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}
			}), pools: []*karpv1.NodePool{nodePool("p", onDemand())},
			first: "m6g.xlarge", capacityType: "on-demand", zones: threeZones, pool: "p",
		},
		{
			name: "tolerated taint", reason: "a pod that tolerates the pool's taint may use it",
			pod: newPod("a", "1", "1Gi", func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
			}), pools: []*karpv1.NodePool{nodePool("p", tainted("dedicated"))},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "p",
		},
		{
			name: "startup taint", reason: "startup taints are gone before pods come",
			pod: newPod("a", "1", "1Gi"), pools: []*karpv1.NodePool{nodePool("p", func(pool *karpv1.NodePool) {
				pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoSchedule}}
			})},
			first: "m6g.large", capacityType: "spot", zones: threeZones, pool: "p",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{test.pod}}
			for _, pool := range test.pools {
				w.pools = append(w.pools, plan.Pool{NodePool: pool, Types: smallCatalogue()})
			}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims, want 1 (%s): %v", len(p.Claims), test.reason, p.Unplaced)
			}
			c := p.Claims[0]
			if c.InstanceTypes[0] != test.first || c.CapacityType != test.capacityType || c.NodePool != test.pool || !slices.Equal(c.Zones, test.zones) {
				t.Errorf("claim of %s for %s %s in %v, want %s for %s %s in %v: %s", c.NodePool, c.CapacityType, c.InstanceTypes[0], c.Zones,
					test.pool, test.capacityType, test.first, test.zones, test.reason)
			}
			for key, value := range test.labels {
				if c.Labels[key] != value {
					t.Errorf("label %s is %q, want %q: %s", key, c.Labels[key], value, test.reason)
				}
			}
		})
	}
}

// A pod that cannot be placed is left with the shortest true sentence per pool.
func TestWhyNothingIsBought(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		pod        *corev1.Pod
		pool       *karpv1.NodePool
	}{
		{name: "taint", want: "taint dedicated:NoSchedule is not tolerated", pod: newPod("a", "1", "1Gi"), pool: nodePool("p", tainted("dedicated"))},
		{name: "not ready", want: "it is not Ready: no subnets", pod: newPod("a", "1", "1Gi"), pool: nodePool("p", notReady("no subnets"))},
		{name: "static", want: "it is static: its size does not follow the pods", pod: newPod("a", "1", "1Gi"),
			pool: nodePool("p", func(pool *karpv1.NodePool) { n := int64(3); pool.Spec.Replicas = &n })},
		{name: "label nobody defines", want: "team In [x] is not met: the pool does not define the label",
			pod: newPod("a", "1", "1Gi", selects("team", "x")), pool: nodePool("p")},
		{name: "label with another value", want: `team In [x] is not met: the pool's nodes have "y"`,
			pod: newPod("a", "1", "1Gi", selects("team", "x")), pool: nodePool("p", requires("team", corev1.NodeSelectorOpIn, "y"))},
		{name: "architecture", want: "no instance type has kubernetes.io/arch In [riscv]",
			pod: newPod("a", "1", "1Gi", selects(corev1.LabelArchStable, "riscv")), pool: nodePool("p")},
		{name: "zone", want: "nothing is offered in zone us-east-1z",
			pod: newPod("a", "1", "1Gi", selects(corev1.LabelTopologyZone, "us-east-1z")), pool: nodePool("p")},
		{name: "cpu", want: "cpu 500 is more than any instance type leaves for pods (63.77)", pod: newPod("a", "500", "1Gi"), pool: nodePool("p")},
		{name: "memory", want: "memory 900Gi is more than any instance type leaves for pods (465.3Gi)", pod: newPod("a", "1", "900Gi"), pool: nodePool("p")},
		{name: "device", want: "no instance type has example.com/fpga", pod: newPod("a", "1", "1Gi", asks("example.com/fpga", "1")), pool: nodePool("p")},
		{name: "limit", want: "limit cpu 1 leaves 1", pod: newPod("a", "1", "1Gi"), pool: nodePool("p", limit(corev1.ResourceCPU, "1"))},
		{name: "limit of nodes", want: "limit nodes 0 leaves 0", pod: newPod("a", "1", "1Gi"), pool: nodePool("p", limit(karpv1.ResourceNodes, "0"))},
		{name: "hostname", want: "kubernetes.io/hostname In [h] can be met only by a node that exists",
			pod: newPod("a", "1", "1Gi", selects(corev1.LabelHostname, "h")), pool: nodePool("p")},
		{name: "both", want: "there is no arm64 instance type with karpenter.k8s.aws/instance-category In [r]",
			pod: newPod("a", "1", "1Gi", selects(corev1.LabelArchStable, "arm64"), func(pod *corev1.Pod) {
				pod.Spec.NodeSelector["karpenter.k8s.aws/instance-category"] = "r"
			}), pool: nodePool("p")},
		{name: "devices by claim", want: "it asks for devices by dynamic resource allocation, which is not planned for",
			pod: newPod("a", "1", "1Gi", func(pod *corev1.Pod) { pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} }), pool: nodePool("p")},
		{name: "fields", want: "its node affinity uses matchFields, which no NodePool can meet", pod: newPod("a", "1", "1Gi", needs(corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n"}}},
		})), pool: nodePool("p")},
		{name: "too little choice", want: "minValues asks for 40 values of karpenter.k8s.aws/instance-family, and only 6 have any instance type", pod: newPod("a", "1", "1Gi"), pool: nodePool("p", func(pool *karpv1.NodePool) {
			n := 40
			pool.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{
				Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpExists, MinValues: &n}}
		})},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{{NodePool: test.pool, Types: smallCatalogue()}}}
			p := plan.Pack(w.input())
			if len(p.Unplaced) != 1 {
				t.Fatalf("%d pods are unplaced, want 1; claims %v", len(p.Unplaced), p.Claims)
			}
			if got := p.Unplaced[0].Reasons[0].Message; !strings.HasPrefix(got, test.want) {
				t.Errorf("reason %q, want %q", got, test.want)
			}
		})
	}
}

// existing makes an empty node of a type.
func existing(name, typ string, options ...func(*plan.Node)) *plan.Node {
	catalogue := smallCatalogue()
	i := slices.IndexFunc(catalogue, func(t *cloud.InstanceType) bool { return t.Name == typ })
	labels := map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "us-east-1a", karpv1.NodePoolLabelKey: "p"}
	for key, value := range catalogue[i].Labels {
		labels[key] = value
	}
	n := &plan.Node{
		Name: name, Claim: "claim-" + name, Pool: "p", Labels: labels, InstanceType: typ, Created: now.Add(-time.Hour), InitializedAt: now.Add(-time.Hour),
		Capacity: plan.ResourcesOf(catalogue[i].Capacity), Allocatable: plan.ResourcesOf(catalogue[i].Allocatable),
		Launched: true, Registered: true, Initialized: true, Ready: true,
	}
	for _, option := range options {
		option(n)
	}
	return n
}

// Pods go to existing nodes before anything is bought.
func TestExistingNodes(t *testing.T) {
	t.Parallel()
	unready := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	joining := func(n *plan.Node) { n.Initialized = false; n.Taints = []corev1.Taint{unready} }
	inFlight := func(n *plan.Node) {
		n.Name, n.Launched, n.Registered, n.Initialized, n.Ready = "", false, false, false, false
		n.Labels = map[string]string{karpv1.NodePoolLabelKey: "p"}
		n.Capacity, n.Allocatable = plan.Resources{}, plan.Resources{}
		n.Requirements = model.Term{among(corev1.LabelInstanceTypeStable, "m6i.xlarge", "m6i.large")}
	}
	tests := []struct {
		name, reason string
		node         *plan.Node
		pods         []*corev1.Pod
		placed       int
	}{
		{name: "room", reason: "two of three pods fit", node: existing("n", "m6i.large"), pods: manyPods(3, "a", "900m", "1Gi"), placed: 2},
		{name: "cordoned", reason: "a cordoned node takes nothing",
			node: existing("n", "m6i.large", func(n *plan.Node) { n.Cordoned = true }), pods: manyPods(1, "a", "1", "1Gi"), placed: 0},
		{name: "deleting", reason: "a node that goes away takes nothing",
			node: existing("n", "m6i.large", func(n *plan.Node) { n.Deleting = true }), pods: manyPods(1, "a", "1", "1Gi"), placed: 0},
		{name: "disrupted", reason: "a node that is being drained takes nothing",
			node: existing("n", "m6i.large", func(n *plan.Node) { n.Disrupted = true }), pods: manyPods(1, "a", "1", "1Gi"), placed: 0},
		{name: "tainted", reason: "taints of an initialized node count",
			node: existing("n", "m6i.large", func(n *plan.Node) { n.Taints = []corev1.Taint{unready} }), pods: manyPods(1, "a", "1", "1Gi"), placed: 0},
		{name: "joining", reason: "a node that has just joined is about to lose Kubernetes' own taints",
			node: existing("n", "m6i.large", joining), pods: manyPods(1, "a", "1", "1Gi"), placed: 1},
		{name: "hostname", reason: "a pod may insist on a node that exists", node: existing("n", "m6i.large"),
			pods: manyPods(1, "a", "1", "1Gi", selects(corev1.LabelHostname, "n")), placed: 1},
		{name: "other labels", reason: "a node without the label is no node for the pod", node: existing("n", "m6i.large"),
			pods: manyPods(1, "a", "1", "1Gi", selects("team", "x")), placed: 0},
		{name: "in flight", reason: "a claim without machine offers what the smallest it may become offers",
			node: existing("n", "m6i.large", inFlight), pods: manyPods(3, "a", "900m", "1Gi"), placed: 2},
		{name: "in flight elsewhere", reason: "a claim that may become another architecture does not count",
			node: existing("n", "m6i.large", inFlight), pods: manyPods(1, "a", "1", "1Gi", selects(corev1.LabelArchStable, "arm64")), placed: 0},
		{name: "host port", reason: "a host port is there once", node: existing("n", "m6i.xlarge"), pods: manyPods(2, "a", "100m", "1Gi", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}}
		}), placed: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: []*plan.Node{test.node}, pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
			if p := plan.Pack(w.input()); len(p.Placements) != test.placed {
				t.Errorf("%d pods are placed, want %d: %s", len(p.Placements), test.placed, test.reason)
			}
		})
	}
}

// Promises are kept: planning again while the machines boot buys nothing.
func TestPlanningAgainBuysNothing(t *testing.T) {
	t.Parallel()
	w := world{pods: append(manyPods(60, "a", "700m", "2Gi"), manyPods(40, "b", "2", "1Gi")...)}
	pool := nodePool("p")
	w.pools = []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}
	first := plan.Pack(w.input())
	check(t, &w, first)
	for _, forget := range []bool{false, true} {
		again := world{pods: w.pods, pools: w.pools, intern: w.interner()}
		for i := range first.Claims {
			object, err := first.Claims[i].NodeClaim(pool, fmt.Sprintf("claim-%d", i))
			if err != nil {
				t.Fatal(err)
			}
			n := w.interner().Claim(object)
			if !forget {
				n.Promised = first.Claims[i].Pods
			}
			again.nodes = append(again.nodes, n)
		}
		second := plan.Pack(again.input())
		if !forget && (len(second.Claims) > 0 || len(second.Placements) != 100) {
			t.Errorf("%d claims and %d placements, want 0 and 100", len(second.Claims), len(second.Placements))
		}
		if extra := second.PricePerHour(); extra > 0.35*first.PricePerHour() {
			t.Errorf("without memory of its promises, planning again buys for $%.3f on top of $%.3f", extra, first.PricePerHour())
		}
	}
}

// Pods of a node that is going away wait for another, except those that must not be moved.
func TestPodsOfGoingNodes(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	bound := func(name string, options ...func(*corev1.Pod)) *plan.Pod {
		return in.Pod(newPod(name, "1", "1Gi", append(options, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" })...))
	}
	owned := func(kind string) func(*corev1.Pod) {
		yes := true
		return func(pod *corev1.Pod) {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "o", Controller: &yes}}
		}
	}
	deleted := func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: now} }
	stays := func(pod *corev1.Pod) { pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"} }
	tests := []struct {
		name string
		pod  *plan.Pod
		// ends is when the node ends, from now; zero means never.
		ends time.Duration
		want int
	}{
		{name: "of a workload", pod: bound("a", owned("ReplicaSet")), ends: 0, want: 1},
		{name: "of a DaemonSet", pod: bound("a", owned("DaemonSet")), ends: 0, want: 0},
		{name: "of the node", pod: bound("a", owned("Node")), ends: 0, want: 0},
		{name: "terminating", pod: bound("a", owned("ReplicaSet"), deleted), ends: 0, want: 0},
		{name: "terminating, of a StatefulSet", pod: bound("a", owned("StatefulSet"), deleted), ends: 0, want: 1},
		{name: "not to be disrupted", pod: bound("a", stays), ends: 0, want: 0},
		{name: "not to be disrupted, lost in a day", pod: bound("a", stays), ends: 24 * time.Hour, want: 0},
		{name: "not to be disrupted, lost in a minute", pod: bound("a", stays), ends: time.Minute, want: 1},
		{name: "finished", pod: bound("a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), ends: 0, want: 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := existing("n", "m6i.large", func(n *plan.Node) { n.Deleting = true; n.Pods = []*plan.Pod{test.pod} })
			if test.ends > 0 {
				n.EndsAt = now.Add(test.ends)
			}
			w := world{nodes: []*plan.Node{n}, intern: in, pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
			if p := plan.Pack(w.input()); len(p.Claims) != test.want {
				t.Errorf("%d claims, want %d", len(p.Claims), test.want)
			}
		})
	}
}

// DaemonSets take their share exactly where they run.
func TestDaemonSetsCountWhereTheyRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reason, first string
		daemon              *corev1.Pod
	}{
		{name: "everywhere", reason: "pod and daemon together need the next size", first: "m6g.xlarge", daemon: newPod("d", "500m", "1Gi")},
		{name: "other architecture", reason: "a daemon that does not run there takes nothing", first: "m6g.large",
			daemon: newPod("d", "500m", "1Gi", selects(corev1.LabelArchStable, "amd64"))},
		{name: "other capacity type", reason: "a daemon for spot takes nothing on demand", first: "m6g.large",
			daemon: newPod("d", "500m", "1Gi", selects(karpv1.CapacityTypeLabelKey, "spot"))},
		{name: "other label", reason: "a daemon for nodes of another kind takes nothing", first: "m6g.large",
			daemon: newPod("d", "500m", "1Gi", selects("team", "x"))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(1, "a", "1700m", "1Gi", selects(corev1.LabelArchStable, "arm64"))}
			w.addDaemonSet("d", test.daemon.Spec)
			w.pools = []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}
			p := plan.Pack(w.input())
			check(t, &w, p)
			if got := p.Claims[0].InstanceTypes[0]; got != test.first {
				t.Errorf("%s is bought, want %s: %s", got, test.first, test.reason)
			}
		})
	}
}

// minValues keeps enough choice, or the launch has less and says so.
func TestMinValues(t *testing.T) {
	t.Parallel()
	families := func(n int) func(*karpv1.NodePool) {
		return func(pool *karpv1.NodePool) {
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
				Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpExists, MinValues: &n})
		}
	}
	pods := manyPods(50, "a", "900m", "3Gi")
	w := world{pods: pods, pools: []plan.Pool{{NodePool: nodePool("p", families(4)), Types: smallCatalogue()}}}
	p := plan.Pack(w.input())
	check(t, &w, p)
	for _, c := range p.Claims {
		seen := map[string]bool{}
		for _, name := range c.InstanceTypes {
			family, _, _ := strings.Cut(name, ".")
			seen[family] = true
		}
		if len(seen) < 4 || c.MinValuesRelaxed {
			t.Errorf("a claim chooses from %d families, want 4", len(seen))
		}
	}
	w.pools = []plan.Pool{{NodePool: nodePool("p", families(30)), Types: smallCatalogue()}}
	in := w.input()
	if p := plan.Pack(in); len(p.Claims) > 0 {
		t.Error("strict minValues that cannot be met buy nothing")
	}
	in.MinValues = plan.MinValuesBestEffort
	p = plan.Pack(in)
	if len(p.Unplaced) > 0 || len(p.Claims) == 0 || !p.Claims[0].MinValuesRelaxed {
		t.Errorf("best effort buys with less choice and says so; %d are unplaced", len(p.Unplaced))
	}
}

// Offerings without capacity are left out until they may be tried again.
func TestUnavailableOfferings(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(1, "a", "1", "1Gi"), pools: []plan.Pool{{NodePool: nodePool("p", onDemand()), Types: smallCatalogue()}}}
	in := w.input()
	in.Unavailable = map[cloud.OfferingKey]time.Time{}
	for _, zone := range threeZones {
		in.Unavailable[cloud.OfferingKey{InstanceType: "m6g.large", Zone: zone, CapacityType: "on-demand"}] = now.Add(time.Minute)
		in.Unavailable[cloud.OfferingKey{InstanceType: "c5.large", Zone: zone, CapacityType: "on-demand"}] = now.Add(-time.Minute)
	}
	if got := plan.Pack(in).Claims[0].InstanceTypes; got[0] != "c5.large" || slices.Contains(got, "m6g.large") {
		t.Errorf("types %v, want c5.large first and no m6g.large", got)
	}
}

// Claims that are alike share a group.
func TestAlikeClaimsShareAGroup(t *testing.T) {
	t.Parallel()
	w := world{pods: manyPods(400, "a", "900m", "3Gi"), pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
	p := plan.Pack(w.input())
	groups := map[string]int{}
	for _, c := range p.Claims {
		groups[c.Group]++
		if len(c.InstanceTypes) == 0 {
			t.Fatal("a claim has no instance type")
		}
	}
	if len(groups) > 3 || len(p.Claims) < 4 {
		t.Errorf("%d claims are in %d groups", len(p.Claims), len(groups))
	}
}

// The NodeClaim is complete when it is created.
func TestNodeClaimObject(t *testing.T) {
	t.Parallel()
	pool := nodePool("p", tainted("dedicated"), requires("team", corev1.NodeSelectorOpIn, "x"),
		func(pool *karpv1.NodePool) {
			pool.Spec.Template.Labels = map[string]string{"tier": "gold"}
			pool.Spec.Template.Annotations = map[string]string{"note": "n"}
		})
	tolerant := func(pod *corev1.Pod) {
		pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	w := world{pods: manyPods(1, "a", "1", "1Gi", tolerant), pools: []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}}
	p := plan.Pack(w.input())
	claim, err := p.Claims[0].NodeClaim(pool, "p-abcde")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"tier": "gold", "team": "x", karpv1.NodePoolLabelKey: "p", "karpenter.k8s.aws/ec2nodeclass": "default"} {
		if claim.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, claim.Labels[key], want)
		}
	}
	owner := claim.OwnerReferences[0]
	if owner.UID != types.UID("pool-p") || owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %v", owner)
	}
	if !slices.Contains(claim.Finalizers, karpv1.TerminationFinalizer) || claim.Annotations[karpv1.NodePoolHashAnnotationKey] == "" || claim.Annotations["note"] != "n" {
		t.Errorf("finalizers %v, annotations %v", claim.Finalizers, claim.Annotations)
	}
	if len(claim.Spec.Taints) != 1 || claim.Spec.ExpireAfter.IsNever() {
		t.Errorf("spec %v", claim.Spec)
	}
	keys, err := plan.Offerings(nodeclass.Labels(), claim, smallCatalogue(), nil, now, plan.MinValuesStrict)
	if err != nil || keys[0].InstanceType != p.Claims[0].InstanceTypes[0] || keys[0].CapacityType != "spot" {
		t.Errorf("offerings %v, %v", keys, err)
	}
}
