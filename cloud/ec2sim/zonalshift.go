package ec2sim

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

const managedResources = "/managedresources/"

// zonalShift moves the traffic of the cluster away from a zone.
type zonalShift struct {
	ID        string
	Zone      string // its id, such as use1-az1
	StartedAt time.Time
	EndsAt    time.Time
}

// zonalShifts is Amazon Application Recovery Controller's zonal shift service, which manages the account's one cluster.
type zonalShifts struct {
	*table[zonalShift]
	account *account
	eks     *eks
}

// getManagedResource handles GetManagedResource. At most one shift of a resource is active at a time (developer guide,
// "Zonal shift").
func (z *zonalShifts) getManagedResource(c *call) (any, error) {
	arn := strings.TrimPrefix(c.form.value, managedResources)
	if arn != z.eks.arn() {
		return nil, &apiError{http.StatusNotFound, "ResourceNotFoundException", "Resource not found: " + arn}
	}
	weights, shifts := map[string]float64{}, []any{}
	for _, zone := range z.account.zones {
		weights[zone.ID] = 1
	}
	for _, shift := range z.sorted() {
		if !c.at.Before(shift.EndsAt) {
			continue
		}
		weights[shift.Zone] = 0
		shifts = append(shifts, map[string]any{
			"appliedStatus": "APPLIED", "awayFrom": shift.Zone, "comment": "started by hand", "resourceIdentifier": arn, "zonalShiftId": shift.ID,
			"startTime": epoch(shift.StartedAt), "expiryTime": epoch(shift.EndsAt), "shiftType": "ZONAL_SHIFT",
		})
	}
	return map[string]any{"arn": arn, "name": z.eks.cluster, "appliedWeights": weights, "zonalShifts": shifts, "autoshifts": []any{}, "zonalAutoshiftStatus": "DISABLED"}, nil
}

// shift replaces the shift in force; a duration of zero ends it.
func (z *zonalShifts) shift(name string, lasts time.Duration, now time.Time) error {
	zone, known := z.account.zone(name)
	if !known {
		return fmt.Errorf("no zone %q", name)
	}
	for _, shift := range z.sorted() {
		z.del(shift.ID)
	}
	if lasts > 0 {
		shift := &zonalShift{ID: newID("zs"), Zone: zone.ID, StartedAt: now, EndsAt: now.Add(lasts)}
		z.put(shift.ID, shift)
	}
	return nil
}

// needs returns the permissions a call needs.
func (z *zonalShifts) needs(c *call) []policy.Request {
	return []policy.Request{{Action: "arc-zonal-shift:" + c.action, Resource: strings.TrimPrefix(c.form.value, managedResources)}}
}
