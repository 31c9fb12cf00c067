package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/cloud"
)

// region and zones are where machines are sold.
const region = "us-east-1"

func zones() []string { return []string{region + "a", region + "b", region + "c"} }

// What a node reserves for itself, for both rivals: Karpenter's kwok provider cannot be told otherwise.
const (
	reservedMilliCPU  = 100
	reservedMemoryMiB = 10
	podsPerCore       = 16
)

// size is an on-demand machine that both rivals can buy in every zone.
type size struct {
	name      string
	cores     int
	memoryMiB int64
	// usd is the price of an hour.
	usd float64
}

// catalogue returns the one price list: the amd64 Linux machines of Karpenter's kwok provider with fewer than 32 cores and at
// least 4 GiB of memory, at its on-demand prices, to the millionth of a dollar. A machine with 2 GiB fits none of the pods.
func catalogue(ctx context.Context) ([]size, error) {
	types, err := kwok.ConstructInstanceTypes(kwokoptions.ToContext(ctx, &kwokoptions.Options{}))
	if err != nil {
		return nil, fmt.Errorf("instance types of the kwok provider: %w", err)
	}
	var sizes []size
	for _, it := range types {
		s := size{name: it.Name, cores: int(it.Capacity.Cpu().Value()), memoryMiB: it.Capacity.Memory().Value() >> 20}
		if s.cores >= 32 || s.memoryMiB < 4<<10 ||
			it.Requirements.Get(corev1.LabelArchStable).Any() != karpenterv1.ArchitectureAmd64 || !it.Requirements.Get(corev1.LabelOSStable).Has(string(corev1.Linux)) {
			continue
		}
		for _, offering := range it.Offerings {
			if offering.CapacityType() == karpenterv1.CapacityTypeOnDemand {
				s.usd = math.Round(offering.Price*1e6) / 1e6
			}
		}
		sizes = append(sizes, s)
	}
	if len(sizes) == 0 {
		return nil, fmt.Errorf("none of the %d instance types of the kwok provider is usable", len(types))
	}
	return sizes, nil
}

// prices returns the US dollars per hour of each instance type.
func prices(sizes []size) map[string]float64 {
	list := make(map[string]float64, len(sizes))
	for _, s := range sizes {
		list[s.name] = s.usd
	}
	return list
}

// writeForKwok writes the catalogue as Karpenter's kwok provider reads it.
func writeForKwok(path string, sizes []size) error {
	type requirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	type offering struct {
		Price        float64
		Available    bool
		Requirements []requirement
	}
	type entry struct {
		Name             string            `json:"name"`
		Offerings        []offering        `json:"offerings"`
		Architecture     string            `json:"architecture"`
		OperatingSystems []string          `json:"operatingSystems"`
		Resources        map[string]string `json:"resources"`
	}
	var entries []entry
	for _, s := range sizes {
		e := entry{Name: s.name, Architecture: karpenterv1.ArchitectureAmd64, OperatingSystems: []string{"linux"}, Resources: map[string]string{
			"cpu": fmt.Sprint(s.cores), "memory": fmt.Sprintf("%dMi", s.memoryMiB), "ephemeral-storage": "20Gi", "pods": fmt.Sprint(podsPerCore * s.cores)}}
		for _, zone := range zones() {
			e.Offerings = append(e.Offerings, offering{Price: s.usd, Available: true, Requirements: []requirement{
				{karpenterv1.CapacityTypeLabelKey, "In", []string{karpenterv1.CapacityTypeOnDemand}}, {corev1.LabelTopologyZone, "In", []string{zone}}}})
		}
		entries = append(entries, e)
	}
	return writeJSON(path, entries)
}

