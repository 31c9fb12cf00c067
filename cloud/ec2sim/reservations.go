package ec2sim

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// capacityReservation reserves a number of machines of one type in one zone. The number of used ones follows from the
// instances.
type capacityReservation struct {
	ID            string
	Type          string
	Zone          string
	Total         int
	Match         string // "open" or "targeted"
	Kind          string // "default" or "capacity-block"
	Interruptible bool   `json:",omitempty"`
	Allocated     int    `json:",omitempty"` // instances allocated to an interruptible reservation
	AllocatedTo   string `json:",omitempty"` // id of that reservation
	Tags          map[string]string
	Owner         string `json:",omitempty"` // the account that shares it; empty if it is the account's own
	CreatedAt     time.Time
	EndAt         time.Time // zero means never
	CancelledAt   time.Time
}

const (
	matchOpen     = "open"
	matchTargeted = "targeted"
	kindDefault   = "default"
	kindBlock     = "capacity-block"
	// marketInterruptible is the market type of reservations that their owner may reclaim.
	marketInterruptible = "interruptible-capacity-reservation"
	reservationsOnly    = "capacity-reservations-only"
)

// market returns the market type of launches into the reservation, or "" if they need none (user guide, "Launch instances
// using Capacity Blocks" and "Interruptible Capacity Reservations").
func (r *capacityReservation) market() string {
	switch {
	case r.Kind == kindBlock:
		return kindBlock
	case r.Interruptible:
		return marketInterruptible
	}
	return ""
}

// emptied returns when EC2 begins to terminate the instances of a capacity block: thirty minutes before it ends (user guide,
// "Capacity Blocks for ML"). It is zero for other reservations, whose instances outlive them.
func (r *capacityReservation) emptied() time.Time {
	if r.Kind != kindBlock || r.EndAt.IsZero() {
		return time.Time{}
	}
	return r.EndAt.Add(-30 * time.Minute)
}

func (r *capacityReservation) state(now time.Time) string {
	switch {
	case !r.CancelledAt.IsZero():
		return "cancelled"
	case !r.EndAt.IsZero() && !now.Before(r.EndAt):
		return "expired"
	}
	return "active"
}

// Reservation is a capacity reservation to create. Zone and Type must exist in the account.
type Reservation struct {
	Type  string            `json:"type"`
	Zone  string            `json:"zone"`
	Count int               `json:"count"`
	Tags  map[string]string `json:"tags,omitempty"`
	// Targeted reservations are used only by launches that name them, open ones by any on-demand launch that fits.
	Targeted bool `json:"targeted,omitempty"`
	// Block makes it a capacity block, which ends after Duration.
	Block    bool     `json:"block,omitempty"`
	Duration Duration `json:"duration,omitempty"`
	// Interruptible means that its owner may reclaim it.
	Interruptible bool `json:"interruptible,omitempty"`
	// Owner is another account that shares the reservation with this one. Nobody but the owner sees its tags.
	Owner string `json:"owner,omitempty"`
}

// reserve checks r and creates the reservation, with a new id.
func (cr *capacityReservations) reserve(r *capacityReservation, now time.Time) error {
	t := cr.catalogue.Type(r.Type)
	switch {
	case t == nil:
		return invalidValue("Invalid value '%s' for InstanceType.", r.Type)
	case r.Total < 1:
		return invalidValue("Invalid value '%d' for InstanceCount.", r.Total)
	case r.Match != matchOpen && r.Match != matchTargeted:
		return invalidValue("Invalid value '%s' for InstanceMatchCriteria.", r.Match)
	}
	if _, known := cr.account.zone(r.Zone); !known || !cr.account.offered(t, r.Zone) {
		return invalidValue("Invalid availability zone: [%s]", r.Zone)
	}
	r.ID, r.CreatedAt = newID("cr"), now
	cr.put(r.ID, r)
	return nil
}

// used counts the instances that run in a reservation.
func (cr *capacityReservations) used(r *capacityReservation) int {
	n := 0
	for _, i := range cr.instances.rows {
		if i.Capacity == r.ID && !i.ended() {
			n++
		}
	}
	return n
}

// owner returns the account that owns the reservation.
func (r *capacityReservation) owner() string { return cmp.Or(r.Owner, accountID) }

// free returns how many more instances a reservation has room for.
func (cr *capacityReservations) free(r *capacityReservation) int {
	return max(0, r.Total-r.Allocated-cr.used(r))
}

