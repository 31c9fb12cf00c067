package aws

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

const (
	// refreshReservations is how old the counts of free places in reservations may be.
	refreshReservations = time.Minute
	// blockEnds is how long before its end a capacity block stops taking new instances, and blockEmptied how long before it
	// EC2 begins to terminate those that run (EC2 User Guide, "Capacity Blocks for ML").
	blockEnds, blockEmptied = 40 * time.Minute, 30 * time.Minute
	// reservedDiscount makes reserved offerings cheaper than all others and keeps the order of their prices.
	reservedDiscount = 10_000_000
)

// reservationPool knows how much room capacity reservations have. Launches of this process count at once; EC2's own
// count is read again every minute. Launches of other processes are noticed then, or when EC2 refuses a launch.
type reservationPool struct {
	api *calls.EC2
	now func() time.Time

	flight singleflight.Group
	mu     sync.Mutex
	room   map[string]reservationRoom
	seq    uint64
}

type reservationRoom struct {
	left int
	read time.Time
}

func newReservationPool(api *calls.EC2, now func() time.Time) *reservationPool {
	return &reservationPool{api: api, now: now, room: make(map[string]reservationRoom)}
}

// reservationQuery is one query for reservations, by ids or by filters.
type reservationQuery struct {
	ids     []string
	filters []types.Filter
}

// reservationQueries turns selector terms into queries. Terms with ids share queries.
func reservationQueries(terms []awsv1.CapacityReservationSelectorTerm) []reservationQuery {
	var queries []reservationQuery
	var ids []string
	for _, term := range terms {
		if term.ID != "" {
			ids = append(ids, term.ID)
			continue
		}
		filters := tagFilters(term.Tags)
		if term.OwnerID != "" {
			filters = append(filters, filter("owner-id", term.OwnerID))
		}
		if term.InstanceMatchCriteria != "" {
			filters = append(filters, filter("instance-match-criteria", term.InstanceMatchCriteria))
		}
		if len(filters) > 0 {
			queries = append(queries, reservationQuery{filters: filters})
		}
	}
	for chunk := range slices.Chunk(ids, maxFilterValues) {
		queries = append(queries, reservationQuery{ids: chunk})
	}
	return queries
}

