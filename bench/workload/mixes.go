package workload

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

const gpu = "nvidia.com/gpu"

// kind is a kind of application: the sizes from which its Deployments draw.
type kind struct {
	name string
	// cpu is in thousandths of a core, memory in MiB.
	cpu, memory []int64
	// replicas is the range of a Deployment's replicas, from least to most.
	replicas [2]int
	gpus     []int64
}

// Kinds of applications found in clusters.
var (
	web       = kind{name: "web", cpu: []int64{100, 200, 250, 300, 500}, memory: []int64{128, 256, 384, 512, 768}, replicas: [2]int{2, 80}}
	services  = kind{name: "service", cpu: []int64{20, 50, 100, 150, 400}, memory: []int64{48, 64, 128, 200, 512, 900}, replicas: [2]int{1, 4}}
	batch     = kind{name: "batch", cpu: []int64{1000, 2000, 3500, 4000, 7500}, memory: []int64{1024, 2048, 4096, 7000, 8192}, replicas: [2]int{10, 120}}
	jvm       = kind{name: "jvm", cpu: []int64{500, 1000, 1500, 2000}, memory: []int64{1536, 2560, 4096, 6144, 9000}, replicas: [2]int{2, 50}}
	databases = kind{name: "database", cpu: []int64{500, 1000, 2000, 4000}, memory: []int64{8192, 16384, 24576, 49152}, replicas: [2]int{1, 9}}
	proxies   = kind{name: "proxy", cpu: []int64{900, 1800, 3000, 6000}, memory: []int64{256, 512, 1024}, replicas: [2]int{3, 40}}
	training  = kind{name: "training", cpu: []int64{3000, 6000, 12000}, memory: []int64{12000, 24000, 48000}, replicas: [2]int{1, 8}, gpus: []int64{1, 1, 2, 4}}
	inference = kind{name: "inference", cpu: []int64{1000, 2000, 3500}, memory: []int64{4096, 8192, 14000}, replicas: [2]int{2, 20}, gpus: []int64{1}}
)

// constraint changes the pods of one Deployment.
type constraint func(d draw, pod *corev1.Pod)

func selecting(key, value string) constraint {
	return func(_ draw, pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{key: value} }
}

func spreading(key string) constraint {
	return func(_ draw, pod *corev1.Pod) {
		pod.Spec.TopologySpreadConstraints = append(pod.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}})
	}
}

func apart(_ draw, pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(pod.Labels, corev1.LabelHostname)}}}
}

var (
	onDemand    = selecting(karpv1.CapacityTypeLabelKey, karpv1.CapacityTypeOnDemand)
	arm64       = selecting(corev1.LabelArchStable, karpv1.ArchitectureArm64)
	zonal       = spreading(corev1.LabelTopologyZone)
	overHosts   = spreading(corev1.LabelHostname)
	inZoneB     = selecting(corev1.LabelTopologyZone, "us-east-1b")
	unchanged   = func(draw, *corev1.Pod) {}
	zoneAndHost = func(d draw, pod *corev1.Pod) { zonal(d, pod); overHosts(d, pod) }
)

// mix is a batch as it arrives when a cluster is filled: pods of several kinds of application.
type mix struct {
	name    string
	parts   []part
	daemons int
}

// part is a kind of application, its number of pods, and the constraints of which each Deployment gets one.
type part struct {
	kind        kind
	pods        int
	constraints []constraint
}

var mixes = []mix{
	{name: "web", parts: []part{{web, 600, nil}}},
	{name: "web-zones", parts: []part{{web, 600, []constraint{zonal}}}},
	{name: "web-hosts", parts: []part{{web, 300, []constraint{unchanged, overHosts}}, {services, 100, nil}}},
	{name: "services", parts: []part{{services, 500, nil}}},
	{name: "batch", parts: []part{{batch, 500, nil}}},
	{name: "batch-some-on-demand", parts: []part{{batch, 300, []constraint{onDemand, unchanged}}}},
	{name: "jvm", parts: []part{{jvm, 400, nil}}},
	{name: "jvm-apart", parts: []part{{jvm, 300, []constraint{unchanged, unchanged, apart}}}},
	{name: "databases", parts: []part{{databases, 120, []constraint{apart, onDemand, unchanged}}}},
	{name: "proxies", parts: []part{{proxies, 300, []constraint{zonal, unchanged}}}},
	{name: "training", parts: []part{{training, 60, nil}}},
	{name: "inference-and-web", parts: []part{{inference, 60, nil}, {web, 300, []constraint{unchanged, zonal}}}},
	{name: "daemons-and-web", parts: []part{{web, 500, nil}}, daemons: 9},
	{name: "daemons-and-services", parts: []part{{services, 300, nil}, {jvm, 100, nil}}, daemons: 12},
	{name: "arm64", parts: []part{{web, 300, []constraint{arm64, unchanged}}, {jvm, 150, []constraint{arm64}}}},
	{name: "spread", parts: []part{{web, 200, []constraint{zonal, overHosts, zoneAndHost}}, {jvm, 100, []constraint{zonal}}}},
	{name: "shop", parts: []part{{web, 300, []constraint{zonal}}, {jvm, 150, nil}, {databases, 30, []constraint{apart, onDemand}}}, daemons: 4},
	{name: "one-zone", parts: []part{{web, 200, []constraint{inZoneB, unchanged}}, {batch, 150, nil}}, daemons: 3},
	{name: "platform", parts: []part{{services, 250, nil}, {proxies, 60, []constraint{zonal, apart}}, {batch, 100, nil}}, daemons: 6},
	{name: "everything", parts: []part{{web, 200, []constraint{unchanged, zonal, onDemand}}, {services, 80, nil}, {batch, 100, nil},
		{jvm, 100, []constraint{arm64, unchanged}}, {databases, 20, []constraint{apart}}, {inference, 20, nil}}, daemons: 5},
}

