package aws_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// TestEndingBlocks reads when EC2 empties a capacity block, and sees that it does.
func TestEndingBlocks(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	began := a.Now()
	block := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 1, Block: true, Duration: ec2sim.Duration(2 * time.Hour)})
	plain := a.reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1b", Count: 1, Targeted: true, Duration: ec2sim.Duration(2 * time.Hour)})
	launched := map[string]string{}
	for id, zone := range map[string]string{block: "us-east-1a", plain: "us-east-1b"} {
		class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{ID: id})
		key := cloud.OfferingKey{InstanceType: "m5.large", Zone: zone, CapacityType: "reserved", ReservationID: id}
		request, err := a.provider.PrepareLaunch(t.Context(), cloud.LaunchSpec{Group: "in-" + id, Count: 1, Class: class, CapacityType: "reserved", Offerings: []cloud.OfferingKey{key}})
		if err != nil {
			t.Fatal(err)
		}
		request.Token = request.Group
		result, err := a.provider.Launch(t.Context(), request)
		if err != nil || len(result.Instances) != 1 {
			t.Fatalf("launched %+v, %v", result, err)
		}
		launched[id] = result.Instances[0].ID
	}
	ending := func() map[string]time.Time {
		found, err := a.provider.EndingBlocks(t.Context(), []string{block, plain, "cr-0123456789abcdef0"})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := ending(); len(found) > 0 {
		t.Errorf("%v end two hours before their end", found)
	}
	a.Advance(80*time.Minute + time.Second)
	found := ending()
	if emptied := found[block]; len(found) != 1 || emptied.Sub(began).Round(time.Minute) != 90*time.Minute {
		t.Errorf("%v end, want only the capacity block, which EC2 empties after an hour and a half", found)
	}
	a.Advance(10 * time.Minute)
	running, err := a.provider.Instances(t.Context(), cloud.Query{})
	if err != nil || len(running) != 1 || running[0].ID != launched[plain] {
		t.Errorf("half an hour before the end %+v run, %v; want only the instance in the other reservation", running, err)
	}
	a.Advance(30 * time.Minute)
	running, err = a.provider.Instances(t.Context(), cloud.Query{})
	if err != nil || len(running) != 1 || running[0].CapacityType != "on-demand" || running[0].Reservation != "" {
		t.Errorf("after the end %+v run, %v; want an instance on demand", running, err)
	}
	if diff := cmp.Diff(map[string]time.Time{}, ending()); diff != "" {
		t.Errorf("after the end (-want +got):\n%s", diff)
	}
}
