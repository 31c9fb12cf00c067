package model

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Devices is what a snapshot shows of dynamic resource allocation.
type Devices struct {
	// Claims are the ResourceClaims, by namespace/name.
	Claims map[string]*resourcev1.ResourceClaim
	// Classes are the DeviceClasses, by name.
	Classes map[string]*resourcev1.DeviceClass
	// Templates are the ResourceClaimTemplates, by namespace/name: the claims of pods that do not exist yet.
	Templates map[string]*resourcev1.ResourceClaimTemplate
	// TaintRules are the DeviceTaintRules, ordered by name.
	TaintRules []*resourcev1beta2.DeviceTaintRule
	// Slices are the ResourceSlices that drivers have published, ordered by name.
	Slices []*resourcev1.ResourceSlice
	// Learnt are the templates that were learnt earlier, from nodes that may be gone.
	Learnt DeviceTemplates
}

// PodClaim is an entry of a pod's spec.resourceClaims.
type PodClaim struct {
	// Entry is the name that the pod's containers use.
	Entry string
	// Claim is the name of the ResourceClaim; empty while none has been created from the template.
	Claim string
	// Template is the name of the ResourceClaimTemplate; empty if the pod names a ResourceClaim itself.
	Template string
	// Spec is what the pod claims without naming a claim: the kube-scheduler makes the claim when it binds the pod. Nil
	// otherwise.
	Spec *resourcev1.ResourceClaimSpec
}

// PodClaims are the claims of a pod in the order of spec.resourceClaims.
type PodClaims struct{ list []PodClaim }

// All returns the claims.
func (c *PodClaims) All() []PodClaim {
	if c == nil {
		return nil
	}
	return c.list
}

// And returns the claims with one more.
func (c *PodClaims) And(claim PodClaim) *PodClaims {
	return &PodClaims{list: append(slices.Clip(c.All()), claim)}
}

// DeviceTemplates are the ResourceSlices that drivers are expected to publish for new nodes. Their names and pools are
// those of the node that they were learnt from.
type DeviceTemplates map[NodeKind][]*resourcev1.ResourceSlice

// NodeKind is what nodes have in common that have the same devices.
type NodeKind struct{ Pool, InstanceType string }

// KindOfNode returns the kind of a node with these labels.
func KindOfNode(labels map[string]string) NodeKind {
	return NodeKind{Pool: labels[karpv1.NodePoolLabelKey], InstanceType: labels[corev1.LabelInstanceTypeStable]}
}

// With returns the templates together with what the slices show of some nodes, by name. It returns the receiver if they show
// nothing new. Of several nodes of one kind, the one whose name sorts last counts, so that the answer does not depend on the
// order. Only pools that are complete count.
func (t DeviceTemplates) With(nodes map[string]NodeKind, published []*resourcev1.ResourceSlice) DeviceTemplates {
	local := LocalSlices(published)
	learnt := t
	for _, name := range slices.Sorted(maps.Keys(local)) {
		kind, known := nodes[name]
		if !known || kind.InstanceType == "" {
			continue
		}
		if complete := CompletePools(local[name]); len(complete) > 0 && !slices.Equal(learnt[kind], complete) {
			if learnt = maps.Clone(learnt); learnt == nil {
				learnt = DeviceTemplates{}
			}
			learnt[kind] = complete
		}
	}
	return learnt
}

// LocalSlices returns the slices of devices that are local to one node, by the node's name.
func LocalSlices(published []*resourcev1.ResourceSlice) map[string][]*resourcev1.ResourceSlice {
	local := map[string][]*resourcev1.ResourceSlice{}
	for _, s := range published {
		if s.Spec.NodeName != nil && *s.Spec.NodeName != "" {
			local[*s.Spec.NodeName] = append(local[*s.Spec.NodeName], s)
		}
	}
	return local
}

// CompletePools returns the slices of the pools of which all slices of the newest generation are there.
func CompletePools(published []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	type id struct{ driver, pool string }
	newest, count := map[id]int64{}, map[id]int64{}
	for _, s := range published {
		of := id{s.Spec.Driver, s.Spec.Pool.Name}
		if generation, known := newest[of]; !known || s.Spec.Pool.Generation > generation {
			newest[of], count[of] = s.Spec.Pool.Generation, 0
		}
		if s.Spec.Pool.Generation == newest[of] {
			count[of]++
		}
	}
	return slices.DeleteFunc(slices.Clone(published), func(s *resourcev1.ResourceSlice) bool {
		of := id{s.Spec.Driver, s.Spec.Pool.Name}
		return s.Spec.Pool.Generation != newest[of] || count[of] != s.Spec.Pool.ResourceSliceCount
	})
}
