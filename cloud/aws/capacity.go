package aws

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tenon-sh/tenon/cloud/aws/amifamily"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const mib = 1 << 20

// shape holds what determines the size of a node class's nodes.
type shape struct {
	maxPods        *int32
	podsPerCore    *int32
	kubeReserved   map[string]string
	systemReserved map[string]string
	evictionHard   map[string]string
	evictionSoft   map[string]string
	// raid0 makes the instance store the node's ephemeral storage.
	raid0 bool
	// rootVolume is the size of the volume that is the node's ephemeral storage otherwise, in bytes.
	rootVolume int64
	// family is the AMI family.
	family *amifamily.Family
	// vmOverhead is the share of memory that the hypervisor and the firmware take.
	vmOverhead float64
	// reservedENIs are network interfaces pods get no addresses from. efaOnlyENIs are those of the class that have none, on
	// the card that pods get addresses from.
	reservedENIs, efaOnlyENIs int64
	// ownInterfaces says that the class lists its nodes' network interfaces, and efas is how many of those are EFA. If
	// it lists none, a node whose claim requests EFA has as many EFA interfaces as its type supports.
	ownInterfaces bool
	efas          int64
}

// shapeOf returns the shape of a class's nodes.
func shapeOf(class *awsv1.EC2NodeClass, vmOverhead float64, reservedENIs int64) shape {
	s := shape{
		family:       amifamily.Of(class.AMIFamily()),
		raid0:        usesInstanceStore(class),
		rootVolume:   rootVolumeSize(class),
		vmOverhead:   vmOverhead,
		reservedENIs: reservedENIs,

		ownInterfaces: len(class.Spec.NetworkInterfaces) > 0,
	}
	if k := class.Spec.Kubelet; k != nil {
		s.maxPods, s.podsPerCore = k.MaxPods, k.PodsPerCore
		s.kubeReserved, s.systemReserved = k.KubeReserved, k.SystemReserved
		s.evictionHard, s.evictionSoft = k.EvictionHard, k.EvictionSoft
	}
	for _, device := range class.Spec.NetworkInterfaces {
		if device.InterfaceType == awsv1.InterfaceTypeEFAOnly {
			s.efas++
			if device.NetworkCardIndex == 0 {
				s.efaOnlyENIs++
			}
		}
	}
	return s
}

// pods returns the maximum number of pods on a node.
func (s *shape) pods(m *machine) int64 {
	pods := int64(110)
	switch {
	case s.maxPods != nil:
		pods = int64(*s.maxPods)
	case s.family.PodsByENI:
		pods = m.eniPods(s.reservedENIs + s.efaOnlyENIs)
	}
	if s.podsPerCore != nil && *s.podsPerCore > 0 && s.family.PodsPerCore {
		pods = min(pods, int64(*s.podsPerCore)*m.vcpus)
	}
	return pods
}

// memory returns the memory that the node's kernel will find, in bytes. Graviton reserves 64 MiB, and the hypervisor
// takes a share that EC2 does not publish and that vmOverhead estimates.
func (s *shape) memory(m *machine) int64 {
	total := m.memoryMiB
	if m.arm64 {
		total -= 64
	}
	overhead := int64(math.Ceil(float64(total) * s.vmOverhead))
	return (total - overhead) * mib
}

// ephemeralStorage returns the size of the file system pods write to, in bytes.
func (s *shape) ephemeralStorage(m *machine) int64 {
	if s.raid0 && m.storeGB > 0 {
		return m.storeGB * 1e9
	}
	return s.rootVolume
}

// efaDevices returns how many EFA devices a node of the class can have (Karpenter, pkg/providers/instancetype/types.go,
// efas).
func (s *shape) efaDevices(m *machine) int64 {
	if s.ownInterfaces {
		return s.efas
	}
	return int64(m.efas)
}

