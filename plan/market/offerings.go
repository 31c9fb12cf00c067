package market

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// ErrNothingToLaunch says that no instance type and offering meets a claim.
var ErrNothingToLaunch = errors.New("no instance type and available offering meets the claim")

// Offerings returns the ways to launch a NodeClaim, whether it was planned or written by hand: the cheapest first, of one
// capacity type (reserved before spot before on-demand), of at most MaxInstanceTypes types. Types have to hold the claim's
// requests, which include DaemonSets. The rules in launchable.go decide which of them may be launched, as far as minValues
// permits. Of several reservations for a type in a zone, the one with the most room is named. Errors wrap
// ErrNothingToLaunch.
func Offerings(keys cloud.LabelKeys, claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time,
	now time.Time, policy model.MinValuesPolicy,
) ([]cloud.OfferingKey, error) {
	offered, err := salesFor(keys, claim, types, unavailable, now)
	if err != nil {
		return nil, err
	}
	minimums := minimumsOf(claim.Spec.Requirements)
	worthwhile := launchable(offered, model.MaxPrice(claim))
	if len(worthwhile) == 0 {
		return nil, fmt.Errorf("NodeClaim %s: all spot costs more than on-demand would (%s an hour): %w", claim.Name,
			cloud.Money(offered[0].offering.Zone, model.MaxPrice(claim)), ErrNothingToLaunch)
	}
	chosen, met := choices(worthwhile, offered, minimums)
	if !met {
		chosen, met = choices(offered, offered, minimums)
	}
	relaxed := policy == model.MinValuesBestEffort || claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	if !met && !relaxed {
		return nil, fmt.Errorf("too few values to choose from for minValues: %w", ErrNothingToLaunch)
	}
	return chosen, nil
}

// sale is one offering of one type.
type sale struct {
	typ      *cloud.InstanceType
	offering *cloud.Offering
	// labels are those that follow from the offering.
	labels map[string]string
	rank   int // of the capacity type
	odd    Oddity
}

// salesFor returns the offerings that meet a claim's requirements, of types that hold its requests.
func salesFor(keys cloud.LabelKeys, claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time) ([]sale, error) {
	ofOffering, ofType := byOffering(keys, model.ConditionsOf(claim.Spec.Requirements))
	known := wellKnown(keys)
	ofType = slices.DeleteFunc(ofType, func(c model.Condition) bool { return !known.Has(c.Key) })
	asks := &model.Class{Requests: model.ResourcesOf(claim.Spec.Resources.Requests)}
	dims := NewDimensions([]*model.Class{asks})
	request, device := dims.Vector(asks.Requests), model.AsksDevice(asks)
	var sales []sale
	for _, typ := range types {
		allocatable := model.ResourcesOf(typ.Allocatable)
		if !admitsType(keys, ofType, typ, claim.Labels) || !solve.Fits(request, dims.Vector(allocatable)) {
			continue
		}
		odd := OddityOf(typ, allocatable.HasDevice(), device)
		for i := range typ.Offerings {
			offering := &typ.Offerings[i]
			rank := slices.Index(CapacityTypes[:], offering.CapacityType)
			usedUp := offering.CapacityType == karpv1.CapacityTypeReserved && (offering.ReservationID == "" || offering.ReservationCapacity <= 0)
			if rank < 0 || usedUp || !availableNow(offering, typ, unavailable, now) {
				continue
			}
			if labels := offeringLabels(keys, typ, offering); ofOffering.Admits(labels) {
				sales = append(sales, sale{typ: typ, offering: offering, labels: labels, rank: rank, odd: odd})
			}
		}
	}
	if len(sales) == 0 {
		return nil, fmt.Errorf("NodeClaim %s: %w", claim.Name, ErrNothingToLaunch)
	}
	return sales, nil
}

// choices picks from sales what one launch may choose from, and says whether its types meet the minimums. offered are the
// sales before any were left out.
func choices(sales, offered []sale, minimums []Minimum) (keys []cloud.OfferingKey, met bool) {
	sales = inOrderOfPrice(sales)
	var candidates []int
	first := map[*cloud.InstanceType]int{}
	for i := range sales {
		if _, known := first[sales[i].typ]; !known {
			first[sales[i].typ] = i
			candidates = append(candidates, i)
		}
	}
	chosen, met := newTally(minimums, func(candidate int, key string) (values []string) {
		from := sales
		if key == karpv1.CapacityTypeLabelKey {
			// A launch has one capacity type. Whether there are others shows whether there was a choice.
			from = offered
		}
		for i := range from {
			if value := from[i].label(key); value != "" && from[i].typ == sales[candidate].typ {
				values = append(values, value)
			}
		}
		return values
	}).Choose(candidates)
	for i := range sales {
		if slices.Contains(chosen, first[sales[i].typ]) {
			keys = append(keys, sales[i].offering.Key(sales[i].typ))
		}
	}
	return keys, met
}

// inOrderOfPrice returns the sales of the best capacity type among them, the cheapest first.
func inOrderOfPrice(sales []sale) []sale {
	best := slices.MinFunc(sales, func(a, b sale) int { return cmp.Compare(a.rank, b.rank) }).rank
	sales = slices.DeleteFunc(slices.Clone(sales), func(s sale) bool { return s.rank != best })
	slices.SortStableFunc(sales, func(a, b sale) int {
		return cmp.Or(cmp.Compare(a.offering.Price, b.offering.Price), cmp.Compare(a.typ.Name, b.typ.Name),
			cmp.Compare(a.offering.Zone, b.offering.Zone), -cmp.Compare(a.offering.ReservationCapacity, b.offering.ReservationCapacity),
			cmp.Compare(a.offering.ReservationID, b.offering.ReservationID))
	})
	return oneReservationEach(sales)
}

// oneReservationEach reduces reserved sales, sorted by price and room, to what one launch can choose from: a single
// capacity block if the first sale is one, and otherwise one reservation for each type and zone, without capacity blocks.
func oneReservationEach(sales []sale) []sale {
	if sales[0].offering.CapacityType != karpv1.CapacityTypeReserved {
		return sales
	}
	if sales[0].block() {
		return sales[:1]
	}
	sales = slices.DeleteFunc(sales, func(s sale) bool { return s.block() })
	return slices.CompactFunc(sales, func(a, b sale) bool { return a.typ == b.typ && a.offering.Zone == b.offering.Zone })
}

// block says that the sale is a capacity block.
func (s *sale) block() bool {
	return s.offering.ReservationType == cloud.ReservationBlock
}

// label returns the value of a label on a node from this sale; empty if it has none.
func (s *sale) label(key string) string {
	if value, ofOffering := s.labels[key]; ofOffering {
		return value
	}
	value, _ := typeLabel(s.typ, key)
	return value
}
