package aws_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// prepare prepares a launch of one instance from these offerings, with the group as its token.
func (a *account) prepare(provider *aws.Provider, class *awsv1.EC2NodeClass, group string, keys ...cloud.OfferingKey) cloud.LaunchRequest {
	a.t.Helper()
	request, err := provider.PrepareLaunch(a.t.Context(), cloud.LaunchSpec{
		Group: group, Count: 1, Class: class, NodePool: "default", CapacityType: keys[0].CapacityType, Offerings: keys})
	if err != nil {
		a.t.Fatal(err)
	}
	request.Token = group
	return request
}

func large(capacityType, zone string) cloud.OfferingKey {
	return cloud.OfferingKey{InstanceType: "m5.large", Zone: zone, CapacityType: capacityType}
}

// TestEveryMarketLaunches buys an instance in each of EC2's markets, each of which refuses the requests of the others.
func TestEveryMarketLaunches(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	reserve := func(r ec2sim.Reservation) cloud.OfferingKey {
		r.Type, r.Zone, r.Count = "m5.large", "us-east-1a", 1
		key := large("reserved", r.Zone)
		key.ReservationID = a.reserve(r)
		return key
	}
	reserved, block, interruptible := reserve(ec2sim.Reservation{Targeted: true}), reserve(ec2sim.Reservation{Block: true}), reserve(ec2sim.Reservation{Interruptible: true})
	class := a.resolvedClass(awsv1.CapacityReservationSelectorTerm{OwnerID: "123456789012"})
	for market, keys := range map[string][]cloud.OfferingKey{
		"on-demand": {large("on-demand", "us-east-1a")}, "spot": {large("spot", "us-east-1a")},
		"reserved": {reserved, block, interruptible}, "a capacity block": {block, interruptible}, "an interruptible reservation": {interruptible},
	} {
		request := a.prepare(a.provider, class, market, keys...)
		result, err := a.provider.Launch(t.Context(), request)
		if err != nil || len(result.Instances) != 1 || result.Instances[0].Reservation != keys[0].ReservationID {
			t.Errorf("%s: %+v, %v", market, result, err)
		}
		if overrides := detailsOf(t, request).Overrides; len(overrides) != 1 {
			t.Errorf("%s: one fleet buys in one market, not %+v", market, overrides)
		}
	}
}

// TestWhatAFailureSays checks which failures have spent their token, and which of them leave open what was launched.
func TestWhatAFailureSays(t *testing.T) {
	t.Parallel()
	inBody := func(code, zone string) ec2sim.Faults {
		return ec2sim.Faults{Fleet: []ec2sim.FleetFault{{Code: code, PoolPattern: ec2sim.PoolPattern{Zone: zone}}}}
	}
	asError := func(code string) ec2sim.Faults {
		return ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: code}}}
	}
	mixed := inBody("RequestLimitExceeded", "us-east-1a")
	mixed.Capacity = []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1b"}}}
	for reason, test := range map[string]struct {
		faults           ec2sim.Faults
		kind             cloud.ErrorKind
		answered, unsure bool
	}{
		"throttled in the body":                       {faults: inBody("RequestLimitExceeded", ""), kind: cloud.Throttled, answered: true, unsure: false},
		"throttled as an error":                       {faults: asError("RequestLimitExceeded"), kind: cloud.Throttled, answered: true, unsure: false},
		"throttled beside pools without capacity":     {faults: mixed, kind: cloud.Throttled, answered: true, unsure: false},
		"an error of EC2's own, in the body":          {faults: inBody("InternalError", ""), kind: cloud.Transient, answered: true, unsure: false},
		"an error of EC2's own may have launched":     {faults: asError("InternalError"), kind: cloud.Transient, answered: true, unsure: true},
		"forbidden in the body":                       {faults: inBody("UnauthorizedOperation", ""), kind: cloud.Forbidden, answered: true, unsure: false},
		"forbidden as an error":                       {faults: asError("UnauthorizedOperation"), kind: cloud.Forbidden, answered: true, unsure: false},
		"an unknown code in the body":                 {faults: inBody("NeverHeardOf", ""), kind: cloud.Transient, answered: true, unsure: false},
		"an unknown code as an error":                 {faults: asError("NeverHeardOf"), kind: cloud.Transient, answered: true, unsure: false},
		"an answer without a word is no want of room": {faults: inBody("", ""), kind: cloud.Transient, answered: true, unsure: true},
		"a reply that is lost is no answer": {faults: ec2sim.Faults{Lost: []ec2sim.ReplyFault{{Action: "CreateFleet"}}},
			kind: cloud.Transient, answered: false, unsure: false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			class := a.NodeClass()
			a.resolve(a.provider, class)
			request := a.prepare(a.provider, class, "g", large("on-demand", "us-east-1a"), large("on-demand", "us-east-1b"))
			a.change(func(f *ec2sim.Faults) { *f = test.faults })
			_, err := a.provider.Launch(t.Context(), request)
			if cloud.KindOf(err) != test.kind || cloud.Answered(err) != test.answered || cloud.Unsure(err) != test.unsure {
				t.Errorf("%v: answered %v, unsure %v; want kind %s, %v, %v", err, cloud.Answered(err), cloud.Unsure(err), test.kind, test.answered, test.unsure)
			}
			if calls := a.sim.CallCounts()["CreateFleet"].Total; calls != 2 { // the other is the class's dry run
				t.Errorf("one launch was sent %d times", calls-1)
			}
		})
	}
}

