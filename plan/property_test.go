package plan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// No plan breaks a rule, whatever is asked; and the same question has the same answer in any order.
func TestPlansBreakNoRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		in := w.input()
		p := plan.Pack(in)
		check(t, w, p)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		snapshot := *in.Snapshot
		snapshot.Pending = append([]*plan.Pod(nil), snapshot.Pending...)
		snapshot.Nodes = append([]*plan.Node(nil), snapshot.Nodes...)
		r.Shuffle(len(snapshot.Pending), func(i, j int) {
			snapshot.Pending[i], snapshot.Pending[j] = snapshot.Pending[j], snapshot.Pending[i]
		})
		r.Shuffle(len(snapshot.Nodes), func(i, j int) { snapshot.Nodes[i], snapshot.Nodes[j] = snapshot.Nodes[j], snapshot.Nodes[i] })
		again := in
		again.Snapshot = &snapshot
		if diff := cmp.Diff(p, plan.Pack(again), cmpopts.IgnoreUnexported(plan.Pod{}, plan.Class{}, plan.Labels{}),
			cmp.Comparer(func(a, b *plan.Pod) bool { return a == b })); diff != "" {
			t.Fatalf("the plan depends on the order of its input (-first +second):\n%s", diff)
		}
	})
}

func drawWorld(t *rapid.T) *world {
	w := &world{}
	catalogue := smallCatalogue()
	pools := rapid.IntRange(1, 3).Draw(t, "pools")
	for i := range pools {
		w.pools = append(w.pools, plan.Pool{NodePool: drawPool(t, fmt.Sprintf("pool-%d", i)), Types: catalogue})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "daemonsets") {
		w.addDaemonSet(fmt.Sprintf("daemon-%d", i), drawPod(t, fmt.Sprintf("daemon-%d", i)).Spec)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		typ := rapid.SampledFrom(catalogue).Draw(t, "node type")
		labels := map[string]string{corev1.LabelTopologyZone: rapid.SampledFrom(threeZones).Draw(t, "node zone"), "team": "a"}
		for key, value := range typ.Labels {
			labels[key] = value
		}
		w.nodes = append(w.nodes, &plan.Node{
			Name: fmt.Sprintf("node-%d", i), Claim: fmt.Sprintf("claim-%d", i), Pool: "pool-0", Labels: labels,
			Capacity: plan.ResourcesOf(typ.Capacity), Allocatable: plan.ResourcesOf(typ.Allocatable),
			Launched: true, Registered: true, Initialized: true, Ready: true,
			Cordoned: rapid.IntRange(0, 5).Draw(t, "cordoned") == 0,
		})
	}
	for s := range rapid.IntRange(1, 6).Draw(t, "shapes") {
		shape := drawPod(t, fmt.Sprintf("shape-%d", s))
		for i := range rapid.IntRange(1, 25).Draw(t, "count") {
			pod := shape.DeepCopy()
			pod.Name = fmt.Sprintf("%s-%d", shape.Name, i)
			pod.UID = types.UID("uid-" + pod.Name)
			w.pods = append(w.pods, pod)
		}
	}
	return w
}

func drawPool(t *rapid.T, name string) *karpv1.NodePool {
	pool := nodePool(name)
	spec := &pool.Spec.Template.Spec
	options := []func(*karpv1.NodePool){
		onDemand(),
		requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot"),
		requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m"),
		requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "5"),
		requires("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpLte, "16"),
		requires("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpGte, "4"),
		requires(corev1.LabelTopologyZone, corev1.NodeSelectorOpNotIn, "us-east-1a"),
		requires("team", corev1.NodeSelectorOpIn, "a"),
		requires("team", corev1.NodeSelectorOpIn, "a", "b", "c"),
		requires("team", corev1.NodeSelectorOpExists),
		func(pool *karpv1.NodePool) {
			pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
		},
		func(pool *karpv1.NodePool) {
			pool.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("24")}
		},
		func(pool *karpv1.NodePool) {
			pool.Spec.Limits = karpv1.Limits{karpv1.ResourceNodes: resource.MustParse("3")}
		},
		func(pool *karpv1.NodePool) { weight := int32(10); pool.Spec.Weight = &weight },
		func(pool *karpv1.NodePool) { pool.Spec.Template.Labels = map[string]string{"tier": "gold"} },
		func(pool *karpv1.NodePool) {
			count := 3
			pool.Spec.Template.Spec.Requirements = append(pool.Spec.Template.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{
				Key: "karpenter.k8s.aws/instance-family", Operator: corev1.NodeSelectorOpExists, MinValues: &count})
		},
	}
	_ = spec
	for range rapid.IntRange(0, 3).Draw(t, "pool options") {
		rapid.SampledFrom(options).Draw(t, "pool option")(pool)
	}
	return pool
}

func drawPod(t *rapid.T, name string) *corev1.Pod {
	pod := newPod(name, rapid.SampledFrom([]string{"0", "100m", "500m", "1", "1700m", "3", "7"}).Draw(t, "cpu"),
		rapid.SampledFrom([]string{"0", "64Mi", "1Gi", "3Gi", "11Gi", "40Gi"}).Draw(t, "memory"))
	expression := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	affinity := func(terms ...corev1.NodeSelectorTerm) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		}
	}
	selector := func(key, value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			if pod.Spec.NodeSelector == nil {
				pod.Spec.NodeSelector = map[string]string{}
			}
			pod.Spec.NodeSelector[key] = value
		}
	}
	one := func(r ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: r}
	}
	options := []func(*corev1.Pod){
		selector(corev1.LabelArchStable, "arm64"),
		selector(corev1.LabelTopologyZone, "us-east-1b"), selector(corev1.LabelTopologyZone, "us-east-1c"), selector(corev1.LabelTopologyZone, "us-east-1a"),
		selector(karpv1.CapacityTypeLabelKey, "on-demand"),
		selector("team", "a"), selector("team", "b"), selector("tier", "gold"),
		affinity(one(expression("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpNotIn, "m"))),
		affinity(one(expression("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpGt, "7"))),
		affinity(one(expression("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpLt, "9"), expression("team", corev1.NodeSelectorOpExists))),
		affinity(one(expression("karpenter.k8s.aws/instance-gpu-count", corev1.NodeSelectorOpDoesNotExist))),
		affinity(one(expression(corev1.LabelTopologyZone, corev1.NodeSelectorOpIn, "us-east-1c"), expression(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "spot")),
			one(expression(corev1.LabelArchStable, corev1.NodeSelectorOpIn, "arm64"))),
		affinity(one(expression("team", corev1.NodeSelectorOpNotIn, "a"))),
		affinity(one(expression(corev1.LabelHostname, corev1.NodeSelectorOpIn, "node-0"))),
		func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "x"})
		},
		func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		},
		func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
		},
		func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		},
		func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
		},
	}
	for range rapid.IntRange(0, 3).Draw(t, "pod options") {
		rapid.SampledFrom(options).Draw(t, "pod option")(pod)
	}
	return pod
}

// addDaemonSet adds a DaemonSet whose pods have the spec.
func (w *world) addDaemonSet(name string, spec corev1.PodSpec) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name)}}
	set.Spec.Template.Spec = spec
	w.daemonSets = append(w.daemonSets, set)
	w.daemons = append(w.daemons, w.interner().DaemonSet(set))
}
