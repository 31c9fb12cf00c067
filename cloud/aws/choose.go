package aws

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const (
	// maxTypes is the maximum number of instance types a launch chooses from.
	maxTypes = 60
	// maxOverrides is how many overrides EC2 accepts in one fleet.
	maxOverrides = 300
)

// choice is one override before it has a launch template.
type choice struct {
	node   *classNode
	key    cloud.OfferingKey
	subnet string
	price  float64
	group  *placementGroup // nil if the class names none
}

// choose narrows the offerings of a launch to those that CreateFleet gets: the ones available at the moment, of the
// first 60 types. It does not judge what makes sense to launch; that is up to the caller. One fleet buys in one market,
// that of the first offering chosen.
func choose(spec launchSpec, resolved *resolvedClass, subnets map[string]awsv1.Subnet, market market) []choice {
	var out []choice
	chosen := make(map[string]bool)
	for _, key := range spec.Offerings {
		node, ok := resolved.byName[key.InstanceType]
		subnet, reachable := subnets[key.Zone]
		price, priced := market.price(key)
		if own, overlaid := spec.Prices[key]; overlaid {
			price = own
		}
		key.PlacementGroup = resolved.group.groupID()
		if !ok || !reachable || !priced || key.CapacityType != spec.CapacityType || market.unavailable.offering(key) || !market.shifted[subnet.ZoneID].IsZero() ||
			key.ReservationID != "" && market.room[key.ReservationID] <= 0 || !chosen[key.InstanceType] && len(chosen) == maxTypes ||
			len(out) > 0 && marketOf(spec.class, key.ReservationID) != marketOf(spec.class, out[0].key.ReservationID) {
			continue
		}
		chosen[key.InstanceType] = true
		if out = append(out, choice{node, key, subnet.ID, price, resolved.group}); len(out) == maxOverrides {
			break
		}
	}
	return out
}

// templateKey holds what distinguishes the launch templates of one launch.
type templateKey struct {
	image       string
	pods        int64
	reservation string
	tenancy     types.Tenancy
	enclave     bool
	efas        int32  // EFA interfaces, if the claims request any
	group       string // the placement group's id, if the class names one
	partition   string // in the placement group, if the claims ask for one
}

// template returns the key of the choice's launch template. If a claim requests EFA, the node gets as many EFA
// interfaces as its type supports, unless the class lists the interfaces itself; if a claim requests slots for Nitro
// Enclaves, they are enabled (Karpenter, pkg/providers/amifamily/resolver.go).
func (c *choice) template(spec launchSpec) templateKey {
	key := templateKey{image: c.node.image, pods: c.node.pods, reservation: c.key.ReservationID, tenancy: types.Tenancy(spec.Tenancy),
		enclave: slices.Contains(spec.Requests, awsv1.ResourceNIPSlots), group: c.group.groupID(), partition: spec.Partition}
	if len(spec.class.Spec.NetworkInterfaces) == 0 && slices.Contains(spec.Requests, awsv1.ResourceEFA) {
		key.efas = c.node.machine.efas
	}
	return key
}
