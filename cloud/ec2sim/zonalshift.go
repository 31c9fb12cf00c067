package ec2sim

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
)

const managedResources = "/managedresources/"

// The kinds of shifts, in the order of their precedence: the first in force is applied, and the others are not (API reference,
// ZonalShiftInResource, "appliedStatus").
const (
	shiftByCustomer = "ZONAL_SHIFT"
	shiftByAWS      = "ZONAL_AUTOSHIFT"
	shiftPractice   = "PRACTICE_RUN"
)

// zonalShift moves the traffic of the cluster away from a zone.
type zonalShift struct {
	ID        string
	Zone      string // its id, such as use1-az1
	Kind      string `json:",omitempty"` // empty means by the customer
	StartedAt time.Time
	EndsAt    time.Time
}

func (s *zonalShift) kind() string { return cmp.Or(s.Kind, shiftByCustomer) }

// zonalShifts is Amazon Application Recovery Controller's zonal shift service, which manages the account's one cluster.
type zonalShifts struct {
	*table[zonalShift]
	account *account
	eks     *eks
}

// inForce returns the shifts in force by kind.
func (z *zonalShifts) inForce(now time.Time) map[string]*zonalShift {
	shifts := map[string]*zonalShift{}
	for _, shift := range z.sorted() {
		if now.Before(shift.EndsAt) {
			shifts[shift.kind()] = shift
		}
	}
	return shifts
}

// getManagedResource handles GetManagedResource. At most one shift of each kind is active at a time (developer guide, "Zonal
// shift"). Autoshifts have a list of their own, and no end.
func (z *zonalShifts) getManagedResource(c *call) (any, error) {
	arn := strings.TrimPrefix(c.form.value, managedResources)
	if arn != z.eks.arn() {
		return nil, &apiError{http.StatusNotFound, "ResourceNotFoundException", "Resource not found: " + arn}
	}
	weights, shifts, autoshifts := map[string]float64{}, []any{}, []any{}
	for _, zone := range z.account.zones {
		weights[zone.ID] = 1
	}
	inForce, applied := z.inForce(c.at), "APPLIED"
	for _, kind := range []string{shiftByCustomer, shiftByAWS, shiftPractice} {
		shift := inForce[kind]
		if shift == nil {
			continue
		}
		if applied == "APPLIED" {
			weights[shift.Zone] = 0
		}
		described := map[string]any{"appliedStatus": applied, "awayFrom": shift.Zone, "startTime": epoch(shift.StartedAt)}
		if kind == shiftByAWS {
			autoshifts = append(autoshifts, described)
		} else {
			maps.Copy(described, map[string]any{"comment": "started by hand", "resourceIdentifier": arn, "zonalShiftId": shift.ID, "expiryTime": epoch(shift.EndsAt), "shiftType": kind})
			if kind == shiftPractice {
				described["comment"], described["practiceRunOutcome"] = "practice run", "PENDING"
			}
			shifts = append(shifts, described)
		}
		applied = "NOT_APPLIED"
	}
	return map[string]any{"arn": arn, "name": z.eks.cluster, "appliedWeights": weights, "zonalShifts": shifts, "autoshifts": autoshifts, "zonalAutoshiftStatus": "DISABLED"}, nil
}

// shift replaces the shift of a kind in force; a duration of zero ends it.
func (z *zonalShifts) shift(name, kind string, lasts time.Duration, now time.Time) error {
	zone, known := z.account.zone(name)
	kind = cmp.Or(kind, shiftByCustomer)
	switch {
	case !known:
		return fmt.Errorf("no zone %q", name)
	case kind != shiftByCustomer && kind != shiftByAWS && kind != shiftPractice:
		return fmt.Errorf("no kind of shift %q: it is %s, %s or %s", kind, shiftByCustomer, shiftByAWS, shiftPractice)
	}
	for _, shift := range z.sorted() {
		if shift.kind() == kind {
			z.del(shift.ID)
		}
	}
	if lasts > 0 {
		shift := &zonalShift{ID: newID("zs"), Zone: zone.ID, Kind: kind, StartedAt: now, EndsAt: now.Add(lasts)}
		z.put(shift.ID, shift)
	}
	return nil
}

// needs returns the permissions a call needs.
func (z *zonalShifts) needs(c *call) []policy.Request {
	return []policy.Request{{Action: "arc-zonal-shift:" + c.action, Resource: strings.TrimPrefix(c.form.value, managedResources)}}
}
