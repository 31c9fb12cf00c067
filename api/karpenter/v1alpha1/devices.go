package v1alpha1

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

// DeviceTemplatesAnnotationKey on a NodeOverlay describes the devices that drivers of dynamic resource allocation will publish
// for the nodes that the overlay covers: a list of ResourceSlice specs, in YAML or JSON, without what says where the devices
// are. The pool may be left out. Karpenter has no field for this.
const DeviceTemplatesAnnotationKey = "tenon.sh/device-templates"

// defaultPool is the pool of the devices of templates that name none.
const defaultPool = "node"

// DeviceTemplates returns the ResourceSlices of the annotation DeviceTemplatesAnnotationKey; nil without it.
func (in *NodeOverlay) DeviceTemplates() ([]*resourcev1.ResourceSlice, error) {
	text := in.Annotations[DeviceTemplatesAnnotationKey]
	if text == "" {
		return nil, nil
	}
	var specs []resourcev1.ResourceSliceSpec
	if err := yaml.UnmarshalStrict([]byte(text), &specs); err != nil {
		return nil, fmt.Errorf("must be a list of ResourceSlice specs: %w", err)
	}
	type pool struct{ driver, name string }
	slices, count := make([]*resourcev1.ResourceSlice, len(specs)), map[pool]int64{}
	for i := range specs {
		spec := &specs[i]
		switch {
		case spec.Driver == "":
			return nil, fmt.Errorf("[%d].driver must be set", i)
		case spec.NodeName != nil || spec.NodeSelector != nil || spec.AllNodes != nil || spec.PerDeviceNodeSelection != nil:
			return nil, fmt.Errorf("[%d] must not say where its devices are: remove nodeName, nodeSelector, allNodes and perDeviceNodeSelection", i)
		case len(spec.Devices) > 0 && len(spec.SharedCounters) > 0:
			return nil, fmt.Errorf("[%d] must not have both devices and sharedCounters: split it in two", i)
		}
		if spec.Pool.Name == "" {
			spec.Pool.Name = defaultPool
		}
		count[pool{spec.Driver, spec.Pool.Name}]++
		slices[i] = &resourcev1.ResourceSlice{Spec: *spec}
		slices[i].Name = fmt.Sprintf("%s-%d", in.Name, i)
	}
	for _, s := range slices {
		s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = 1, count[pool{s.Spec.Driver, s.Spec.Pool.Name}]
	}
	return slices, nil
}