// forLaunch returns the reservation into which an order is launched, or nil if there is none. A named reservation must
// have room; an open one is used as long as it has room.
func (cr *capacityReservations) forLaunch(o *launchOrder, now time.Time) (*capacityReservation, error) {
	if o.spec.Reservation == "" {
		if o.spot || o.spec.ReservationUse == "none" {
			return nil, nil
		}
		for _, r := range cr.sorted() {
			if r.Match == matchOpen && r.market() == "" && r.Type == o.itype.Name && r.Zone == o.subnet.Zone && r.state(now) == "active" && cr.free(r) > 0 {
				return r, nil
			}
		}
		if o.spec.ReservationUse == reservationsOnly {
			return nil, refuse("ReservationCapacityExceeded", "There is no capacity reservation with capacity for this request.")
		}
		return nil, nil
	}
	r := cr.rows[o.spec.Reservation]
	switch {
	case r == nil:
		return nil, refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", o.spec.Reservation)
	case o.spot || r.Type != o.itype.Name || r.Zone != o.subnet.Zone:
		return nil, refuse("ReservationCapacityExceeded", "The capacity reservation '%s' is not compatible with the request.", r.ID)
	case r.state(now) != "active":
		return nil, refuse("InvalidCapacityReservationState", "The capacity reservation '%s' is %s.", r.ID, r.state(now))
	case r.market() != o.spec.MarketType:
		return nil, refuse("InvalidParameterCombination", "The capacity reservation '%s' is used with the market type '%s', not with '%s'.", r.ID, r.market(), o.spec.MarketType)
	case cr.free(r) == 0:
		return nil, refuse("ReservationCapacityExceeded", "The requested reservation does not have sufficient compatible and available capacity for this request.")
	}
	return r, nil
}

type capacityReservationXML struct {
	ID            string   `xml:"capacityReservationId"`
	OwnerID       string   `xml:"ownerId"`
	ARN           string   `xml:"capacityReservationArn"`
	Type          string   `xml:"instanceType"`
	Platform      string   `xml:"instancePlatform"`
	Zone          string   `xml:"availabilityZone"`
	ZoneID        string   `xml:"availabilityZoneId,omitempty"`
	Tenancy       string   `xml:"tenancy"`
	Total         int      `xml:"totalInstanceCount"`
	Available     int      `xml:"availableInstanceCount"`
	State         string   `xml:"state"`
	StartDate     string   `xml:"startDate"`
	EndDate       string   `xml:"endDate,omitempty"`
	EndDateType   string   `xml:"endDateType"`
	Match         string   `xml:"instanceMatchCriteria"`
	CreateDate    string   `xml:"createDate"`
	Kind          string   `xml:"reservationType"`
	Interruptible bool     `xml:"interruptible"`
	Tags          []tagXML `xml:"tagSet>item,omitempty"`

	Allocation *allocatedXML `xml:"interruptibleCapacityAllocation"`
}

type allocatedXML struct {
	Count  int    `xml:"instanceCount"`
	Target int    `xml:"targetInstanceCount"`
	Status string `xml:"status"`
	To     string `xml:"interruptibleCapacityReservationId"`
	Kind   string `xml:"interruptionType"`
}

func (cr *capacityReservations) xml(r *capacityReservation, now time.Time) capacityReservationXML {
	x := capacityReservationXML{
		ID: r.ID, OwnerID: r.owner(), ARN: cr.account.reservationARN(r), Type: r.Type, Platform: "Linux/UNIX", Zone: r.Zone,
		Tenancy: "default", Total: r.Total, State: r.state(now), StartDate: timestamp(r.CreatedAt), EndDateType: "unlimited",
		Match: r.Match, CreateDate: timestamp(r.CreatedAt), Kind: r.Kind, Interruptible: r.Interruptible, Tags: tagsXML(r.Tags),
	}
	if z, ok := cr.account.zone(r.Zone); ok {
		x.ZoneID = z.ID
	}
	if r.Allocated > 0 {
		x.Allocation = &allocatedXML{r.Allocated, r.Allocated, "active", r.AllocatedTo, "adhoc"}
	}
	if x.State == "active" {
		x.Available = cr.free(r)
	}
	if !r.EndAt.IsZero() {
		x.EndDate, x.EndDateType = timestamp(r.EndAt), "limited"
	}
	return x
}

// reservationTags reads the tags of a reservation to create. The parameter is spelt differently from that of launches.
func reservationTags(p *params) (map[string]string, error) {
	tags := map[string]string{}
	for _, item := range p.items("TagSpecifications") {
		if kind := item.str("ResourceType"); kind != "capacity-reservation" {
			return nil, invalidValue("'%s' is not a valid taggable resource type for this operation.", kind)
		}
		read, err := parseTags(item)
		if err != nil {
			return nil, err
		}
		maps.Copy(tags, read)
	}
	return tags, nil
}

type createReservationXML struct {
	Reservation capacityReservationXML `xml:"capacityReservation"`
}