// TestWithoutTheSpotRoleThereIsNoSpot checks that without the service-linked role for spot, all spot counts as lacking
// capacity, and on-demand can be launched at once.
func TestWithoutTheSpotRoleThereIsNoSpot(t *testing.T) {
	t.Parallel()
	const code = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	for reason, faults := range map[string]ec2sim.Faults{
		"in the body": {Fleet: []ec2sim.FleetFault{{Code: code, PoolPattern: ec2sim.PoolPattern{CapacityType: "spot"}}}},
		"as an error": {Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: code, Occurrence: ec2sim.Occurrence{Times: 1}}}},
	} {
		a := newAccount(t)
		class := a.NodeClass()
		a.resolve(a.provider, class)
		request := a.prepare(a.provider, class, "spot", large("spot", "us-east-1a"))
		a.change(func(f *ec2sim.Faults) { *f = faults })
		if _, err := a.provider.Launch(t.Context(), request); cloud.KindOf(err) != cloud.InsufficientCapacity {
			t.Errorf("%s: %v", reason, err)
		}
		types, err := a.provider.InstanceTypes(t.Context(), class)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range types {
			for _, o := range kind.Offerings {
				if o.CapacityType == "spot" && o.Available {
					t.Fatalf("%s: %s is still to be had as spot in %s", reason, kind.Name, o.Zone)
				}
			}
		}
		if result, err := a.provider.Launch(t.Context(), a.prepare(a.provider, class, "on-demand", large("on-demand", "us-east-1a"))); err != nil || len(result.Instances) != 1 {
			t.Errorf("%s: on-demand: %+v, %v", reason, result, err)
		}
	}
}

// TestWorkersShareLaunchTemplates lets two workers launch in turns, one of which also removes old templates, with
// clocks that differ by 45 minutes, or 45 minutes between launches. Each launch is one CreateFleet, and no template is
// left once the class is released.
func TestWorkersShareLaunchTemplates(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct{ skew, step time.Duration }{
		"45 minutes between launches":               {0, 45 * time.Minute},
		"clocks 45 minutes apart":                   {45 * time.Minute, 7 * time.Minute},
		"clocks apart, and time between launches":   {45 * time.Minute, 45 * time.Minute},
		"the cleaner's clock is 45 minutes behind":  {-45 * time.Minute, 7 * time.Minute},
		"one launches often, and the cleaner never": {0, 3 * time.Minute},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			cleaner, err := aws.New(t.Context(), aws.Options{Cluster: "blue", Load: a.load(), Now: func() time.Time { return a.Now().Add(test.skew) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cleaner.Close)
			workers := []*aws.Provider{a.provider, cleaner}
			class := a.NodeClass()
			// launches counts the CreateFleet calls so far that were not dry runs, and those of them that failed.
			launches := func() (sent, failed int) {
				for _, call := range a.sim.Calls("CreateFleet") {
					switch call.Code {
					case "DryRunOperation":
					case "":
						sent++
					default:
						sent, failed = sent+1, failed+1
					}
				}
				return sent, failed
			}
			for n := range 24 {
				worker := workers[n%2]
				if test.skew == 0 && test.step < 5*time.Minute {
					worker = a.provider
				}
				a.resolve(cleaner, class)
				request := a.prepare(worker, class, fmt.Sprint("group-", n), large("on-demand", "us-east-1a"))
				a.Advance(test.step / 2)
				a.resolve(cleaner, class)
				if _, err := worker.Launch(t.Context(), request); err != nil {
					t.Errorf("launch %d: %v", n, err)
				}
				if sent, failed := launches(); sent != n+1 || failed != 0 {
					t.Fatalf("%d CreateFleet calls after %d launches, %d of them failed", sent, n+1, failed)
				}
				a.Advance(test.step - test.step/2)
			}
			if err := cleaner.ReleaseNodeClass(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			out, err := a.ec2.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{})
			if err != nil || len(out.LaunchTemplates) != 0 {
				t.Errorf("%d templates are left, %v", len(out.LaunchTemplates), err)
			}
		})
	}
}
