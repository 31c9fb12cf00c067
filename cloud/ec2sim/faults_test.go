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
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func (a *account) faults(t *testing.T, f ec2sim.Faults) {
	t.Helper()
	if err := a.sim.SetFaults(f); err != nil {
		t.Fatal(err)
	}
}

// living returns the number of instances that have not ended.
func (a *account) living() int {
	n := 0
	for _, i := range a.sim.Instances() {
		if i.EndedAt == nil {
			n++
		}
	}
	return n
}

func TestPartialFulfilment(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	for _, tc := range []struct {
		reason   string
		faults   ec2sim.Faults
		launched int
		errors   []string
	}{
		{
			reason: "one pool has two left and the other none",
			faults: ec2sim.Faults{Capacity: []ec2sim.CapacityFault{
				{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1a"}, Remaining: 2}, {PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1b", InstanceType: "m5.*"}},
			}},
			launched: 2, errors: []string{"InsufficientInstanceCapacity", "InsufficientInstanceCapacity"},
		},
		{
			reason:   "the other zone takes what one that is out cannot",
			faults:   ec2sim.Faults{ZonesOut: []string{"us-east-1a"}},
			launched: 5, errors: []string{"InsufficientInstanceCapacity"},
		},
		{
			reason:   "a fault for spot leaves on-demand alone",
			faults:   ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{CapacityType: "spot"}}}},
			launched: 5,
		},
		{
			reason:   "the code can be chosen",
			faults:   ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Code: "VcpuLimitExceeded"}}},
			launched: 0, errors: []string{"VcpuLimitExceeded", "VcpuLimitExceeded"},
		},
		{
			reason:   "subnets run out of addresses",
			faults:   ec2sim.Faults{FreeAddresses: map[string]int{a.subnets(t)["us-east-1a"]: 0}},
			launched: 5, errors: []string{"InsufficientFreeAddressesInSubnet"},
		},
	} {
		a.faults(t, tc.faults)
		out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 5, onDemand, a.override(t, "m5.large", "us-east-1a"), a.override(t, "m5.large", "us-east-1b")))
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)
			continue
		}
		var codes []string
		for _, e := range out.Errors {
			codes = append(codes, aws.ToString(e.ErrorCode))
			if e.LaunchTemplateAndOverrides.Overrides.InstanceType != "m5.large" || aws.ToString(e.LaunchTemplateAndOverrides.Overrides.SubnetId) == "" {
				t.Errorf("%s: the error does not name its override: %+v", tc.reason, e.LaunchTemplateAndOverrides)
			}
		}
		if got := len(launched(out)); got != tc.launched || !slices.Equal(codes, tc.errors) {
			t.Errorf("%s: launched %d with errors %v, want %d with %v", tc.reason, got, codes, tc.launched, tc.errors)
		}
	}
}

func TestMinimumOrNothing(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 3, onDemand, a.override(t, "m5.large", "us-east-1a"))
	in.OnDemandOptions = &ec2types.OnDemandOptionsRequest{MinTargetCapacity: aws.Int32(3), SingleInstanceType: aws.Bool(true)}
	a.faults(t, ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{Remaining: 2}}})
	out, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || len(launched(out)) != 0 || len(out.Errors) != 1 || a.living() != 0 {
		t.Errorf("fleet below its minimum: %+v, %v; %d instances live", out, err, a.living())
	}
}

func TestLostReplyIsFoundAgainByToken(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	in := fleetInput(a.template(t, "x86_64"), 2, onDemand, a.override(t, "m5.large", "us-east-1a"))
	in.ClientToken = aws.String("group-7")
	a.faults(t, ec2sim.Faults{Lost: []ec2sim.ReplyFault{{Action: "CreateFleet", Occurrence: ec2sim.Occurrence{Times: 1}}}})
	if _, err := a.ec2.CreateFleet(ctx(t), in); err == nil {
		t.Fatal("the answer was not lost")
	}
	if a.living() != 2 {
		t.Fatalf("%d instances live after the lost answer, want 2", a.living())
	}
	out, err := a.ec2.CreateFleet(ctx(t), in)
	if err != nil || len(launched(out)) != 2 || a.living() != 2 {
		t.Errorf("asking again: %+v, %v; %d instances live", out, err, a.living())
	}
	if got := a.sim.CallCounts()["CreateFleet"]; got != (ec2sim.CallCount{Total: 2, Lost: 1}) {
		t.Errorf("calls: %+v", got)
	}
}