func (cr *capacityReservations) create(c *call) (any, error) {
	return cr.tokens.once(c, func() (any, error) {
		p := c.form
		count, err := p.integer("InstanceCount", 0)
		if err != nil {
			return nil, err
		}
		r := &capacityReservation{
			Type: p.str("InstanceType"), Zone: p.str("AvailabilityZone"), Total: count, Match: p.str("InstanceMatchCriteria"),
			Kind: kindDefault, Tags: map[string]string{},
		}
		setDefault(&r.Match, matchOpen)
		if platform := p.str("InstancePlatform"); platform != "Linux/UNIX" {
			return nil, invalidValue("This simulator has the platform Linux/UNIX only, not '%s'", platform)
		}
		if r.Tags, err = reservationTags(p); err != nil {
			return nil, err
		}
		// "If the EndDateType is limited, you must specify an EndDate; do not provide one if it is unlimited" (API reference,
		// CreateCapacityReservation, EndDateType; unlimited is the default).
		end := p.str("EndDate")
		if (p.str("EndDateType") == "limited") != (end != "") {
			return nil, refuse("InvalidParameterCombination", "EndDate is for the EndDateType limited, and required there")
		}
		if end != "" {
			if r.EndAt, err = time.Parse(time.RFC3339, end); err != nil {
				return nil, invalidValue("Invalid value '%s' for EndDate.", end)
			}
		}
		if *orFalse(p.flag("DryRun")) {
			return nil, errDryRun
		}
		if err := cr.reserve(r, c.at); err != nil {
			return nil, err
		}
		return createReservationXML{cr.xml(r, c.at)}, nil
	})
}

func (cr *capacityReservations) cancel(c *call) (any, error) {
	id := c.form.str("CapacityReservationId")
	r := cr.rows[id]
	if r == nil {
		return nil, refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
	}
	if r.Owner != "" { // "Consumers can't modify or cancel Capacity Reservations that are shared with them" (user guide, "Shared Capacity Reservations")
		return nil, refuse("UnauthorizedOperation", "The capacity reservation '%s' belongs to the account %s.", id, r.Owner)
	}
	if *orFalse(c.form.flag("DryRun")) {
		return nil, errDryRun
	}
	r.CancelledAt = c.at
	cr.put(r.ID, r)
	for _, i := range cr.instances.sorted() {
		if i.Capacity == r.ID { // they run on, at the on-demand price
			i.Capacity = ""
			cr.instances.put(i.ID, i)
		}
	}
	return returnTrue, nil
}

type describeReservationsXML struct {
	Reservations []capacityReservationXML `xml:"capacityReservationSet>item"`
	Next         string                   `xml:"nextToken,omitempty"`
}

func (cr *capacityReservations) describe(c *call) (any, error) {
	ids := c.form.strings("CapacityReservationId")
	for _, id := range ids {
		if cr.rows[id] == nil {
			return nil, refuse("InvalidCapacityReservationId.NotFound", "The capacity reservation ID '%s' does not exist", id)
		}
	}
	found := slices.DeleteFunc(cr.sorted(), func(r *capacityReservation) bool { return ids != nil && !slices.Contains(ids, r.ID) })
	found, err := sift(found, parseFilters(c.form), func(r *capacityReservation) attributes {
		return tagged(r.Tags, func(name string) ([]string, bool) {
			switch name {
			case "instance-type":
				return []string{r.Type}, true
			case "availability-zone":
				return []string{r.Zone}, true
			case "owner-id":
				return []string{r.owner()}, true
			case "instance-match-criteria":
				return []string{r.Match}, true
			case "state":
				return []string{r.state(c.at)}, true
			}
			return nil, false
		})
	})
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, found, 1, 1000, func(r *capacityReservation) string { return r.ID })
	if err != nil {
		return nil, err
	}
	out := describeReservationsXML{Next: next}
	for _, r := range page {
		out.Reservations = append(out.Reservations, cr.xml(r, c.at))
	}
	return out, nil
}

// wanted returns the row for a reservation to create.
func (want Reservation) wanted(now time.Time) *capacityReservation {
	r := &capacityReservation{
		Type: want.Type, Zone: want.Zone, Total: want.Count, Match: matchOpen, Kind: kindDefault, Tags: want.Tags,
		Interruptible: want.Interruptible, Owner: want.Owner,
	}
	if want.Owner != "" {
		r.Tags = map[string]string{}
	}
	if want.Targeted {
		r.Match = matchTargeted
	}
	if want.Block {
		r.Kind, r.Match = kindBlock, matchTargeted
	}
	if want.Duration > 0 {
		r.EndAt = now.Add(time.Duration(want.Duration))
	}
	return r
}

// capacityReservations are the account's capacity reservations, by id.
type capacityReservations struct {
	*table[capacityReservation]
	account   *account
	catalogue *Catalogue
	tokens    *clientTokens
	instances *table[instance]
}
