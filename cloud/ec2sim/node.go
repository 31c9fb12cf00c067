package ec2sim

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SimulatedLabel marks the Nodes of running simulated instances. The lab's kwok plays the kubelet of Nodes that have it.
	SimulatedLabel = "tenon.sh/simulated-node"
	// ReadyAtAnnotation holds the instant (RFC 3339) at which the Node becomes Ready.
	ReadyAtAnnotation = "tenon.sh/ready-at"

	// attachAnnotation tells the attach/detach controller to attach volumes, as every modern kubelet does.
	attachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// never is how far in the future ReadyAt is for a Node that must not become Ready: without the annotation it would be
// Ready at once.
const never = 10 * 365 * 24 * time.Hour

// machine is the data from which a Node is built.
type machine struct {
	instance   instance
	itype      *InstanceType
	image      *image
	region     string
	zoneID     string
	hostname   string
	userData   string
	endpoint   string // of this cluster; empty if unknown
	caKnown    bool
	kubeletVer string
}

// node returns the Node that the machine's kubelet registers. It fails with the reason if the kubelet cannot start.
func (m *machine) node() (*corev1.Node, error) {
	setup, err := parseUserData(m.image.Family, m.userData)
	if err != nil {
		return nil, err
	}
	if err := m.check(setup); err != nil {
		return nil, err
	}
	capacity := m.capacity(setup)
	allocatable, err := m.allocatable(setup, capacity)
	if err != nil {
		return nil, err
	}
	readyAt := m.instance.ReadyAt
	if readyAt.IsZero() {
		readyAt = m.instance.BootAt.Add(never)
	}
	i, system := &m.instance, m.system()
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: m.hostname, Labels: m.labels(setup),
			Annotations: map[string]string{ReadyAtAnnotation: readyAt.UTC().Format(time.RFC3339), attachAnnotation: "true"},
		},
		Spec: corev1.NodeSpec{
			ProviderID: "aws:///" + i.Zone + "/" + i.ID,
			Taints:     append([]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}, setup.taints...),
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable, Conditions: bootConditions(i.BootAt),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.nodeIP(setup)}, {Type: corev1.NodeInternalDNS, Address: m.hostname},
				{Type: corev1.NodeHostName, Address: m.hostname},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: strings.ReplaceAll(i.ID, "i-", "ec2"), SystemUUID: strings.ReplaceAll(i.ID, "i-", "ec2"), BootID: i.ID,
				KernelVersion: system.kernel, OSImage: system.image, ContainerRuntimeVersion: "containerd://2.1.4",
				KubeletVersion: m.kubeletVer, OperatingSystem: system.name, Architecture: m.itype.Arch,
			},
		},
	}, nil
}

// operatingSystem is what a kubelet reports of its machine's operating system.
type operatingSystem struct {
	name, image, kernel string
	build               string // of Windows
}

// system returns the operating system of the machine's image.
func (m *machine) system() operatingSystem {
	switch arch := uname(m.itype.Arch); m.image.Family {
	case "AL2":
		return operatingSystem{"linux", "Amazon Linux 2", "5.10.245-241.976.amzn2." + arch, ""}
	case "Bottlerocket":
		return operatingSystem{"linux", "Bottlerocket OS", "6.12.46", ""}
	case "Windows2019":
		return operatingSystem{"windows", "Windows Server 2019 Datacenter", "10.0.17763.8027", "10.0.17763"}
	case "Windows2022":
		return operatingSystem{"windows", "Windows Server 2022 Datacenter", "10.0.20348.4405", "10.0.20348"}
	case "Windows2025":
		return operatingSystem{"windows", "Windows Server 2025 Datacenter", "10.0.26100.7171", "10.0.26100"}
	default:
		return operatingSystem{"linux", "Amazon Linux 2023", "6.12.46-66.121.amzn2023." + arch, ""}
	}
}

// nodeIP returns the kubelet's node IP, of the same family as the cluster's services.
func (m *machine) nodeIP(k *kubeletSetup) string {
	if k.ipv6 {
		return m.instance.ipv6()
	}
	return m.instance.PrivateIP
}

func isIPv6(cidr string) bool {
	prefix, err := netip.ParsePrefix(cidr)
	return err == nil && prefix.Addr().Is6()
}