func TestThrottling(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	in := fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a"))
	launches := func(n int) (ok int) {
		for range n {
			if _, err := a.ec2.CreateFleet(ctx(t), in); err == nil {
				ok++
			} else {
				wantCode(t, err, "RequestLimitExceeded")
			}
		}
		return ok
	}
	a.faults(t, ec2sim.Faults{Throttle: 1})
	if got := launches(8); got != 5 {
		t.Errorf("%d of 8 launches passed, want the 5 of the bucket", got)
	}
	a.clock.Advance(time.Second)
	if got := launches(5); got != 2 {
		t.Errorf("%d launches passed a second later, want the 2 refilled", got)
	}
	a.faults(t, ec2sim.Faults{Throttle: 0.1})
	if got := launches(3); got != 1 {
		t.Errorf("%d launches passed at a tenth, want 1", got)
	}
	a.clock.Advance(5 * time.Second)
	if got := launches(3); got != 1 {
		t.Errorf("%d launches passed at a tenth after 5 s, want 1", got)
	}
	if got := a.sim.CallCounts()["CreateFleet"].Throttled; got != 3+3+2+2 {
		t.Errorf("%d calls were counted as throttled", got)
	}
}

func TestErrorsOnDemand(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	a.faults(t, ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "Describe*", Code: "InternalError", Occurrence: ec2sim.Occurrence{Times: 2}}}})
	for range 2 {
		_, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{})
		wantCode(t, err, "InternalError")
	}
	if _, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{}); err != nil {
		t.Errorf("after the fault has struck twice: %v", err)
	}
	if err := a.sim.SetFaults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "X"}}}); err == nil {
		t.Error("an error fault without a code was accepted")
	}
}

func TestDescribeLag(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	a.faults(t, ec2sim.Faults{DescribeLag: ec2sim.Duration(30 * time.Second)})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	ids := launched(out)
	byTag := func() int {
		t.Helper()
		d, err := a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{Filters: []ec2types.Filter{
			filterOf("tag:group", "g1"), filterOf("instance-state-name", "pending", "running"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return len(d.Reservations)
	}
	_, err = a.ec2.DescribeInstances(ctx(t), &ec2.DescribeInstancesInput{InstanceIds: ids})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	_, err = a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	if got := byTag(); got != 0 {
		t.Errorf("%d instances are seen at once", got)
	}
	a.clock.Advance(31 * time.Second)
	if got := byTag(); got != 1 {
		t.Errorf("%d instances are seen after the lag, want 1", got)
	}
	if _, err := a.ec2.TerminateInstances(ctx(t), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
		t.Fatal(err)
	}
	a.clock.Advance(10 * time.Second)
	if got := byTag(); got != 1 {
		t.Error("the end is seen before the lag is over")
	}
	a.clock.Advance(21 * time.Second)
	if got := byTag(); got != 0 {
		t.Error("the end is not seen after the lag")
	}
}

func TestSpotInterruption(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	queue, err := a.sqs().CreateQueue(ctx(t), &sqs.CreateQueueInput{QueueName: aws.String("tenon")})
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 1, spot, a.override(t, "m5.large", "us-east-1a")))
	if err != nil || len(launched(out)) != 1 || out.Instances[0].Lifecycle != ec2types.InstanceLifecycleSpot {
		t.Fatalf("spot fleet: %+v, %v", out, err)
	}
	id := launched(out)[0]
	requests, err := a.ec2.DescribeSpotInstanceRequests(ctx(t), &ec2.DescribeSpotInstanceRequestsInput{Filters: []ec2types.Filter{filterOf("instance-id", id)}})
	if err != nil || len(requests.SpotInstanceRequests) != 1 || !strings.HasPrefix(*requests.SpotInstanceRequests[0].SpotInstanceRequestId, "sir-") {
		t.Errorf("spot requests: %+v, %v", requests, err)
	}
	if err := a.sim.Interrupt(2*time.Minute, id); err != nil {
		t.Fatal(err)
	}
	received, err := a.sqs().ReceiveMessage(ctx(t), &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
	if err != nil || len(received.Messages) != 1 {
		t.Fatalf("messages: %+v, %v", received, err)
	}
	var event struct {
		DetailType string `json:"detail-type"`
		Source     string
		Detail     map[string]string
	}
	if err := json.Unmarshal([]byte(*received.Messages[0].Body), &event); err != nil {
		t.Fatal(err)
	}
	if event.Source != "aws.ec2" || event.DetailType != "EC2 Spot Instance Interruption Warning" || event.Detail["instance-id"] != id {
		t.Errorf("event: %+v", event)
	}
	if a.clock.Advance(119 * time.Second); a.living() != 1 {
		t.Error("the instance ended before its notice was over")
	}
	if a.clock.Advance(2 * time.Second); a.living() != 0 {
		t.Error("the instance outlived its notice")
	}
	if err := a.sim.Interrupt(0, id); err == nil {
		t.Error("an instance that ended was interrupted again")
	}
}

func TestInstancesDie(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	a.faults(t, ec2sim.Faults{Die: []ec2sim.BootFault{{After: ec2sim.Duration(time.Minute), Occurrence: ec2sim.Occurrence{Times: 1}}}})
	out, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 2, onDemand, a.override(t, "m5.large", "us-east-1a")))
	if err != nil {
		t.Fatal(err)
	}
	if a.clock.Advance(61 * time.Second); a.living() != 1 {
		t.Errorf("%d instances live, want the one that the fault did not strike", a.living())
	}
	left := slices.DeleteFunc(a.sim.Instances(), func(i ec2sim.Instance) bool { return i.EndedAt != nil })
	if err := a.sim.Kill(left[0].ID); err != nil || a.living() != 0 {
		t.Errorf("kill: %v, %d live", err, a.living())
	}
	if !slices.Contains(launched(out), left[0].ID) {
		t.Error("an instance of another fleet")
	}
}

