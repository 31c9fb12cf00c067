package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/tenon-sh/tenon/cloud"
	tenonaws "github.com/tenon-sh/tenon/cloud/aws"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// reservedCount is the size of the reservation, and askedFor the size of the partial launch.
const (
	reservedCount = 2
	askedFor      = 3
)

// reserve creates the reservation in the first zone that has room for it. It is targeted, so that nobody else's launches use
// it, and ends by itself. Then it prepares all launches that need the reservation full, because the provider prepares none
// into a reservation that it knows to be full.
func reserve(ctx context.Context, l *live) outcome {
	if len(l.machine.zones) == 0 {
		return skip("there is no machine to reserve")
	}
	var refused []error
	zone := ""
	for _, zone = range l.machine.zones {
		made, err := l.ec2.CreateCapacityReservation(ctx, &ec2.CreateCapacityReservationInput{
			ClientToken: aws.String(l.token(stepReservation + zone)), AvailabilityZone: aws.String(zone), InstanceType: aws.String(l.machine.instanceType),
			InstanceCount: aws.Int32(reservedCount), InstancePlatform: types.CapacityReservationInstancePlatformLinuxUnix,
			InstanceMatchCriteria: types.InstanceMatchCriteriaTargeted,
			EndDateType:           types.EndDateTypeLimited, EndDate: aws.Time(l.now().Add(reservedFor).UTC()),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeCapacityReservation, Tags: []types.Tag{{
				Key: aws.String(tagKey), Value: aws.String(l.run),
			}}}},
		})
		if err != nil {
			refused = append(refused, err)
			continue
		}
		l.reservation = aws.ToString(made.CapacityReservation.CapacityReservationId)
		break
	}
	if l.reservation == "" {
		return fail("%v", errors.Join(refused...))
	}
	if err := l.roomFor(ctx, reservedCount); err != nil {
		return fail("%v", err)
	}
	l.reservedOn = l.class.DeepCopy()
	l.reservedOn.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: l.reservation}}
	if err := l.resolveClass(ctx, l.reservedOn); err != nil {
		return fail("%v", err)
	}
	for step, count := range map[string]int{stepPartial: askedFor, stepNoCapacity: 1} {
		s, err := l.prepare(ctx, step, count, l.reservedOn, l.intoReservation(zone))
		if err != nil {
			return fail("%v", err)
		}
		l.prepared[step] = s
	}
	return pass("%s of %d × %s in %s", l.reservation, reservedCount, l.machine.instanceType, zone)
}

func (l *live) intoReservation(zone string) []cloud.OfferingKey {
	return []cloud.OfferingKey{{InstanceType: l.machine.instanceType, Zone: zone, CapacityType: karpv1.CapacityTypeReserved, ReservationID: l.reservation}}
}

// roomFor waits until the reservation is active and has room for this many instances.
func (l *live) roomFor(ctx context.Context, count int32) error {
	return l.await(ctx, fmt.Sprintf("%s to have room for %d", l.reservation, count), endPatience, look, func() (bool, error) {
		found, err := l.ec2.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{l.reservation}})
		if err != nil {
			if codeOf(err) == "InvalidCapacityReservationId.NotFound" {
				return false, nil // EC2 has not heard of its own reservation yet
			}
			return false, fmt.Errorf("look at the reservation: %w", err)
		}
		if len(found.CapacityReservations) != 1 {
			return false, nil
		}
		r := found.CapacityReservations[0]
		return r.State == types.CapacityReservationStateActive && aws.ToInt32(r.AvailableInstanceCount) >= count, nil
	})
}

// partial asks for more than is reserved, from one pool. The documentation does not say whether EC2 gives a part of what one
// pool cannot give whole, as it does over several pools.
func partial(ctx context.Context, l *live) outcome {
	s := l.prepared[stepPartial]
	if s == nil {
		return skip("there is no reservation")
	}
	a, err := l.launch(ctx, s)
	if err != nil {
		return fail("%v", err)
	}
	ids, err := l.launchedIn(ctx, s.Request.Group, len(a.Instances))
	switch {
	case err != nil:
		return fail("%v", err)
	case len(ids) != len(a.Instances):
		return fail("the answer is %s, and EC2 has %v", a, ids)
	case len(ids) > reservedCount:
		return fail("%d instances where %d are reserved: %s", len(ids), reservedCount, a)
	case len(ids) < reservedCount:
		return observe("%d of %d, with room for %d: %s", len(ids), askedFor, reservedCount, a)
	}
	return pass("%d of %d: %s", len(ids), askedFor, a)
}

// noCapacity asks for one more instance when the reservation is full.
func noCapacity(ctx context.Context, l *live) outcome {
	s, first := l.prepared[stepNoCapacity], l.state.find(stepPartial)
	if s == nil || first == nil || first.Answer == nil || len(first.Answer.Instances) != reservedCount {
		return skip("the reservation is not full")
	}
	if err := l.spend(s); err != nil {
		return fail("%v", err)
	}
	a, sent := l.send(ctx, s.Request)
	if a == nil {
		return fail("%v", sent)
	}
	if err := l.answered(s, a, nil); err != nil {
		return fail("%v", err)
	}
	switch {
	case len(a.Instances) > 0:
		return fail("it launched into a full reservation: %s", a)
	case cloud.KindOf(sent) != cloud.InsufficientCapacity:
		return fail("%s counts as %s, want %s", a, cloud.KindOf(sent), cloud.InsufficientCapacity)
	}
	return pass("%s", a)
}

// replayWithRoom sends the token of the launch that lacked capacity again when there is some. Tenon does not do this: for
// Tenon, an answer ends a token.
func replayWithRoom(ctx context.Context, l *live) outcome {
	full, o, ok := l.spentBy(stepNoCapacity)
	if !ok {
		return o
	}
	if err := l.terminate(ctx, l.state.find(stepPartial).Answer.Instances); err != nil {
		return fail("%v", err)
	}
	if err := l.roomFor(ctx, reservedCount); err != nil {
		return fail("%v", err)
	}
	return l.see(ctx, full)
}

func reservedNode(ctx context.Context, l *live) outcome {
	first := l.prepared[stepPartial]
	if first == nil {
		return skip("there is no reservation")
	}
	if a := first.Answer; a != nil && len(a.Instances) > 0 {
		if err := l.terminate(ctx, a.Instances); err != nil {
			return fail("%v", err)
		}
	}
	if err := l.roomFor(ctx, 1); err != nil {
		return fail("%v", err)
	}
	details, err := tenonaws.ReadDetails(first.Request)
	if err != nil {
		return fail("%v", err)
	}
	var s *spent
	// The provider reads the reservation's room again after a minute.
	err = l.await(ctx, "the provider to see room in the reservation", 3*time.Minute, look, func() (bool, error) {
		var err error
		s, err = l.prepare(ctx, stepReserved, 1, l.reservedOn, l.intoReservation(details.Overrides[0].Zone))
		if cloud.KindOf(err) == cloud.InsufficientCapacity {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fail("%v", err)
	}
	o := l.single(ctx, s, func(i cloud.Instance) error {
		if i.Reservation != l.reservation {
			return fmt.Errorf("%s runs in the reservation %q, want %s", i.ID, i.Reservation, l.reservation)
		}
		return wantCapacity(karpv1.CapacityTypeReserved)(i)
	})
	if s.Answer != nil && len(s.Answer.Instances) > 0 {
		if err := l.terminate(ctx, s.Answer.Instances); err != nil {
			return fail("%v", err)
		}
	}
	return o
}
