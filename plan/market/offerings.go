package market

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// ErrNothingToLaunch says that no instance type and offering meets a claim.
var ErrNothingToLaunch = errors.New("no instance type and available offering meets the claim")

// Offerings are the ways to launch a NodeClaim, whether it was planned or written by hand: the cheapest first, of one
// capacity type (reserved before spot before on-demand), of at most MaxInstanceTypes types. Types have to hold the
// claim's requests, in which DaemonSets are included. What may be launched of them follows the one rule for that
// (launchable.go), as far as minValues permits. Of the reservations that hold a type in a zone the one with the most room is
// named. The error wraps ErrNothingToLaunch.
func Offerings(claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time,
	now time.Time, policy model.MinValuesPolicy,
) ([]cloud.OfferingKey, error) {
	sales, err := salesFor(claim, types, unavailable, now)
	if err != nil {
		return nil, err
	}
	capacityTypesOf := offeredAs(sales)
	sales, all := inOrderOfPrice(launchable(sales)), inOrderOfPrice(sales)
	kept, met := choices(sales, claim.Spec.Requirements, capacityTypesOf)
	if !met {
		sales = all
		kept, met = choices(sales, claim.Spec.Requirements, capacityTypesOf)
	}
	relaxed := policy == model.MinValuesBestEffort || claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey] == "true"
	if !met && !relaxed {
		return nil, fmt.Errorf("too few values to choose from for minValues: %w", ErrNothingToLaunch)
	}
	var keys []cloud.OfferingKey
	for _, s := range sales {
		if kept[s.typ.Name] {
			keys = append(keys, s.key)
		}
	}
	return keys, nil
}

// inOrderOfPrice are the sales of the best capacity type that is among them, the cheapest first.
func inOrderOfPrice(sales []sale) []sale {
	best := slices.MinFunc(sales, func(a, b sale) int { return cmp.Compare(a.rank, b.rank) }).rank
	sales = slices.DeleteFunc(slices.Clone(sales), func(s sale) bool { return s.rank != best })
	slices.SortStableFunc(sales, func(a, b sale) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.typ.Name, b.typ.Name), cmp.Compare(a.key.Zone, b.key.Zone),
			-cmp.Compare(a.room, b.room), cmp.Compare(a.key.ReservationID, b.key.ReservationID))
	})
	return oneReservationEach(sales)
}

// sale is one offering of one type.
type sale struct {
	typ *cloud.InstanceType
	key cloud.OfferingKey
	// labels are those that follow from the offering.
	labels map[string]string
	price  float64
	rank   int // of the capacity type
	odd    Oddity
	// room is what the reservation has left, and block says that it is a capacity block.
	room  int
	block bool
}

func salesFor(claim *karpv1.NodeClaim, types []*cloud.InstanceType, unavailable map[cloud.OfferingKey]time.Time, now time.Time) ([]sale, error) {
	var ofType, ofOffering model.Term
	for _, c := range model.ConditionsOf(claim.Spec.Requirements) {
		switch c.Key {
		case corev1.LabelTopologyZone, corev1.LabelTopologyRegion, zoneIDLabel, karpv1.CapacityTypeLabelKey:
			ofOffering = append(ofOffering, c)
		default:
			switch {
			case ofReservation(c.Key):
				ofOffering = append(ofOffering, c)
			case karpv1.WellKnownLabels().Has(c.Key):
				ofType = append(ofType, c)
			}
		}
	}
	dims := NewDimensions([]*model.Class{{Requests: model.ResourcesOf(claim.Spec.Resources.Requests)}})
	requests := dims.Vector(model.ResourcesOf(claim.Spec.Resources.Requests))
	var sales []sale
	for _, typ := range types {
		allocatable := model.ResourcesOf(typ.Allocatable)
		if !admitsType(ofType, typ, claim.Labels) || !Fits(requests, dims.Vector(allocatable)) {
			continue
		}
		odd := OddityOf(typ, slices.ContainsFunc(allocatable.Extended, func(a model.Amount) bool { return model.IsDevice(a.Name) }), asksForDevice(allocatable, dims))
		for _, s := range salesOf(typ, ofOffering, unavailable, now) {
			s.odd = odd
			sales = append(sales, s)
		}
	}
	if len(sales) == 0 {
		return nil, fmt.Errorf("NodeClaim %s: %w", claim.Name, ErrNothingToLaunch)
	}
	return sales, nil
}