func TestControlEndpoint(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	name := a.template(t, "x86_64")
	control := func(method, path, body string, into any) int {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx(t), method, a.sim.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if into != nil {
			if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode
	}
	if code := control("PUT", "/_sim/faults", `{"capacity":[{"instanceType":"c5.*"}],"describeLag":"0s"}`, nil); code != http.StatusOK {
		t.Errorf("PUT faults: status %d", code)
	}
	if code := control("PUT", "/_sim/faults", `{"capacitee":[]}`, nil); code != http.StatusBadRequest {
		t.Errorf("PUT of a misspelt fault: status %d", code)
	}
	var faults ec2sim.Faults
	control("GET", "/_sim/faults", "", &faults)
	if diff := cmp.Diff(ec2sim.Faults{Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{InstanceType: "c5.*"}}}}, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, err := a.ec2.CreateFleet(ctx(t), fleetInput(name, 2, onDemand, a.override(t, "c5.large", "us-east-1a"), a.override(t, "m5.large", "us-east-1a"))); err != nil {
		t.Fatal(err)
	}
	var cost ec2sim.Cost
	control("GET", "/_sim/cost", "", &cost)
	if diff := cmp.Diff(ec2sim.Cost{Instances: 2, USDPerHr: 0.192, ByType: map[string]int{"m5.large": 2}}, cost); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
	var instances []ec2sim.Instance
	control("GET", "/_sim/instances", "", &instances)
	var calls []ec2sim.Call
	control("GET", "/_sim/calls?action=CreateFl*", "", &calls)
	if len(instances) != 2 || len(calls) != 1 || calls[0].ClientToken == "" {
		t.Errorf("instances: %+v, calls: %+v", instances, calls)
	}
	if code := control("POST", "/_sim/kill", `{"instances":["`+instances[0].ID+`"]}`, nil); code != http.StatusOK || a.living() != 1 {
		t.Errorf("kill: status %d, %d live", code, a.living())
	}
	if code := control("POST", "/_sim/reset", "", nil); code != http.StatusOK || len(a.sim.Instances()) != 0 {
		t.Errorf("reset: status %d, instances %+v", code, a.sim.Instances())
	}
	if code := control("GET", "/_sim/nothing", "", nil); code != http.StatusNotFound {
		t.Errorf("unknown control: status %d", code)
	}
}
