package kwok

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// builtIn is the catalogue that is used where none is given: three families in three zones.
//
//go:embed catalogue.json
var builtIn []byte

// entry is an instance type of a catalogue file. The form is that of Karpenter's kwok provider
// (kwok/cloudprovider/helpers.go), whose example files can be used as they are.
type entry struct {
	Name             string              `json:"name"`
	Offerings        []offer             `json:"offerings"`
	Architecture     string              `json:"architecture"`
	OperatingSystems []string            `json:"operatingSystems"`
	Resources        corev1.ResourceList `json:"resources"`
}

// offer is an offering of an entry. Karpenter ignores Available, and so do we.
type offer struct {
	Price        float64
	Requirements []corev1.NodeSelectorRequirement
}

// readCatalogue returns the instance types of a catalogue, or of the built-in one if it is nil, ordered by name. Of types with
// the same name, that of Linux is kept.
func readCatalogue(data []byte) ([]*cloud.InstanceType, error) {
	if data == nil {
		data = builtIn
	}
	var entries []entry
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&entries); err != nil {
		return nil, fmt.Errorf("read the catalogue of instance types: %w", err)
	}
	if len(entries) == 0 {
		return nil, errors.New("the catalogue has no instance types")
	}
	var types []*cloud.InstanceType
	for i := range entries {
		typ, err := entries[i].instanceType()
		if err != nil {
			return nil, fmt.Errorf("catalogue: instance type %q: %w", entries[i].Name, err)
		}
		// A machine of less than a GiB has 0Gi in Karpenter's catalogue of EC2.
		if memory := typ.Allocatable[corev1.ResourceMemory]; memory.Sign() > 0 {
			types = append(types, typ)
		}
	}
	// Karpenter's catalogue of EC2 has some types twice, for Linux and for Windows.
	notLinux := func(t *cloud.InstanceType) int {
		if t.Labels[corev1.LabelOSStable] == string(corev1.Linux) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(types, func(a, b *cloud.InstanceType) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(notLinux(a), notLinux(b)))
	})
	return slices.CompactFunc(types, func(a, b *cloud.InstanceType) bool { return a.Name == b.Name }), nil
}

func (e *entry) instanceType() (*cloud.InstanceType, error) {
	cpu, hasCPU := e.Resources[corev1.ResourceCPU]
	memory, hasMemory := e.Resources[corev1.ResourceMemory]
	switch {
	case e.Name == "":
		return nil, errors.New("name: is empty")
	case len(e.OperatingSystems) != 1:
		return nil, fmt.Errorf("operatingSystems: has %d values, not one", len(e.OperatingSystems))
	case !hasCPU || !hasMemory:
		return nil, errors.New("resources: needs cpu and memory")
	}
	capacity := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("20Gi")}
	for name, amount := range e.Resources {
		capacity[name] = amount
	}
	typ := &cloud.InstanceType{
		Name: e.Name,
		Labels: map[string]string{
			corev1.LabelInstanceTypeStable: e.Name, corev1.LabelOSStable: e.OperatingSystems[0], corev1.LabelArchStable: architecture(e.Architecture),
			labelFamily: strings.FieldsFunc(e.Name, isDelimiter)[0], labelSize: sizeOf(e.Name, cpu), labelCPU: cpu.String(), labelMemory: memory.String(),
		},
		Capacity: capacity, Allocatable: capacity.DeepCopy(),
	}
	// What Karpenter's provider sets aside for the kubelet.
	for name, reserved := range map[corev1.ResourceName]string{corev1.ResourceCPU: "100m", corev1.ResourceMemory: "10Mi"} {
		left := typ.Allocatable[name]
		left.Sub(resource.MustParse(reserved))
		typ.Allocatable[name] = left
	}
	for i := range e.Offerings {
		offering := cloud.Offering{Price: e.Offerings[i].Price, Available: true}
		for _, r := range e.Offerings[i].Requirements {
			if r.Operator != corev1.NodeSelectorOpIn || len(r.Values) != 1 {
				return nil, fmt.Errorf("offerings[%d]: the requirement on %s does not have one value", i, r.Key)
			}
			switch r.Key {
			case corev1.LabelTopologyZone:
				offering.Zone = r.Values[0]
			case karpv1.CapacityTypeLabelKey:
				offering.CapacityType = r.Values[0]
			}
		}
		if offering.Zone == "" || offering.CapacityType != karpv1.CapacityTypeOnDemand && offering.CapacityType != karpv1.CapacityTypeSpot || offering.Price <= 0 {
			return nil, fmt.Errorf("offerings[%d]: needs a zone, a capacity type (%s or %s) and a price", i, karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot)
		}
		// A catalogue may list the same offering again.
		if !slices.ContainsFunc(typ.Offerings, func(o cloud.Offering) bool { return o.Key(typ) == offering.Key(typ) }) {
			typ.Offerings = append(typ.Offerings, offering)
		}
	}
	slices.SortFunc(typ.Offerings, func(a, b cloud.Offering) int {
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.CapacityType, b.CapacityType))
	})
	return typ, nil
}

func isDelimiter(r rune) bool { return r == '.' || r == '-' }

// architecture returns Kubernetes' name of an architecture.
func architecture(name string) string {
	if name == "x86_64" {
		return karpv1.ArchitectureAmd64
	}
	return name
}

// sizeOf returns what follows the family in the name of a type of EC2, and the number of cores of others.
func sizeOf(name string, cpu resource.Quantity) string {
	if _, size, isEC2 := strings.Cut(name, "."); isEC2 {
		return size
	}
	return cpu.String()
}
