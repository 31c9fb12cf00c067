package workflows

import "github.com/tenon-sh/tenon/cloud"

// LaunchInput starts a Launch.
type LaunchInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string `json:"clusterUID,omitempty"`
	LaunchGroup
	// Adopted says that an earlier Launch of the group may have reached the cloud: look there first.
	Adopted bool `json:"adopted,omitempty"`
}

// LaunchOutcome is what a Launch returns.
type LaunchOutcome struct {
	Launched int    `json:"launched"`
	Released int    `json:"released,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Refused are the offerings that had no capacity.
	Refused []cloud.OfferingKey `json:"refused,omitempty"`
}

// PreparedLaunch is what PrepareLaunchActivity returns: the claims that are still wanted, and the request for them,
// complete but for its token.
type PreparedLaunch struct {
	Claims  []ClaimRef          `json:"claims"`
	Request cloud.LaunchRequest `json:"request"`
}

// CreateFleetInput is one launch, frozen.
type CreateFleetInput struct {
	Claims  []ClaimRef          `json:"claims"`
	Request cloud.LaunchRequest `json:"request"`
	// NodePool is the pool of the claims, for which launches may be paused; empty if they have none, and in launches that
	// began before this field existed.
	NodePool string `json:"nodePool,omitempty"`
}

// Fleet is what a launch group has obtained.
type Fleet struct {
	Instances []Instance          `json:"instances,omitempty"`
	Refused   []cloud.OfferingKey `json:"refused,omitempty"`
}

// Instance is the part of a cloud instance that a claim's workflow carries.
type Instance struct {
	ID           string `json:"id"`
	ProviderID   string `json:"providerID"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	ZoneID       string `json:"zoneID,omitempty"`
	CapacityType string `json:"capacityType"`
	// Reservation is the capacity reservation it runs in; empty for on-demand and spot.
	Reservation string `json:"reservation,omitempty"`
	// PlacementGroup is the placement group it was launched into, and Partition its partition there; empty without one, or if
	// the partition is not known yet.
	PlacementGroup string `json:"placementGroup,omitempty"`
	Partition      string `json:"partition,omitempty"`
	Image          string `json:"image,omitempty"`
	// Profile is the name of its instance profile; empty if the instance was taken from a claim.
	Profile string  `json:"profile,omitempty"`
	Price   float64 `json:"price,omitempty"`
}

// FindInstancesInput names the launch group to look for, and the claims that want its instances.
type FindInstancesInput struct {
	Group  string     `json:"group"`
	Claims []ClaimRef `json:"claims"`
	// Settle waits out the cloud's consistency lag before saying that there is nothing.
	Settle bool `json:"settle,omitempty"`
}

// Found is what FindInstancesActivity returns: instances without a claim, and claims without an instance. A claim whose
// NodeClaim workflow runs has the instance that workflow was started with, even if that is not recorded yet.
type Found struct {
	Fleet
	Claims []ClaimRef `json:"claims,omitempty"`
}

// ReleaseClaimsInput names claims that got no instance.
type ReleaseClaimsInput struct {
	Claims  []ClaimRef `json:"claims"`
	Reason  string     `json:"reason"`
	Message string     `json:"message,omitempty"`
}

// StartNodeClaimsInput asks to start the NodeClaim workflows of a launch group. Claim i has instance i.
type StartNodeClaimsInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string     `json:"clusterUID,omitempty"`
	NodePool   string     `json:"nodePool,omitempty"`
	Group      string     `json:"group"`
	Claims     []ClaimRef `json:"claims"`
	Instances  []Instance `json:"instances"`
}

// NodeClaims returns the inputs of the workflows.
func (in StartNodeClaimsInput) NodeClaims() []NodeClaimInput {
	inputs := make([]NodeClaimInput, 0, len(in.Claims))
	for i, claim := range in.Claims {
		inputs = append(inputs, NodeClaimInput{Cluster: in.Cluster, ClusterUID: in.ClusterUID, Claim: claim, NodePool: in.NodePool, Group: in.Group,
			Instance: in.Instances[i], DrainTells: true})
	}
	return inputs
}