// Mixes returns twenty batches of realistic workloads, each in an empty cluster with a pool of general machines of either
// architecture and a tainted pool of machines with GPUs, spot or on-demand.
func Mixes(catalogue []*cloud.InstanceType) []*compare.Question {
	return mixed(catalogue, "", karpv1.CapacityTypeSpot, karpv1.CapacityTypeOnDemand)
}

// OnDemandMixes returns the same batches with pools that buy on-demand machines only.
func OnDemandMixes(catalogue []*cloud.InstanceType) []*compare.Question {
	return mixed(catalogue, "-on-demand", karpv1.CapacityTypeOnDemand)
}

func mixed(catalogue []*cloud.InstanceType, suffix string, kinds ...string) []*compare.Question {
	questions := make([]*compare.Question, len(mixes))
	for i, m := range mixes {
		d := newDraw(100 + uint64(i))
		q := Ask("mix-"+m.name+suffix, nil, catalogue, general(kinds...), accelerated(kinds...))
		for _, p := range m.parts {
			q.Pods = append(q.Pods, d.deployments(p)...)
		}
		for k := range m.daemons {
			q.DaemonSets = append(q.DaemonSets, d.daemonSet(k))
		}
		questions[i] = q
	}
	return questions
}

// general returns the pool that most clusters have.
func general(kinds ...string) *karpv1.NodePool {
	return Pool("general",
		Requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"),
		Requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "4"),
		Requires(corev1.LabelArchStable, corev1.NodeSelectorOpIn, karpv1.ArchitectureAmd64, karpv1.ArchitectureArm64),
		Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, kinds...))
}

// accelerated returns a pool for pods that ask for GPUs, with a taint that keeps others away.
func accelerated(kinds ...string) *karpv1.NodePool {
	return Pool("accelerated",
		Requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "g"),
		Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, kinds...),
		func(pool *karpv1.NodePool) {
			pool.Spec.Template.Spec.Taints = []corev1.Taint{{Key: gpu, Value: "true", Effect: corev1.TaintEffectNoSchedule}}
		})
}

// deployments returns the pods of as many Deployments as the part needs.
func (d draw) deployments(p part) []*corev1.Pod {
	var pods []*corev1.Pod
	for n := 0; len(pods) < p.pods; n++ {
		name := fmt.Sprintf("%s-%02d", p.kind.name, n)
		labels := map[string]string{"app": name}
		requests := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewMilliQuantity(one(d, p.kind.cpu...), resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(one(d, p.kind.memory...)<<20, resource.BinarySI),
		}
		if len(p.kind.gpus) > 0 {
			requests[gpu] = *resource.NewQuantity(one(d, p.kind.gpus...), resource.DecimalSI)
		}
		apply := constraint(unchanged)
		if len(p.constraints) > 0 {
			apply = one(d, p.constraints...)
		}
		replicas := p.kind.replicas[0] + d.IntN(p.kind.replicas[1]-p.kind.replicas[0]+1)
		for k := range min(replicas, p.pods-len(pods)) {
			replica := pod("default", fmt.Sprintf("%s-%03d", name, k), requests, labels)
			if len(p.kind.gpus) > 0 {
				replica.Spec.Tolerations = []corev1.Toleration{{Key: gpu, Operator: corev1.TolerationOpExists}}
			}
			apply(d, replica)
			pods = append(pods, replica)
		}
	}
	return pods
}

// daemonSet returns one of the DaemonSets that run on every node: agents for logs, metrics, the network, security.
func (d draw) daemonSet(n int) *appsv1.DaemonSet {
	labels := map[string]string{"daemon": fmt.Sprint(n)}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: fmt.Sprintf("daemon-%02d", n), UID: types.UID(fmt.Sprintf("daemon-%02d", n))},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{Name: "main", Image: "registry.example/daemon:1", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{
						corev1.ResourceCPU:    *resource.NewMilliQuantity(one[int64](d, 10, 25, 50, 100), resource.DecimalSI),
						corev1.ResourceMemory: *resource.NewQuantity(one[int64](d, 32, 64, 128, 256)<<20, resource.BinarySI),
					}}}},
			}}},
	}
}