func uname(arch string) string {
	if arch == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// check fails where the program that makes the machine a node would, or the kubelet.
func (m *machine) check(k *kubeletSetup) error {
	switch {
	case k.clusterName == "":
		return fmt.Errorf("%s: Name is missing in cluster configuration", k.program)
	case k.endpoint == "":
		return fmt.Errorf("%s: Apiserver endpoint is missing in cluster configuration", k.program)
	case !k.caGiven && m.caKnown:
		return fmt.Errorf("%s: Certificate authority is missing in cluster configuration", k.program)
	case k.program == "nodeadm" && k.cidr == "":
		return errors.New("nodeadm: CIDR is missing in cluster configuration")
	case !k.ipv6 && m.instance.PrivateIP == "":
		return errors.New(k.program + ": no IPv4 address on the primary network interface, but the cluster's service range is an IPv4 one")
	case k.ipv6 && m.instance.ipv6() == "":
		// The program reads the interface's IPv6 address from the instance metadata and passes it to the kubelet as node IP.
		return errors.New(k.program + ": no IPv6 address on the primary network interface, but the cluster's service range is an IPv6 one")
	case m.endpoint != "" && strings.TrimSuffix(k.endpoint, "/") != strings.TrimSuffix(m.endpoint, "/"):
		return fmt.Errorf("kubelet: registers with %s, which is not this cluster's %s", k.endpoint, m.endpoint)
	}
	for key := range k.labels {
		if reservedLabel(key) {
			return fmt.Errorf("kubelet: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [%s]", key)
		}
	}
	return nil
}

// kubeletLabels are the labels of Kubernetes' own domains that a kubelet may set (k8s.io/kubelet/pkg/apis, WellKnownLabels).
var kubeletLabels = map[string]bool{
	corev1.LabelHostname: true, corev1.LabelTopologyZone: true, corev1.LabelTopologyRegion: true,
	corev1.LabelFailureDomainBetaZone: true, corev1.LabelFailureDomainBetaRegion: true, corev1.LabelInstanceType: true,
	corev1.LabelInstanceTypeStable: true, corev1.LabelOSStable: true, corev1.LabelArchStable: true,
	"beta.kubernetes.io/os": true, "beta.kubernetes.io/arch": true,
}

// reservedLabel reports whether a kubelet refuses to start with the label.
func reservedLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified || kubeletLabels[key] {
		return false
	}
	within := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return false
	}
	return within("kubernetes.io") || within("k8s.io")
}

// labels returns the labels that the kubelet and the AWS cloud provider set.
func (m *machine) labels(k *kubeletSetup) map[string]string {
	labels := maps.Clone(k.labels)
	maps.Copy(labels, map[string]string{
		SimulatedLabel:                      "true",
		corev1.LabelHostname:                m.hostname,
		corev1.LabelArchStable:              m.itype.Arch,
		corev1.LabelOSStable:                m.system().name,
		"beta.kubernetes.io/arch":           m.itype.Arch,
		"beta.kubernetes.io/os":             m.system().name,
		corev1.LabelInstanceTypeStable:      m.itype.Name,
		corev1.LabelInstanceType:            m.itype.Name,
		corev1.LabelTopologyZone:            m.instance.Zone,
		corev1.LabelTopologyRegion:          m.region,
		corev1.LabelFailureDomainBetaZone:   m.instance.Zone,
		corev1.LabelFailureDomainBetaRegion: m.region,
		"topology.k8s.aws/zone-id":          m.zoneID,
	})
	if build := m.system().build; build != "" {
		labels[corev1.LabelWindowsBuild] = build
	}
	return labels
}

func bootConditions(at time.Time) []corev1.NodeCondition {
	stamp := metav1.NewTime(at)
	condition := func(kind corev1.NodeConditionType, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastHeartbeatTime: stamp, LastTransitionTime: stamp,
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, "KubeletNotReady", "container runtime network not ready: cni plugin not initialized"),
	}
}

const mib = 1 << 20

// visibleMemory returns MemTotal in bytes, which is less than EC2 advertises: the hypervisor and firmware keep about 1.8
// %, the kernel's page descriptors take 1/64 (64 bytes for each page of 4 KiB), its image and reserved areas 40 MiB, and
// on arm64 another 64 MiB. That is 4 to 7 % from 2 GiB upwards; real machines vary around this with hypervisor and
// kernel.
func visibleMemory(t *InstanceType) int64 {
	bytes := t.MemoryMiB * mib
	bytes -= t.MemoryMiB*mib*18/1000 + t.MemoryMiB*mib/64 + 40*mib
	if t.Arch == "arm64" {
		bytes -= 64 * mib
	}
	return bytes / 4096 * 4096
}

// fileSystemLoss is the size in bytes of the partitions and the file system's metadata on a root volume.
const fileSystemLoss = 76 * mib

func (m *machine) ephemeralStorage(k *kubeletSetup) int64 {
	if k.raid0 && m.itype.NVMeGB > 0 {
		return m.itype.NVMeGB * 1_000_000_000
	}
	disk := m.instance.Volumes[0]
	if m.image.Family == "Bottlerocket" {
		for _, v := range m.instance.Volumes {
			if v.Device == "/dev/xvdb" {
				disk = v // Bottlerocket keeps pods off its root volume
			}
		}
	}
	return int64(disk.SizeGiB)*1024*mib - fileSystemLoss
}

