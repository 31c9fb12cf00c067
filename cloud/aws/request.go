package aws

import (
	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// FleetDetails is the provider's part of a cloud.LaunchRequest. User data is not in it: that is in the launch templates that
// it names.
type FleetDetails struct {
	// CapacityBlock says that the reservation to launch into is a capacity block.
	CapacityBlock bool `json:"capacityBlock,omitempty"`
	// Interruptible says that the owner of the reservation to launch into may take it back.
	Interruptible bool `json:"interruptible,omitempty"`
	// Prioritized makes EC2 choose by the prices of the overrides instead of its own.
	Prioritized bool `json:"prioritized,omitempty"`
	// Overrides are the pools of capacity to choose from, the preferred first.
	Overrides []Override `json:"overrides"`
	// Tags are put on every instance and volume at creation.
	Tags map[string]string `json:"tags"`
	// Profile is the instance profile that the launch templates name.
	Profile string `json:"profile,omitempty"`
	// PlacementGroup is the placement group that the launch templates name, and Partition the partition in it; empty if they
	// name none.
	PlacementGroup string `json:"placementGroup,omitempty"`
	Partition      string `json:"partition,omitempty"`
	// Context is EC2's reserved request context, from the node class.
	Context string `json:"context,omitempty"`
}

// Override is one instance type in one subnet from one launch template.
type Override struct {
	InstanceType   string `json:"instanceType"`
	Zone           string `json:"zone"`
	Subnet         string `json:"subnet"`
	LaunchTemplate string `json:"launchTemplate"`
	Image          string `json:"image"`
	// Price is per hour, in the region's currency, when the request was prepared.
	Price float64 `json:"price"`
	// Reservation is the capacity reservation the launch template names; empty for on-demand and spot.
	Reservation string `json:"reservation,omitempty"`
}

// ReadDetails returns the provider's part of a request.
func ReadDetails(request cloud.LaunchRequest) (FleetDetails, error) {
	var details FleetDetails
	err := request.Read(&details)
	return details, err
}

// fleetRequest is a launch as EC2 gets it.
type fleetRequest struct {
	cloud.LaunchRequest
	FleetDetails
}

// launchSpec is what a launch is prepared from, with its class.
type launchSpec struct {
	cloud.LaunchSpec
	class *awsv1.EC2NodeClass
}
