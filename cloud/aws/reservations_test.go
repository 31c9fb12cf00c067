package aws_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func (a *account) reserve(want ec2sim.Reservation) string {
	a.t.Helper()
	id, err := a.sim.Reserve(want)
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// resolvedClass returns a resolved class that selects reservations.
func (a *account) resolvedClass(terms ...awsv1.CapacityReservationSelectorTerm) *awsv1.EC2NodeClass {
	a.t.Helper()
	class := a.NodeClass()
	class.Spec.CapacityReservationSelectorTerms = terms
	a.resolve(a.provider, class)
	return class
}

// room returns how much room each reservation has left, according to its available offering.
func room(t *testing.T, provider *aws.Provider, class *awsv1.EC2NodeClass) map[string]int {
	t.Helper()
	types, err := provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	rooms := map[string]int{}
	for _, typ := range types {
		for _, o := range typ.Offerings {
			if o.CapacityType == "reserved" && o.Available {
				rooms[o.ReservationID] = o.ReservationCapacity
			}
		}
	}
	return rooms
}

// A class sees the reservations that its terms select, and no others.
func TestReservationsAreSelected(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	blue := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 3, Targeted: true, Tags: map[string]string{"team": "blue"}})
	red := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1b", Count: 2, Tags: map[string]string{"team": "red"}})
	block := a.reserve(ec2sim.Reservation{Type: "m5.xlarge", Zone: "us-east-1a", Count: 1, Block: true, Duration: ec2sim.Duration(2 * time.Hour), Tags: map[string]string{"team": "blue"}})
	shared := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1c", Count: 1, Targeted: true, Owner: "210987654321", Tags: map[string]string{"team": "blue"}})
	tests := []struct {
		name  string
		terms []awsv1.CapacityReservationSelectorTerm
		want  []string
	}{
		{name: "none"},
		{name: "by id", terms: []awsv1.CapacityReservationSelectorTerm{{ID: red}}, want: []string{red}},
		{name: "by tag", terms: []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "blue"}}}, want: []string{blue, block}},
		{name: "by any value of a tag", terms: []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "*"}}}, want: []string{blue, red, block}},
		{name: "by ids of which one is gone",
			terms: []awsv1.CapacityReservationSelectorTerm{{ID: red}, {ID: "cr-0123456789abcdef0"}, {ID: blue}}, want: []string{blue, red}},
		{name: "by an id that is gone", terms: []awsv1.CapacityReservationSelectorTerm{{ID: "cr-0123456789abcdef0"}}},
		{name: "by several terms", terms: []awsv1.CapacityReservationSelectorTerm{{ID: red}, {ID: blue}}, want: []string{blue, red}},
		{name: "by who may use it", terms: []awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "open", OwnerID: "123456789012"}}, want: []string{red}},
		{name: "shared by another account", terms: []awsv1.CapacityReservationSelectorTerm{{OwnerID: "210987654321"}}, want: []string{shared}},
		{name: "shared, by id", terms: []awsv1.CapacityReservationSelectorTerm{{ID: shared}}, want: []string{shared}},
		{name: "of somebody else", terms: []awsv1.CapacityReservationSelectorTerm{{OwnerID: "999999999999"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			class := a.resolvedClass(test.terms...)
			var got []string
			for _, r := range class.Status.CapacityReservations {
				got = append(got, r.ID)
			}
			slices.Sort(test.want)
			if !slices.Equal(got, test.want) {
				t.Errorf("selected %v, want %v", got, test.want)
			}
			condition := class.Condition(awsv1.ConditionTypeCapacityReservationsReady)
			if (condition != nil) != (len(test.terms) > 0) || condition != nil && condition.Status != metav1.ConditionTrue {
				t.Errorf("condition %v with %d terms", condition, len(test.terms))
			}
			if rooms := room(t, a.provider, class); len(rooms) != len(test.want) {
				t.Errorf("offerings of %v, want %v", rooms, test.want)
			}
		})
	}
	class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: block})
	a.Advance(81 * time.Minute)
	class = a.resolvedClass(class.Spec.CapacityReservationSelectorTerms...)
	if class.Status.CapacityReservations[0].State != awsv1.CapacityReservationStateExpiring || len(room(t, a.provider, class)) > 0 {
		t.Errorf("a capacity block is of no use in its last 40 minutes: %+v", class.Status.CapacityReservations[0])
	}
}

