package v1

import "encoding/json"

// RolloutTarget is what nodes are made from, as far as it takes to have it again.
//
// +kubebuilder:object:generate=false
type RolloutTarget struct {
	// Target identifies it.
	Target string `json:"target"`
	// Template is the spec.template of the NodePool.
	Template *NodeClaimTemplate `json:"template"`
	// ClassSpec is the spec of the node class that the template names.
	ClassSpec json.RawMessage `json:"classSpec,omitempty"`
	// Images are the images that the class chose.
	Images []Image `json:"images,omitempty"`
}

// Image is an image that nodes boot from.
//
// +kubebuilder:object:generate=false
type Image struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// RolloutTargets are what the nodes of a pool are made from now, and what they were made from before.
//
// +kubebuilder:object:generate=false
type RolloutTargets struct {
	Current *RolloutTarget `json:"current,omitempty"`
	// Previous is the last target before the current one that all nodes were of.
	Previous *RolloutTarget `json:"previous,omitempty"`
}

// RolloutTargets returns what the pool's nodes are and were made from.
func (in *NodePool) RolloutTargets() (RolloutTargets, error) {
	var targets RolloutTargets
	err := in.rolloutJSON(RolloutTargetsAnnotationKey, &targets)
	return targets, err
}
