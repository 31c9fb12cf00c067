package cloud

import (
	corev1 "k8s.io/api/core/v1"
)

// LaunchSpec is a launch in Kubernetes' terms: what PrepareLaunch resolves.
type LaunchSpec struct {
	// Group is the launch group: unique within the cluster, at most 63 characters of a label value.
	Group string
	// Count is how many instances are wanted, at least 1.
	Count int
	// Class is the node class, with its status resolved.
	Class NodeClass
	// NodePool is the pool the instances are tagged with; empty for claims without one.
	NodePool string
	// CapacityType is the one capacity type that is bought.
	CapacityType string
	// Tenancy is default or dedicated: whether the hardware may be shared with other accounts. Empty means default, and is
	// what a provider without LabelKeys.Tenancy gets.
	Tenancy string
	// Partition is the partition of the class's placement group; empty leaves it to the cloud.
	Partition string
	// Offerings are the acceptable ones, the preferred first, at most a few hundred.
	Offerings []OfferingKey
	// Prices replace the cloud's prices of some offerings, per hour in the region's currency. If there are any, the
	// cloud is told to choose by the prices in the request, because it would otherwise choose by its own.
	Prices map[OfferingKey]float64
	// Labels and Taints are what the node registers with, before registration adds the rest.
	Labels map[string]string
	Taints []corev1.Taint
	// Requests are the names of the resources that the claims request. Some devices are attached only on request, such
	// as vpc.amazonaws.com/efa.
	Requests []corev1.ResourceName
}

// LaunchResult is the outcome of a launch.
type LaunchResult struct {
	// Instances are ordered by id, so that everyone who asks pairs them with claims in the same way.
	Instances []Instance `json:"instances"`
	// Refused are the offerings that had no capacity.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal is an offering the cloud could not serve.
type Refusal struct {
	OfferingKey
	// Code is the cloud's own error code.
	Code string `json:"code"`
	// Message is the cloud's own error message.
	Message string `json:"message,omitempty"`
}