// writeForEC2 writes the catalogue as the simulated EC2 reads it. EC2 advertises more memory than a machine's kernel finds,
// so each entry is larger by that much: the kernel then finds what the kwok provider's machines have.
func writeForEC2(path string, sizes []size) error {
	type entry struct {
		InstanceType      string   `json:"instanceType"`
		Arch              string   `json:"arch"`
		VCPUs             int      `json:"vcpus"`
		MemoryMiB         int64    `json:"memoryMiB"`
		MaxENIs           int      `json:"maxENIs"`
		DefaultCardENIs   int      `json:"defaultCardENIs"`
		IPv4PerENI        int      `json:"ipv4PerENI"`
		Hypervisor        string   `json:"hypervisor"`
		CurrentGeneration bool     `json:"currentGeneration"`
		CPUManufacturer   string   `json:"cpuManufacturer"`
		NetworkMbps       int64    `json:"networkMbps"`
		EBSMbps           int64    `json:"ebsMbps"`
		UsageClasses      []string `json:"usageClasses"`
		Virtualization    []string `json:"virtualization"`
		Price             float64  `json:"odPriceUsEast1"`
		Offered           bool     `json:"offeredUsEast1"`
	}
	var entries []entry
	for _, s := range sizes {
		entries = append(entries, entry{
			InstanceType: s.name, Arch: "amd64", VCPUs: s.cores, MemoryMiB: advertised(s.memoryMiB), MaxENIs: 15, DefaultCardENIs: 15, IPv4PerENI: 50,
			Hypervisor: "nitro", CurrentGeneration: true, CPUManufacturer: "Intel", NetworkMbps: 10_000, EBSMbps: 10_000,
			UsageClasses: []string{"on-demand"}, Virtualization: []string{"hvm"}, Price: s.usd, Offered: true,
		})
	}
	return writeJSON(path, entries)
}

// advertised returns the least memory, in MiB, that EC2 must advertise for a kernel to find the given amount (see
// visibleMemory of package ec2sim).
func advertised(kernel int64) int64 {
	return int64(math.Ceil(float64(kernel+40)/(1-0.018-1.0/64))) + 1
}

// overhead returns the share of the advertised memory that a worker must expect to be missing, so that no machine turns out
// smaller than expected.
func overhead(sizes []size) float64 {
	most := 0.0
	for _, s := range sizes {
		most = max(most, 1-float64(s.memoryMiB)/float64(advertised(s.memoryMiB)))
	}
	return most
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// Machines returns all machines of the price list as a planner sees them.
func Machines(ctx context.Context) ([]*cloud.InstanceType, error) {
	sizes, err := catalogue(ctx)
	if err != nil {
		return nil, err
	}
	var machines []*cloud.InstanceType
	for _, s := range sizes {
		resources := func(milliCPU, memoryMiB int64) corev1.ResourceList {
			return corev1.ResourceList{
				corev1.ResourceCPU:              *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
				corev1.ResourceMemory:           *resource.NewQuantity(memoryMiB<<20, resource.BinarySI),
				corev1.ResourcePods:             *resource.NewQuantity(int64(podsPerCore*s.cores), resource.DecimalSI),
				corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
			}
		}
		m := &cloud.InstanceType{
			Name: s.name, Capacity: resources(int64(1000*s.cores), s.memoryMiB), Allocatable: resources(int64(1000*s.cores-reservedMilliCPU), s.memoryMiB-reservedMemoryMiB),
			Labels: map[string]string{corev1.LabelInstanceTypeStable: s.name, corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
		}
		for _, zone := range zones() {
			m.Offerings = append(m.Offerings, cloud.Offering{CapacityType: karpv1.CapacityTypeOnDemand, Zone: zone, ZoneID: zone, Price: s.usd, Available: true})
		}
		machines = append(machines, m)
	}
	return machines, nil
}

// Groups returns the pods of the work for package day.
func Groups() []day.Group {
	return []day.Group{
		{Name: "small", CPU: 900, Memory: 3100, Before: podsBefore, After: podsAfter},
		{Name: "large", CPU: 3500, Memory: 28 << 10, Before: podsBefore, After: podsAfter},
	}
}
