package plan_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// machineSpec is an instance type in short form.
type machineSpec struct {
	name    string
	arch    string
	cores   float64
	memory  float64 // GiB
	pods    int64
	price   float64
	gpus    int64
	zones   []string
	kinds   []string
	devices string
}

var (
	threeZones = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	nameParts  = regexp.MustCompile(`^([a-z]+)(\d+)`)
)

// instanceType makes the type as the AWS provider would: labels, and allocatable by the formulas for AL2023.
func (s machineSpec) instanceType() *cloud.InstanceType {
	family, size, _ := strings.Cut(s.name, ".")
	labels := map[string]string{
		corev1.LabelInstanceTypeStable:      s.name,
		corev1.LabelArchStable:              cmp.Or(s.arch, "amd64"),
		corev1.LabelOSStable:                "linux",
		corev1.LabelTopologyRegion:          "us-east-1",
		"karpenter.k8s.aws/instance-family": family,
		"karpenter.k8s.aws/instance-size":   size,
		"karpenter.k8s.aws/instance-cpu":    strconv.Itoa(int(s.cores)),
		"karpenter.k8s.aws/instance-memory": strconv.Itoa(int(s.memory * 1024)),
	}
	if parts := nameParts.FindStringSubmatch(family); parts != nil {
		labels["karpenter.k8s.aws/instance-category"] = parts[1][:1]
		labels["karpenter.k8s.aws/instance-generation"] = parts[2]
	}
	pods := cmp.Or(s.pods, 110)
	memory := int64(s.memory*1024*0.925) << 20
	capacity := plan.Resources{CPU: int64(s.cores * 1000), Memory: memory, EphemeralStorage: 20 << 30, Pods: pods}
	if s.gpus > 0 {
		name := cmp.Or(s.devices, "nvidia.com/gpu")
		capacity.Extended = []plan.Amount{{Name: name, Value: s.gpus}}
		if name == "nvidia.com/gpu" {
			labels["karpenter.k8s.aws/instance-gpu-count"] = strconv.Itoa(int(s.gpus))
		}
	}
	allocatable := capacity
	allocatable.CPU -= reservedCPU(int(s.cores))
	allocatable.Memory -= (11*pods + 255 + 100) << 20
	allocatable.EphemeralStorage = 17 << 30
	typ := &cloud.InstanceType{Name: s.name, BareMetal: strings.HasPrefix(size, "metal"), Labels: labels, Capacity: capacity.List(), Allocatable: allocatable.List()}
	for z, zone := range orDefault(s.zones, threeZones) {
		for _, kind := range orDefault(s.kinds, []string{"on-demand", "spot"}) {
			price := s.price
			if kind == "spot" {
				price = s.price * (0.31 + 0.01*float64(z))
			}
			typ.Offerings = append(typ.Offerings, cloud.Offering{
				CapacityType: kind, Zone: zone, ZoneID: "use1-az" + strconv.Itoa(z+1), Price: price, Available: true})
		}
	}
	return typ
}

func reservedCPU(cores int) int64 {
	reserved := 0.0
	for core := 1; core <= cores; core++ {
		switch {
		case core == 1:
			reserved += 60
		case core == 2:
			reserved += 10
		case core <= 4:
			reserved += 5
		default:
			reserved += 2.5
		}
	}
	return int64(reserved)
}

func orDefault[T any](values, otherwise []T) []T {
	if len(values) > 0 {
		return values
	}
	return otherwise
}

// smallCatalogue is a hand-made market: general, compute and memory machines of two architectures, and one with GPUs.
func smallCatalogue() []*cloud.InstanceType {
	var catalogue []*cloud.InstanceType
	add := func(family, arch string, memoryPerCore, pricePerCore float64) {
		for _, size := range []struct {
			name  string
			cores float64
			pods  int64
		}{{name: "large", cores: 2, pods: 29}, {name: "xlarge", cores: 4, pods: 58}, {name: "2xlarge", cores: 8, pods: 58}, {name: "4xlarge", cores: 16, pods: 234}, {name: "8xlarge", cores: 32, pods: 234}, {name: "16xlarge", cores: 64, pods: 737}} {
			catalogue = append(catalogue, machineSpec{name: family + "." + size.name, arch: arch, cores: size.cores,
				memory: memoryPerCore * size.cores, pods: size.pods, price: pricePerCore * size.cores}.instanceType())
		}
	}
	add("c6i", "amd64", 2, 0.0425)
	add("m6i", "amd64", 4, 0.048)
	add("r6i", "amd64", 8, 0.063)
	add("m6g", "arm64", 4, 0.0385)
	add("c5", "amd64", 2, 0.0425)
	catalogue = append(catalogue,
		machineSpec{name: "g5.xlarge", cores: 4, memory: 16, pods: 58, price: 1.006, gpus: 1}.instanceType(),
		machineSpec{name: "g5.12xlarge", cores: 48, memory: 192, pods: 737, price: 5.672, gpus: 4}.instanceType())
	slices.SortFunc(catalogue, func(a, b *cloud.InstanceType) int { return strings.Compare(a.Name, b.Name) })
	return catalogue
}