// asksForDevice says that one of a machine's devices was asked for.
func asksForDevice(allocatable model.Resources, dims *Dimensions) bool {
	return slices.ContainsFunc(allocatable.Extended, func(a model.Amount) bool {
		_, asked := dims.index[a.Name]
		return asked && model.IsDevice(a.Name)
	})
}

func salesOf(typ *cloud.InstanceType, conditions model.Term, unavailable map[cloud.OfferingKey]time.Time, now time.Time) []sale {
	var sales []sale
	for i := range typ.Offerings {
		offering := &typ.Offerings[i]
		rank := slices.Index(CapacityTypes[:], offering.CapacityType)
		key := cloud.OfferingKey{InstanceType: typ.Name, Zone: offering.Zone, CapacityType: offering.CapacityType, ReservationID: offering.ReservationID}
		if offering.CapacityType == karpv1.CapacityTypeReserved && (offering.ReservationID == "" || offering.ReservationCapacity <= 0) {
			continue
		}
		if until, refused := unavailable[key]; rank < 0 || !offering.Available || offering.Price <= 0 || refused && now.Before(until) {
			continue
		}
		labels := offeringLabels(typ, offering)
		if conditions.Admits(labels) {
			sales = append(sales, sale{typ: typ, key: key, labels: labels, price: offering.Price, rank: rank, room: offering.ReservationCapacity,
				block: offering.ReservationType == string(awsv1.CapacityReservationTypeCapacityBlock)})
		}
	}
	return sales
}

// offeringLabels are the labels that follow from an offering.
func offeringLabels(typ *cloud.InstanceType, o *cloud.Offering) map[string]string {
	labels := offeredLabels(typ, o)
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	maps.Copy(labels, reservationLabels(o))
	return labels
}

// oneReservationEach leaves of reserved sales, sorted by price and room, what one launch can choose from: one reservation
// for each type and zone, and either capacity blocks, of which a launch takes one, or none of them.
func oneReservationEach(sales []sale) []sale {
	if sales[0].key.CapacityType != karpv1.CapacityTypeReserved {
		return sales
	}
	if sales[0].block {
		return sales[:1]
	}
	var kept []sale
	for _, s := range sales {
		last := len(kept) - 1
		if s.block || last >= 0 && kept[last].typ == s.typ && kept[last].key.Zone == s.key.Zone {
			continue
		}
		kept = append(kept, s)
	}
	return kept
}

// offeredAs are the capacity types of each instance type: the choice there was before one of them was taken.
func offeredAs(sales []sale) map[string][]string {
	types := map[string][]string{}
	for _, s := range sales {
		types[s.typ.Name] = append(types[s.typ.Name], s.key.CapacityType)
	}
	return types
}

// choices picks the instance types of sorted sales, and says whether they meet the requirements' minValues.
func choices(sales []sale, requirements []karpv1.NodeSelectorRequirementWithMinValues, offered map[string][]string) (map[string]bool, bool) {
	counts := make([]map[string]bool, len(requirements))
	valuesOf := func(s sale, key string) []string {
		if karpv1.NormalizedLabelKey(key) == karpv1.CapacityTypeLabelKey {
			return offered[s.typ.Name]
		}
		if value := s.label(key); value != "" {
			return []string{value}
		}
		return nil
	}
	missing := func(s sale) bool {
		for i, r := range requirements {
			if r.MinValues == nil || len(counts[i]) >= *r.MinValues {
				continue
			}
			for _, value := range valuesOf(s, r.Key) {
				if !counts[i][value] {
					return true
				}
			}
		}
		return false
	}
	for i := range counts {
		counts[i] = map[string]bool{}
	}
	kept := map[string]bool{}
	keep := func(s sale) {
		kept[s.typ.Name] = true
		for i, r := range requirements {
			for _, value := range valuesOf(s, r.Key) {
				counts[i][value] = true
			}
		}
	}
	for _, s := range sales {
		if len(kept) == 0 || kept[s.typ.Name] || len(kept) < model.MaxInstanceTypes && missing(s) {
			keep(s)
		}
	}
	for _, s := range sales {
		if kept[s.typ.Name] || len(kept) < model.MaxInstanceTypes {
			keep(s)
		}
	}
	for i, r := range requirements {
		if r.MinValues != nil && len(counts[i]) < *r.MinValues {
			return kept, false
		}
	}
	return kept, true
}

// label is the value a label has on what is sold; empty if it has none.
func (s *sale) label(key string) string {
	key = karpv1.NormalizedLabelKey(key)
	if value, ofOffering := s.labels[key]; ofOffering {
		return value
	}
	if key == corev1.LabelInstanceTypeStable {
		return s.typ.Name
	}
	return s.typ.Labels[key]
}