// selectReservations returns the active reservations that any term matches, ordered by id.
func (r *reservationPool) selectReservations(ctx context.Context, terms []awsv1.CapacityReservationSelectorTerm) ([]awsv1.CapacityReservation, error) {
	found := make(map[string]awsv1.CapacityReservation)
	for _, query := range reservationQueries(terms) {
		reservations, err := r.describe(ctx, query)
		if err != nil {
			return nil, err
		}
		for i := range reservations {
			read := readReservation(&reservations[i], r.now())
			found[read.ID] = read
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b awsv1.CapacityReservation) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// describe reads active reservations and records their free places. If EC2 does not know one of several ids, the whole
// call fails, and describe asks for each id separately.
func (r *reservationPool) describe(ctx context.Context, query reservationQuery) ([]types.CapacityReservation, error) {
	found, err := r.read(ctx, query)
	if hasCode(err, "InvalidCapacityReservationId.NotFound") {
		found, err = nil, nil
		for _, id := range query.ids {
			if len(query.ids) == 1 {
				break
			}
			alone, err := r.describe(ctx, reservationQuery{ids: []string{id}})
			if err != nil {
				return nil, err
			}
			found = append(found, alone...)
		}
	}
	if err != nil {
		return nil, classify("DescribeCapacityReservations", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range found {
		r.set(aws.ToString(found[i].CapacityReservationId), int(aws.ToInt32(found[i].AvailableInstanceCount)))
	}
	return found, nil
}

// read asks EC2 for reservations. Ids and a page size cannot be combined (API reference, DescribeCapacityReservations,
// MaxResults).
func (r *reservationPool) read(ctx context.Context, query reservationQuery) ([]types.CapacityReservation, error) {
	input := &ec2.DescribeCapacityReservationsInput{
		CapacityReservationIds: query.ids,
		Filters:                append(slices.Clone(query.filters), filter("state", string(types.CapacityReservationStateActive))),
	}
	if len(query.ids) == 0 {
		input.MaxResults = aws.Int32(1000)
	}
	var out []types.CapacityReservation
	for pages := ec2.NewDescribeCapacityReservationsPaginator(r.api.DescribeCapacityReservations, input); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, page.CapacityReservations...)
	}
	return out, nil
}

// set records how much room a reservation has. The caller holds the lock.
func (r *reservationPool) set(id string, left int) {
	if known, ok := r.room[id]; !ok || known.left != left {
		r.seq++
	}
	r.room[id] = reservationRoom{left: left, read: r.now()}
}

func readReservation(in *types.CapacityReservation, now time.Time) awsv1.CapacityReservation {
	out := awsv1.CapacityReservation{
		ID:                    aws.ToString(in.CapacityReservationId),
		AvailabilityZone:      aws.ToString(in.AvailabilityZone),
		InstanceMatchCriteria: string(in.InstanceMatchCriteria),
		InstanceType:          aws.ToString(in.InstanceType),
		OwnerID:               aws.ToString(in.OwnerId),
		ReservationType:       awsv1.CapacityReservationTypeDefault,
		State:                 awsv1.CapacityReservationStateActive,
		Interruptible:         aws.ToBool(in.Interruptible),
	}
	if in.EndDate != nil {
		end := metav1.NewTime(in.EndDate.UTC())
		out.EndTime = &end
	}
	if in.ReservationType == types.CapacityReservationTypeCapacityBlock {
		out.ReservationType = awsv1.CapacityReservationTypeCapacityBlock
		if out.EndTime != nil && now.After(out.EndTime.Add(-blockEnds)) {
			out.State = awsv1.CapacityReservationStateExpiring
		}
	}
	return out
}

// rooms returns how much room reservations have, and a number that changes whenever the answers may have changed. It
// reads from EC2 what is unknown or old. A reservation EC2 no longer shows has no room.
func (r *reservationPool) rooms(ctx context.Context, reservations []awsv1.CapacityReservation) (map[string]int, uint64, error) {
	if len(reservations) == 0 {
		return nil, 0, nil
	}
	if ids := r.stale(reservations); len(ids) > 0 {
		_, err, _ := r.flight.Do("", func() (any, error) { return nil, r.refresh(ctx, ids) })
		if err != nil {
			return nil, 0, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rooms := make(map[string]int, len(reservations))
	for i := range reservations {
		rooms[reservations[i].ID] = r.room[reservations[i].ID].left
	}
	return rooms, r.seq, nil
}

func (r *reservationPool) stale(reservations []awsv1.CapacityReservation) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for i := range reservations {
		if known, ok := r.room[reservations[i].ID]; !ok || !r.now().Before(known.read.Add(refreshReservations)) {
			ids = append(ids, reservations[i].ID)
		}
	}
	return ids
}

func (r *reservationPool) refresh(ctx context.Context, ids []string) error {
	seen := make(map[string]bool, len(ids))
	for chunk := range slices.Chunk(ids, maxFilterValues) {
		found, err := r.describe(ctx, reservationQuery{ids: chunk})
		if err != nil {
			return err
		}
		for i := range found {
			seen[aws.ToString(found[i].CapacityReservationId)] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		if !seen[id] {
			r.set(id, 0)
		}
	}
	return nil
}

// took subtracts the instances that were launched into a reservation from its room.
func (r *reservationPool) took(id string, n int) {
	r.change(id, func(left int) int { return max(0, left-n) })
}

// full records that EC2 has refused a launch for lack of room.
func (r *reservationPool) full(id string) {
	r.change(id, func(int) int { return 0 })
}

// change adjusts a reservation's room but keeps the time of its reading, so that EC2's own count returns within a
// minute.
func (r *reservationPool) change(id string, left func(int) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.room[id]; ok {
		r.room[id] = reservationRoom{left: left(known.left), read: known.read}
		r.seq++
	}
}

// reservedOfferings returns the offerings a machine has through the class's reservations, in the order of the class's
// status.
func (r *resolvedClass) reservedOfferings(m *machine, market market) []cloud.Offering {
	var offerings []cloud.Offering
	for _, reservation := range r.reservations[m.name] {
		subnets := r.zones[reservation.AvailabilityZone]
		if len(subnets) == 0 {
			continue
		}
		key := cloud.OfferingKey{
			InstanceType: m.name, Zone: reservation.AvailabilityZone, CapacityType: karpv1.CapacityTypeReserved, ReservationID: reservation.ID,
			PlacementGroup: r.group.groupID(),
		}
		price, known := market.price(key)
		offerings = append(offerings, cloud.Offering{
			CapacityType: karpv1.CapacityTypeReserved,
			Zone:         reservation.AvailabilityZone,
			ZoneID:       subnets[0].ZoneID,
			Price:        price,
			Available: known && market.reachable(subnets) && market.shifted[subnets[0].ZoneID].IsZero() && !market.unavailable.offering(key) &&
				reservation.State != awsv1.CapacityReservationStateExpiring,
			ShiftedUntil:             market.shifted[subnets[0].ZoneID],
			ReservationID:            reservation.ID,
			ReservationCapacity:      market.room[reservation.ID],
			ReservationType:          string(cmp.Or(reservation.ReservationType, awsv1.CapacityReservationTypeDefault)),
			ReservationInterruptible: reservation.Interruptible,
		})
	}
	return offerings
}

// marketOf returns the market in which a class's reservation is used: "" for on-demand, or without a reservation.
func marketOf(class *awsv1.EC2NodeClass, id string) types.MarketType {
	if id == "" {
		return ""
	}
	at := slices.IndexFunc(class.Status.CapacityReservations, func(r awsv1.CapacityReservation) bool { return r.ID == id })
	switch {
	case at < 0:
		return ""
	case class.Status.CapacityReservations[at].ReservationType == awsv1.CapacityReservationTypeCapacityBlock:
		return types.MarketTypeCapacityBlock
	case class.Status.CapacityReservations[at].Interruptible:
		return types.MarketTypeInterruptibleCapacityReservation
	}
	return ""
}
