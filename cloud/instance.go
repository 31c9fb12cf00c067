package cloud

import (
	"strings"
	"time"
)

// Query selects instances of this cluster. The zero Query selects all of them.
type Query struct {
	// IDs, when not empty, are the only instances wanted. Unknown ids are left out of the answer.
	IDs []string
	// LaunchGroup, when not empty, selects the instances tagged with that group.
	LaunchGroup string
	// Terminating includes instances that are shutting down, and those that are terminated for as long as the cloud
	// still shows them; without it only pending, running, stopping and stopped ones are returned.
	Terminating bool
}

// Instance is one machine.
type Instance struct {
	// ID is the cloud's id, such as i-0123456789abcdef0.
	ID string `json:"id"`
	// ProviderID is the Node's spec.providerID, such as aws:///us-east-1a/i-0123456789abcdef0.
	ProviderID   string `json:"providerID"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	ZoneID       string `json:"zoneID,omitempty"`
	CapacityType string `json:"capacityType"`
	// Reservation is the capacity reservation the instance runs in; empty for on-demand and spot.
	Reservation string `json:"reservation,omitempty"`
	// PlacementGroup is the placement group the instance runs in, and Partition its partition there; empty without one. The
	// reply to a launch has no partition unless the request named one.
	PlacementGroup string `json:"placementGroup,omitempty"`
	Partition      string `json:"partition,omitempty"`
	Image          string `json:"image"`
	// Profile is the identity with which it runs, such as an EC2 instance profile.
	Profile string `json:"profile,omitempty"`
	// Price is what it costs per hour, in the region's currency, as far as its request says; only Launch tells it.
	Price float64 `json:"price,omitempty"`
	// State is pending, running, shutting-down, terminated, stopping or stopped.
	State string `json:"state"`
	// LaunchTime is when the cloud accepted the launch.
	LaunchTime time.Time `json:"launchTime"`
	// Subnet and SecurityGroups are what Provider.Drift may compare.
	Subnet         string   `json:"subnet,omitempty"`
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// LaunchGroup and NodePool are read from the ownership tags.
	LaunchGroup string `json:"launchGroup,omitempty"`
	NodePool    string `json:"nodePool,omitempty"`
	// Tags are all tags of the instance.
	Tags map[string]string `json:"tags,omitempty"`
}

// InstanceID returns the cloud's own id from a provider id: i-0123 from aws:///us-east-1a/i-0123.
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
