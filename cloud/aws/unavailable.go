package aws

import (
	"sync"
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// unavailableFor is how long an offering counts as unavailable after EC2 has refused it.
const unavailableFor = 3 * time.Minute

// anyOffering in a key's field stands for all values: a quota or a missing service-linked role affects a whole capacity
// type, not one pool of it, and a full placement group everything that is launched into it.
const anyOffering = "*"

// unavailable remembers the offerings without capacity and the subnets without addresses. Its size is limited by the
// number of offerings a region has, because expired entries are removed.
type unavailable struct {
	now func() time.Time

	mu        sync.Mutex
	offerings map[cloud.OfferingKey]time.Time
	subnets   map[string]time.Time
	seq       uint64
}

func newUnavailable(now func() time.Time) *unavailable {
	return &unavailable{now: now, offerings: make(map[cloud.OfferingKey]time.Time), subnets: make(map[string]time.Time)}
}

// markOffering records that an offering was refused just now.
func (u *unavailable) markOffering(key cloud.OfferingKey) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.offerings[key] = u.now().Add(unavailableFor)
	u.seq++
}

// markCapacityType records that nothing of a capacity type can be bought.
func (u *unavailable) markCapacityType(capacityType string) {
	u.markOffering(cloud.OfferingKey{InstanceType: anyOffering, Zone: anyOffering, CapacityType: capacityType})
}

// markGroup records that a placement group takes no more instances in a zone, whatever their type and capacity type.
func (u *unavailable) markGroup(group, zone string) {
	u.markOffering(groupIn(group, zone))
}

// groupIn is the key of everything in a zone that is launched into a placement group.
func groupIn(group, zone string) cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: anyOffering, Zone: zone, CapacityType: anyOffering, PlacementGroup: group}
}

// markSubnet records that a subnet has run out of addresses.
func (u *unavailable) markSubnet(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.subnets[id] = u.now().Add(unavailableFor)
	u.seq++
}

// offering reports whether an offering is known to have no capacity.
func (u *unavailable) offering(key cloud.OfferingKey) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	if now.Before(u.offerings[key]) || now.Before(u.offerings[key.Ungrouped()]) {
		return true
	}
	if key.PlacementGroup != "" && now.Before(u.offerings[groupIn(key.PlacementGroup, key.Zone)]) {
		return true
	}
	whole := cloud.OfferingKey{InstanceType: anyOffering, Zone: anyOffering, CapacityType: key.CapacityType}
	return now.Before(u.offerings[whole])
}

// subnet reports whether a subnet is known to have no addresses.
func (u *unavailable) subnet(id string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now().Before(u.subnets[id])
}

// version returns a number that changes whenever the answers of offering and subnet may have changed.
func (u *unavailable) version() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	for key, ends := range u.offerings {
		if !now.Before(ends) {
			delete(u.offerings, key)
			u.seq++
		}
	}
	for id, ends := range u.subnets {
		if !now.Before(ends) {
			delete(u.subnets, id)
			u.seq++
		}
	}
	return u.seq
}