// realCatalogue loads the catalogue of EC2, and skips the test if it is missing.
func realCatalogue(tb testing.TB) []*cloud.InstanceType {
	tb.Helper()
	data, err := os.ReadFile("../../shared/data/ec2-catalogue.json")
	if errors.Is(err, fs.ErrNotExist) {
		tb.Skip("the catalogue of EC2 is not here")
	}
	if err != nil {
		tb.Fatal(err)
	}
	var rows []struct {
		InstanceType, Arch             string
		VCPUs                          int `json:"vcpus"`
		MemoryMiB, IPv4PerENI          int64
		DefaultCardENIs                int64
		GPUCount, AcceleratorCount     int64
		GPUManufacturer                string
		AcceleratorManufacturer        string
		UsageClasses                   []string
		ODPriceUsEast1                 float64
		OfferedUsEast1, BareMetal      bool
		LocalNVMeGiB, GPULogicalCount  int64
		NetworkMbps, NetworkPeakMbps   int64
		Burstable, EncryptionInTransit bool
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		tb.Fatal(err)
	}
	var catalogue []*cloud.InstanceType
	for _, row := range rows {
		if row.ODPriceUsEast1 <= 0 || !row.OfferedUsEast1 {
			continue
		}
		spec := machineSpec{
			name: row.InstanceType, arch: map[string]string{"x86_64": "amd64"}[row.Arch], cores: float64(row.VCPUs),
			memory: float64(row.MemoryMiB) / 1024, pods: row.DefaultCardENIs*(row.IPv4PerENI-1) + 2,
			price: row.ODPriceUsEast1, gpus: row.GPUCount,
		}
		spec.arch = cmp.Or(spec.arch, row.Arch)
		if row.GPUManufacturer != "" && !strings.EqualFold(row.GPUManufacturer, "nvidia") {
			spec.devices = "amd.com/gpu"
		}
		if row.AcceleratorCount > 0 {
			spec.gpus, spec.devices = row.AcceleratorCount, "aws.amazon.com/neuron"
		}
		if !slices.Contains(row.UsageClasses, "spot") {
			spec.kinds = []string{"on-demand"}
		}
		catalogue = append(catalogue, spec.instanceType())
	}
	return catalogue
}

// nodePool makes a Ready pool; options change it.
func nodePool(name string, options ...func(*karpv1.NodePool)) *karpv1.NodePool {
	pool := &karpv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("pool-" + name)},
		Spec: karpv1.NodePoolSpec{
			Template: karpv1.NodeClaimTemplate{Spec: karpv1.NodeClaimTemplateSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
				ExpireAfter:  karpv1.NewNillableDuration(720 * time.Hour),
			}},
			Disruption: karpv1.Disruption{
				ConsolidationPolicy: karpv1.ConsolidationPolicyWhenEmptyOrUnderutilized,
				ConsolidateAfter:    karpv1.NewNillableDuration(0),
				Budgets:             []karpv1.Budget{{Nodes: "100%"}},
			},
		},
		Status: karpv1.NodePoolStatus{Conditions: []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: "True"}}},
	}
	for _, option := range options {
		option(pool)
	}
	return pool
}

func requires(key string, operator corev1.NodeSelectorOperator, values ...string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		spec := &pool.Spec.Template.Spec
		spec.Requirements = append(spec.Requirements,
			karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: operator, Values: values})
	}
}

func onDemand() func(*karpv1.NodePool) {
	return requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "on-demand")
}

// newPod makes a pod.
func newPod(name, cpu, memory string, options ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(now)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
		}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func manyPods(count int, prefix, cpu, memory string, options ...func(*corev1.Pod)) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = newPod(fmt.Sprintf("%s-%04d", prefix, i), cpu, memory, options...)
	}
	return pods
}

// world is what a test plans for.
type world struct {
	pods       []*corev1.Pod
	nodes      []*plan.Node
	daemons    []*plan.DaemonSet
	daemonSets []*appsv1.DaemonSet
	pools      []plan.Pool
	// bound are the pods on nodes, by the node's key. namespaces are the labels of namespaces.
	bound      map[string][]*corev1.Pod
	namespaces map[string]map[string]string
	policy     plan.PreferencePolicy
	intern     *plan.Interner
}

func (w *world) interner() *plan.Interner {
	if w.intern == nil {
		w.intern = new(plan.Interner)
	}
	return w.intern
}

func (w *world) input() plan.Input {
	in := w.interner()
	snapshot := &plan.Snapshot{Time: now, DaemonSets: w.daemons, Namespaces: w.namespaces, LabelKeys: nodeclass.Labels()}
	for _, n := range w.nodes {
		var pods []*plan.Pod
		for _, pod := range w.bound[n.Key()] {
			pods = append(pods, in.Pod(pod))
		}
		if len(pods) > 0 {
			n = n.WithPods(append(pods, n.Pods...))
		}
		snapshot.Nodes = append(snapshot.Nodes, n)
	}
	for _, pod := range w.pods {
		snapshot.Pending = append(snapshot.Pending, in.Pod(pod))
	}
	for _, pool := range w.pools {
		snapshot.NodePools = append(snapshot.NodePools, pool.NodePool)
	}
	return plan.Input{Snapshot: snapshot, Pools: w.pools, Preferences: w.policy}
}

// among returns a requirement of a claim: the label has one of the values.
func among(key string, values ...string) model.Condition {
	return model.NewCondition(key, corev1.NodeSelectorOpIn, values)
}
