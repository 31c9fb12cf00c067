package ec2sim_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// tell posts a JSON document to a control of the simulator, and returns the status.
func (a *account) tell(t *testing.T, path, document string) int {
	t.Helper()
	response, err := http.Post(a.sim.URL()+path, "application/json", strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// bodies receives up to ten messages of a queue and returns their bodies.
func (a *account) bodies(t *testing.T, queue string) []string {
	t.Helper()
	out, err := a.sqs().ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: aws.String(a.sim.URL() + "/1/" + queue), MaxNumberOfMessages: 10})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for i := range out.Messages {
		bodies = append(bodies, aws.ToString(out.Messages[i].Body))
	}
	return bodies
}

func TestEventsOnDemand(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"one", "two"}})
	for name, want := range map[string][2]string{
		"spot-interruption":        {"aws.ec2", "EC2 Spot Instance Interruption Warning"},
		"rebalance-recommendation": {"aws.ec2", "EC2 Instance Rebalance Recommendation"},
		"reservation-interruption": {"aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"},
		"scheduled-change":         {"aws.health", "AWS Health Event"},
		"running":                  {"aws.ec2", "EC2 Instance State-change Notification"},
		"stopped":                  {"aws.ec2", "EC2 Instance State-change Notification"},
		"terminated":               {"aws.ec2", "EC2 Instance State-change Notification"},
	} {
		if code := a.tell(t, "/_sim/event", `{"event":"`+name+`","instances":["i-1"]}`); code != http.StatusOK {
			t.Fatalf("%s: status %d", name, code)
		}
		one, two := a.bodies(t, "one"), a.bodies(t, "two")
		if len(one) != 1 || len(two) != 1 || one[0] != two[0] {
			t.Fatalf("%s: every queue gets the event, once: %v, %v", name, one, two)
		}
		var event struct {
			Source     string          `json:"source"`
			DetailType string          `json:"detail-type"`
			Time       time.Time       `json:"time"`
			Detail     json.RawMessage `json:"detail"`
		}
		if err := json.Unmarshal([]byte(one[0]), &event); err != nil {
			t.Fatal(err)
		}
		if event.Source != want[0] || event.DetailType != want[1] || !event.Time.Equal(a.clock.Now()) || !strings.Contains(string(event.Detail), `"i-1"`) {
			t.Errorf("%s: %s, want a %q of %s about i-1, now", name, one[0], want[1], want[0])
		}
	}
	if code := a.tell(t, "/_sim/event", `{"event":"rained","instances":["i-1"]}`); code != http.StatusBadRequest || len(a.bodies(t, "one")) != 0 {
		t.Errorf("an event that EC2 does not have: status %d", code)
	}
	if code := a.tell(t, "/_sim/message", `{"body":"hello"}`); code != http.StatusOK {
		t.Errorf("a text: status %d", code)
	}
	if got := a.bodies(t, "two"); len(got) != 1 || got[0] != "hello" {
		t.Errorf("the text arrived as %q", got)
	}
	if code := a.tell(t, "/_sim/reset", ""); code != http.StatusOK || len(a.bodies(t, "one")) != 0 {
		t.Errorf("after a reset the queues are there and empty: status %d", code)
	}
}

func TestInstanceStatusOnDemand(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 3, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	ids := launched(out)
	a.clock.Advance(time.Minute)
	if code := a.tell(t, "/_sim/status", `{"instances":["`+ids[0]+`"],"system":"impaired","for":"3m"}`); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	if code := a.tell(t, "/_sim/status", `{"instances":["`+ids[1]+`"],"event":"instance-stop"}`); code != http.StatusOK {
		t.Fatalf("status %d", code)
	}
	for _, wrong := range []string{`{"instances":["i-none"],"system":"impaired"}`, `{"instances":["` + ids[0] + `"],"system":"unwell"}`} {
		if code := a.tell(t, "/_sim/status", wrong); code != http.StatusBadRequest {
			t.Errorf("%s: status %d", wrong, code)
		}
	}
	find := func(filter, value string) []ec2types.InstanceStatus {
		t.Helper()
		out, err := a.ec2.DescribeInstanceStatus(ctx(t), &ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{filterOf(filter, value)}})
		if err != nil {
			t.Fatal(err)
		}
		return out.InstanceStatuses
	}
	impaired := find("system-status.status", "impaired")
	if len(impaired) != 1 || *impaired[0].InstanceId != ids[0] || !impaired[0].SystemStatus.Details[0].ImpairedSince.Equal(a.clock.Now().Add(-3*time.Minute)) ||
		impaired[0].InstanceStatus.Status != ec2types.SummaryStatusOk {
		t.Errorf("impaired: %+v", impaired)
	}
	if scheduled := find("event.code", "instance-stop"); len(scheduled) != 1 || *scheduled[0].InstanceId != ids[1] || !scheduled[0].Events[0].NotBefore.After(a.clock.Now()) {
		t.Errorf("scheduled: %+v", scheduled)
	}
	if well := find("instance-status.status", "ok"); len(well) != 3 {
		t.Errorf("%d instances are well, want 3", len(well))
	}
	if code := a.tell(t, "/_sim/status", `{"instances":["`+ids[0]+`"]}`); code != http.StatusOK || len(find("system-status.status", "impaired")) != 0 {
		t.Errorf("a machine that has recovered: status %d", code)
	}
}

func TestReservationIsTakenBack(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{Queues: []string{"q"}})
	reservation, err := a.sim.Reserve(ec2sim.Reservation{Type: "m5.large", Zone: "us-east-1a", Count: 1, Interruptible: true})
	if err != nil {
		t.Fatal(err)
	}
	name := a.changedTemplate(t, "interruptible", func(data *ec2types.RequestLaunchTemplateData) {
		data.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: ec2types.MarketTypeInterruptibleCapacityReservation}
		data.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(reservation)}}
	})
	in := fleetInput(name, 1, ec2types.DefaultTargetCapacityTypeReservedCapacity, a.override(t, "m5.large", "us-east-1a"))
	in.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
		ReservationTypes: []ec2types.FleetReservationType{ec2types.FleetReservationTypeInterruptibleCapacityReservation}}
	inside, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := a.ec2.CreateFleet(ctx(t), fleetInput(a.template(t, "x86_64"), 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	var refused int
	for _, id := range slices.Concat(launched(inside), launched(outside)) {
		if err := a.sim.Interrupt(2*time.Minute, id); err != nil {
			refused++
		}
	}
	warnings := a.bodies(t, "q")
	if refused != 1 || len(warnings) != 1 || !strings.Contains(warnings[0], "EC2 Capacity Reservation Instance Interruption Warning") || !strings.Contains(warnings[0], `"azId"`) {
		t.Errorf("only the instance in the reservation can be interrupted: %d refused, warnings %v", refused, warnings)
	}
	a.clock.Advance(3 * time.Minute)
	if living := a.living(); living != 1 {
		t.Errorf("%d instances live after the notice, want 1", living)
	}
}