// resources computes capacity and allocatable of a type as a node of the class (reference section 3.5).
func (s *shape) resources(m *machine) (capacity, allocatable corev1.ResourceList, err error) {
	capacity = corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(m.vcpus, resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(s.memory(m), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(s.pods(m), resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(s.ephemeralStorage(m), resource.BinarySI),
	}
	for name, count := range m.extended {
		capacity[name] = count
	}
	if n := branchInterfaces(m.name); n > 0 {
		capacity[awsv1.ResourceAWSPodENI] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	if s.family.OS == string(corev1.Windows) {
		// The VPC resource controller gives Windows pods the secondary addresses of the node's one network interface.
		capacity[awsv1.ResourcePrivateIPv4Address] = *resource.NewQuantity(m.ipv4PerENI-1, resource.DecimalSI)
	}
	if n := s.efaDevices(m); n > 0 {
		capacity[awsv1.ResourceEFA] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	kept, err := s.kept(m)
	if err != nil {
		return nil, nil, err
	}
	allocatable = capacity.DeepCopy()
	for _, part := range kept {
		for name, amount := range part {
			left, ok := allocatable[name]
			if !ok {
				continue
			}
			left.Sub(amount)
			if left.Sign() < 0 {
				left = *resource.NewQuantity(0, left.Format)
			}
			allocatable[name] = left
		}
	}
	return capacity, allocatable, nil
}

// kept returns what is not available to pods: the reservations for the kubelet and the system, and the eviction
// thresholds.
func (s *shape) kept(m *machine) ([]corev1.ResourceList, error) {
	kube := s.defaultKubeReserved(m)
	if err := assign(kube, s.kubeReserved); err != nil {
		return nil, fmt.Errorf("kubeReserved: %w", err)
	}
	system := corev1.ResourceList{}
	if err := assign(system, s.systemReserved); err != nil {
		return nil, fmt.Errorf("systemReserved: %w", err)
	}
	eviction, err := s.evictionThreshold(m)
	if err != nil {
		return nil, err
	}
	return []corev1.ResourceList{kube, system, eviction}, nil
}

// defaultKubeReserved returns what the EKS images reserve for the kubelet and the container runtime: memory of 11 MiB
// per pod plus 255 MiB, and CPU of 6% of the first vCPU, 1% of the second, 0.5% of each of the next two, and 0.25% of
// each of the others. Most families count the pods of all network interfaces for it, those of reserved ones included.
func (s *shape) defaultKubeReserved(m *machine) corev1.ResourceList {
	pods := s.pods(m)
	if s.family.ReservesByENI {
		pods = m.eniPods(s.efaOnlyENIs)
	}
	var milli float64
	for _, band := range []struct{ from, to, share float64 }{
		{0, 1000, 0.06}, {1000, 2000, 0.01}, {2000, 4000, 0.005}, {4000, math.Inf(1), 0.0025},
	} {
		if in := min(float64(m.vcpus*1000), band.to) - band.from; in > 0 {
			milli += math.Floor(in * band.share)
		}
	}
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewMilliQuantity(int64(milli), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity((11*pods+255)*mib, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(1<<30, resource.BinarySI),
	}
}

// evictionThreshold returns the free memory and disk below which the kubelet evicts: the greater of the hard and the
// soft threshold if the class sets them, 100 MiB and a tenth of the disk otherwise.
func (s *shape) evictionThreshold(m *machine) (corev1.ResourceList, error) {
	threshold := corev1.ResourceList{}
	for _, signal := range []struct {
		key      string
		name     corev1.ResourceName
		capacity int64
		fallback int64
	}{
		{"memory.available", corev1.ResourceMemory, s.memory(m), 100 * mib},
		{"nodefs.available", corev1.ResourceEphemeralStorage, s.ephemeralStorage(m), (s.ephemeralStorage(m) + 9) / 10},
	} {
		amount, set := int64(0), false
		for _, thresholds := range []map[string]string{s.evictionHard, s.evictionSoft} {
			value, ok := thresholds[signal.key]
			if !ok {
				continue
			}
			parsed, err := signalAmount(value, signal.capacity)
			if err != nil {
				return nil, fmt.Errorf("eviction signal %s: %w", signal.key, err)
			}
			amount, set = max(amount, parsed), true
		}
		if !set {
			amount = signal.fallback
		}
		threshold[signal.name] = *resource.NewQuantity(amount, resource.BinarySI)
	}
	return threshold, nil
}

// signalAmount parses an eviction threshold: a quantity, or a percentage of the capacity. 100% means no threshold.
func signalAmount(value string, capacity int64) (int64, error) {
	percent, isPercent := strings.CutSuffix(value, "%")
	if !isPercent {
		quantity, err := resource.ParseQuantity(value)
		return quantity.Value(), err
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		return 0, err
	}
	if share == 100 {
		return 0, nil
	}
	return int64(math.Ceil(float64(capacity) / 100 * share)), nil
}

func assign(list corev1.ResourceList, values map[string]string) error {
	for name, value := range values {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return nil
}