// Instances launched into a reservation run there and count at once. Once it is full, nothing is launched elsewhere.
func TestLaunchIntoReservation(t *testing.T) {
	t.Parallel()
	for whose, owner := range map[string]string{"the account's own": "", "shared by another account": "210987654321"} {
		t.Run(whose, func(t *testing.T) {
			t.Parallel()
			launchIntoReservation(t, ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2, Targeted: true, Owner: owner})
		})
	}
}

func launchIntoReservation(t *testing.T, reservation ec2sim.Reservation) {
	t.Helper()
	a := newAccount(t)
	id := a.reserve(reservation)
	class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: id})
	key := cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "reserved", ReservationID: id}
	prepare := func(group string, count int, key cloud.OfferingKey) (cloud.LaunchRequest, error) {
		request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{
			Group: group, Count: count, Class: class, NodePool: "default", CapacityType: key.CapacityType, Offerings: []cloud.OfferingKey{key}})
		request.Token = group
		return request, err
	}
	request, err := prepare("first", 3, key)
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.provider.Launch(t.Context(), request)
	if err != nil || len(result.Instances) != 2 || len(result.Refused) != 1 || result.Refused[0].OfferingKey != key {
		t.Fatalf("launched %+v, refused %+v, %v; want two of three", result.Instances, result.Refused, err)
	}
	for _, i := range result.Instances {
		if i.CapacityType != "reserved" || i.Reservation != id {
			t.Errorf("instance %+v", i)
		}
	}
	if rooms := room(t, a.provider, class); rooms[id] != 0 {
		t.Errorf("%d left, want none", rooms[id])
	}
	if _, err := prepare("second", 1, key); cloud.KindOf(err) != cloud.InsufficientCapacity {
		t.Errorf("a full reservation is not launched into: %v", err)
	}
	described, err := a.provider.Instances(t.Context(), cloud.Query{LaunchGroup: "first"})
	if err != nil || len(described) != 2 || described[0].CapacityType != "reserved" || described[0].Reservation != id {
		t.Errorf("described as %+v, %v", described, err)
	}
	other := a.newProvider()
	if rooms := room(t, other, class); rooms[id] != 0 {
		t.Errorf("another worker sees %d left, want none", rooms[id])
	}
	if err := a.provider.Terminate(t.Context(), []string{result.Instances[0].ID}); err != nil {
		t.Fatal(err)
	}
	a.Advance(61 * time.Second)
	if rooms := room(t, other, class); rooms[id] != 1 {
		t.Errorf("%d left a minute after an instance ended, want 1", rooms[id])
	}
}

// An on-demand launch does not use the open reservations of its class, because they are kept for launches that ask for
// them.
func TestOnDemandLeavesReservationsAlone(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	id := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 2})
	class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: id})
	key := cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}
	request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{
		Group: "g", Count: 1, Class: class, CapacityType: "on-demand", Offerings: []cloud.OfferingKey{key}})
	if err != nil {
		t.Fatal(err)
	}
	request.Token = "g"
	result, err := a.provider.Launch(t.Context(), request)
	if err != nil || len(result.Instances) != 1 || result.Instances[0].CapacityType != "on-demand" {
		t.Fatalf("launched %+v, %v", result, err)
	}
	out, err := a.ec2.DescribeCapacityReservations(t.Context(), &ec2.DescribeCapacityReservationsInput{})
	if err != nil || *out.CapacityReservations[0].AvailableInstanceCount != 2 {
		t.Errorf("the reservation has %+v, %v; want two left", out, err)
	}
}

// Reserved offerings are cheaper than all others and keep the order of their prices.
func TestReservedPrices(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	small := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 1})
	large := a.reserve(ec2sim.Reservation{Type: "m5.xlarge", Zone: "us-east-1a", Count: 1})
	types, err := a.provider.InstanceTypes(t.Context(), a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: small}, awsv1.CapacityReservationSelectorTerm{ID: large}))
	if err != nil {
		t.Fatal(err)
	}
	prices := map[string]float64{}
	least := 0.0
	for _, typ := range types {
		for _, o := range typ.Offerings {
			if o.CapacityType == "reserved" {
				prices[o.ReservationID] = o.Price
			} else if least == 0 || o.Price < least {
				least = cmp.Or(o.Price, least)
			}
		}
	}
	if !(0 < prices[small] && prices[small] < prices[large] && prices[large] < least/1000) {
		t.Errorf("prices %v, the least of the others %v", prices, least)
	}
}