// maxPods returns the VPC CNI's limit: ENIs × (IPv4 addresses per ENI − 1) + 2. One address of each ENI is its own, and
// two pods use the host's network. The kubelet's maxPods overrides the limit, and its podsPerCore caps it.
func (m *machine) maxPods(k *kubeletSetup) int64 {
	pods := int64(m.itype.DefaultCardENIs*(m.itype.IPv4PerENI-1) + 2)
	if m.image.Windows {
		pods = 110 // the kubelet's default: the script of Windows images sets no other
	}
	if k.maxPods > 0 {
		pods = int64(k.maxPods)
	}
	if k.podsPerCore > 0 {
		pods = min(pods, int64(k.podsPerCore*m.itype.VCPUs))
	}
	return pods
}

// capacity returns the Node's capacity. It includes accelerators, as if their device plugins had registered already.
func (m *machine) capacity(k *kubeletSetup) corev1.ResourceList {
	list := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(m.itype.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(visibleMemory(m.itype), resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(m.ephemeralStorage(k), resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(m.maxPods(k), resource.DecimalSI),
		"hugepages-1Gi":                 *resource.NewQuantity(0, resource.DecimalSI),
		"hugepages-2Mi":                 *resource.NewQuantity(0, resource.DecimalSI),
	}
	count := func(name corev1.ResourceName, n int) {
		if n > 0 {
			list[name] = *resource.NewQuantity(int64(n), resource.DecimalSI)
		}
	}
	switch m.itype.GPUManufacturer {
	case "NVIDIA":
		count("nvidia.com/gpu", m.itype.GPUs)
	case "AMD":
		count("amd.com/gpu", m.itype.GPUs)
	}
	if m.image.Windows {
		count("vpc.amazonaws.com/PrivateIPv4Address", m.itype.IPv4PerENI-1) // as the VPC resource controller sets it
	}
	count("aws.amazon.com/neuron", m.itype.Neurons)
	count("aws.amazon.com/neuroncore", m.itype.Neurons*m.itype.NeuronCores)
	efas := 0
	for _, n := range m.instance.Interfaces {
		if strings.HasPrefix(n.Type, "efa") {
			efas++
		}
	}
	count("vpc.amazonaws.com/efa", efas)
	return list
}

// allocatable returns the capacity minus reservations (those of the user data, else nodeadm's defaults) and minus the
// hard eviction thresholds (kubernetes.io, "Reserve Compute Resources for System Daemons").
func (m *machine) allocatable(k *kubeletSetup, capacity corev1.ResourceList) (corev1.ResourceList, error) {
	kube := map[string]string{
		"cpu": defaultCPUReserve(m.itype.VCPUs), "memory": fmt.Sprintf("%dMi", 11*m.maxPods(k)+255), "ephemeral-storage": "1Gi",
	}
	maps.Copy(kube, k.kubeReserved)
	eviction := map[string]string{"memory.available": "100Mi", "nodefs.available": "10%"}
	maps.Copy(eviction, k.evictionHard)
	out := capacity.DeepCopy()
	for _, reserved := range []map[string]string{kube, k.systemReserved} {
		for name, text := range reserved {
			q, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, fmt.Errorf("kubelet: reserved %s %q: %w", name, text, err)
			}
			reduce(out, corev1.ResourceName(name), q)
		}
	}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		total := capacity[name]
		q, err := threshold(eviction[signal], total)
		if err != nil {
			return nil, fmt.Errorf("kubelet: evictionHard %s: %w", signal, err)
		}
		reduce(out, name, q)
	}
	return out, nil
}

func reduce(list corev1.ResourceList, name corev1.ResourceName, by resource.Quantity) {
	if q, ok := list[name]; ok {
		q.Sub(by)
		if q.Sign() < 0 {
			q = *resource.NewQuantity(0, q.Format)
		}
		list[name] = q
	}
}

// threshold parses an eviction threshold: a quantity, or a percentage of the total, where 100 % means none.
func threshold(text string, total resource.Quantity) (resource.Quantity, error) {
	percent, ok := strings.CutSuffix(text, "%")
	if !ok {
		return resource.ParseQuantity(text)
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil {
		return resource.Quantity{}, fmt.Errorf("percentage %q: %w", text, err)
	}
	if share >= 100 {
		share = 0
	}
	return *resource.NewQuantity(int64(float64(total.Value())*share/100), resource.BinarySI), nil
}

// defaultCPUReserve returns 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the rest, in
// millicores.
func defaultCPUReserve(cores int) string {
	tenths := 0 // of a thousandth of a core
	for n := range cores {
		switch {
		case n == 0:
			tenths += 600
		case n == 1:
			tenths += 100
		case n < 4:
			tenths += 50
		default:
			tenths += 25
		}
	}
	return strconv.Itoa(tenths/10) + "m"
}
