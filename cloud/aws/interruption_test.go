package aws_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func TestNoticesOfEveryEvent(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for event, want := range map[string]cloud.InterruptionKind{
		"spot-interruption": cloud.SpotInterruption, "rebalance-recommendation": cloud.RebalanceRecommendation,
		"reservation-interruption": cloud.ReservationInterruption, "scheduled-change": cloud.ScheduledChange,
		"stopping": cloud.InstanceStopping, "stopped": cloud.InstanceStopping, "shutting-down": cloud.InstanceTerminating, "terminated": cloud.InstanceTerminated,
	} {
		if err := a.sim.Announce(event, "i-1"); err != nil {
			t.Fatal(err)
		}
		notices := a.receive("blue")
		if len(notices) != 1 {
			t.Fatalf("%s: %d notices, want 1", event, len(notices))
		}
		if diff := cmp.Diff(cloud.Interruption{Kind: want, Instances: []string{"i-1"}, At: a.Now()}, notices[0].Interruption); diff != "" || notices[0].Err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", event, notices[0].Err, diff)
		}
	}
}

func TestNoticesComeUntilTheyAreDeleted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for n := range 14 {
		if err := a.sim.Announce("stopped", fmt.Sprintf("i-%d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.sim.Post("hello"); err != nil {
		t.Fatal(err)
	}
	first, second := a.receive("blue"), a.receive(a.sim.URL()+"/111122223333/blue")
	if len(first) != 10 || len(second) != 5 {
		t.Fatalf("%d and %d notices, want 10, the most SQS gives at once, and 5", len(first), len(second))
	}
	if junk := second[4]; junk.Err == nil || junk.Kind != "" {
		t.Errorf("what is no event became %+v, want an error", junk)
	}
	var receipts []string
	for _, notice := range append(first, second[:2]...) {
		receipts = append(receipts, notice.Receipt)
	}
	if err := a.provider.Interruptions("blue").Delete(t.Context(), receipts); err != nil {
		t.Fatal(err)
	}
	a.Advance(21 * time.Second)
	if again := a.receive("blue"); len(again) != 3 {
		t.Errorf("%d notices came again, want the 3 that nobody deleted", len(again))
	}
}

func TestMissingQueueIsSaid(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, err := a.provider.Interruptions("none").Receive(t.Context())
	if cloud.KindOf(err) != cloud.Invalid || !strings.Contains(fmt.Sprint(err), "queue none") {
		t.Errorf("error %v, want one of kind Invalid that names the queue", err)
	}
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, stop)
	if _, err := a.provider.Interruptions("blue").Receive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that the context is cancelled", err)
	}
}

func TestUnhealthy(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	ids := make([]string, 6)
	for i := range ids {
		ids[i] = a.ForeignInstance()
	}
	a.Advance(time.Minute)
	set := func(status ec2sim.Status, ids ...string) {
		t.Helper()
		if err := a.sim.SetStatus(status, ids...); err != nil {
			t.Fatal(err)
		}
	}
	set(ec2sim.Status{System: "impaired", For: ec2sim.Duration(3 * time.Minute)}, ids[1])
	set(ec2sim.Status{Instance: "impaired", For: ec2sim.Duration(119 * time.Second)}, ids[2])
	set(ec2sim.Status{Event: "instance-retirement"}, ids[3])
	set(ec2sim.Status{Event: "instance-reboot", Description: "[Completed] The instance is running on degraded hardware"}, ids[4])
	set(ec2sim.Status{Event: "system-reboot", Instance: "impaired", System: "impaired", For: ec2sim.Duration(time.Hour)}, ids[5])
	check := func(reason string, want ...cloud.Interruption) {
		t.Helper()
		got, err := a.provider.Interruptions("").Unhealthy(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", reason, err, diff)
		}
	}
	sorted := func(ids ...string) []string {
		if len(ids) == 2 && ids[0] > ids[1] {
			ids[0], ids[1] = ids[1], ids[0]
		}
		return ids
	}
	check("a check counts after two minutes, an event at once unless it is over",
		cloud.Interruption{Kind: cloud.SystemImpaired, Instances: sorted(ids[1], ids[5])},
		cloud.Interruption{Kind: cloud.InstanceImpaired, Instances: []string{ids[5]}},
		cloud.Interruption{Kind: cloud.ScheduledChange, Instances: sorted(ids[3], ids[5])})
	set(ec2sim.Status{}, ids[1], ids[3], ids[5])
	check("what has recovered is no longer told", nil...)
	a.Advance(time.Second)
	check("a second later two minutes are over", cloud.Interruption{Kind: cloud.InstanceImpaired, Instances: []string{ids[2]}})
}

func TestShunnedOfferings(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	offering := func() cloud.Offering {
		t.Helper()
		kinds, err := a.provider.InstanceTypes(t.Context(), class)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range kinds {
			for _, offering := range kind.Offerings {
				if kind.Name == "m5.large" && offering.Zone == "us-east-1a" && offering.CapacityType == "spot" {
					return offering
				}
			}
		}
		t.Fatal("m5.large is not sold as spot in us-east-1a")
		return cloud.Offering{}
	}
	if !offering().Available {
		t.Fatal("it is not available to begin with")
	}
	a.provider.Shun(cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"})
	if offering().Available {
		t.Error("EC2 has just taken capacity back there, yet it is offered")
	}
	a.Advance(3*time.Minute + time.Second)
	if !offering().Available {
		t.Error("three minutes are over, yet it is not offered")
	}
}

// receive returns the next notices of the queue.
func (a *account) receive(queue string) []cloud.Notice {
	a.t.Helper()
	notices, err := a.provider.Interruptions(queue).Receive(a.t.Context())
	if err != nil {
		a.t.Fatal(err)
	}
	return notices
}
