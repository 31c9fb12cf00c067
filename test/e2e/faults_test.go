package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
	"github.com/tenon-sh/tenon/workflows"
)

// onlyLeft and onlyLeftZone are the only type and zone with capacity while all others are dry.
const onlyLeft, onlyLeftZone = "m6i.4xlarge", "us-east-1c"

// ec2Faults makes EC2 fail in its various ways. The outcome is always the same: every pod runs, every claim has its own
// instance, nothing else was launched, everything is removed again, and EC2 was not called more often than it allows.
func ec2Faults(t *testing.T, w *world.World) {
	emptyAfter(w, "2s")
	// Pods that do not ask for this NodePool must not run here: its machines may be spot.
	w.Apply(nodePool("spot-first", "2s", []string{"{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}"}, "taints: [{key: spot-first, effect: NoSchedule}]"))
	for _, row := range []struct {
		reason string
		faults ec2sim.Faults
		load   []load
		check  func(*testing.T, *world.World)
	}{
		{reason: "the replies to launches are lost, more often than one call is tried again",
			faults: ec2sim.Faults{Lost: []ec2sim.ReplyFault{{Action: "CreateFleet", Occurrence: ec2sim.Occurrence{Times: 5}}}}, load: mixed, check: lost},
		{reason: "launches are answered with errors, of the API and of their pools",
			faults: ec2sim.Faults{
				Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: "RequestLimitExceeded", Occurrence: ec2sim.Occurrence{Times: 2}}},
				Fleet:  []ec2sim.FleetFault{{Code: "InternalError", Occurrence: ec2sim.Occurrence{Times: 3}}},
			}, load: mixed, check: answered},
		{reason: "the account has a tenth of EC2's request rates", faults: ec2sim.Faults{Throttle: 0.1}, load: choosy()},
		{reason: "the account lacks the service-linked role for spot",
			faults: ec2sim.Faults{Fleet: []ec2sim.FleetFault{{Code: noSpotRole, PoolPattern: ec2sim.PoolPattern{CapacityType: "spot"}}}}, load: spotFirst, check: onDemandInstead},
		{reason: "all types but one are out of capacity, and that one is left in one zone", faults: dryBut(), load: mixed, check: onlyOneType},
		{reason: "what is launched and ended shows late", faults: ec2sim.Faults{DescribeLag: ec2sim.Duration(10 * time.Second)}, load: mixed},
	} {
		t.Run(strings.ReplaceAll(row.reason, " ", "-"), func(t *testing.T) {
			w := w.For(t)
			w.Sim(http.MethodPost, "/_sim/calls/reset", nil, nil)
			w.Faults(row.faults)
			defer w.Heal()
			pods := 0
			for _, l := range row.load {
				w.Apply(deployment("faults", l.name, l.pods, l.requests, l.further...))
				pods += l.pods
			}
			w.AwaitRunning("faults", pods, 4*time.Minute)
			oneEach(t, w)
			if row.check != nil {
				row.check(t, w)
			}
			for _, l := range row.load {
				w.Apply(deployment("faults", l.name, 0, l.requests, l.further...))
			}
			w.AwaitNothing(4 * time.Minute)
			withinBuckets(t, w)
		})
	}
}

// load is pods of one kind.
type load struct {
	name     string
	pods     int
	requests string
	further  []string
}

// mixed needs a few machines of any type.
var mixed = []load{{name: "small", pods: 30, requests: "cpu: 900m, memory: 2Gi"}, {name: "large", pods: 10, requests: "cpu: 3500m, memory: 8Gi"}}

// noSpotRole is EC2's code for an account that has no service-linked role for spot and may not create one.
const noSpotRole = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"

// spotFirst needs a few machines, which are cheapest as spot.
var spotFirst = []load{{name: "spot-first", pods: 12, requests: "cpu: 3500m, memory: 4Gi", further: []string{of("spot-first"), "tolerations: [{key: spot-first}]"}}}

// choosy needs sixteen machines of four types: four launches at once.
func choosy() []load {
	var all []load
	for _, family := range []string{"c5", "m5", "m5a", "r5"} {
		all = append(all, load{family, 4, "cpu: 1500m, memory: 1Gi", []string{"nodeSelector: {node.kubernetes.io/instance-type: " + family + ".large}"}})
	}
	return all
}

// oneEach checks that every claim has its own instance, and every instance a claim.
func oneEach(t *testing.T, w *world.World) {
	t.Helper()
	w.Await("one instance for each claim", time.Minute, func() (bool, string) {
		claims, living := w.Claims(), w.Living()
		owner := map[string]string{}
		for _, claim := range claims {
			if id := claim.Status.ProviderID; id != "" && owner[id] != "" {
				t.Fatalf("NodeClaims %s and %s share %s", owner[id], claim.Name, id)
			} else if id != "" {
				owner[id] = claim.Name
			}
		}
		orphans := 0
		for _, instance := range living {
			if owner["aws:///"+instance.Zone+"/"+instance.ID] == "" {
				orphans++
			}
		}
		return orphans == 0 && len(owner) == len(claims) && len(living) == len(claims),
			fmt.Sprintf("%d claims, %d of them with an instance, %d instances, %d of them without a claim", len(claims), len(owner), len(living), orphans)
	})
}

// lost checks that replies really were lost, and logs the number of instances and tokens.
func lost(t *testing.T, w *world.World) {
	var counts map[string]ec2sim.CallCount
	w.Sim(http.MethodGet, "/_sim/calls", nil, &counts)
	if counts["CreateFleet"].Lost == 0 {
		t.Errorf("no reply was lost: %+v", counts["CreateFleet"])
	}
	byToken := map[string]int{}
	for _, instance := range w.Living() {
		byToken[instance.ClientToken]++
	}
	for _, claim := range w.Claims() {
		w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).LaunchID(claim.Annotations["tenon.sh/launch-group"]), "replies-lost")
	}
	t.Logf("%d CreateFleet calls, %d replies lost, %d instances by %d tokens", counts["CreateFleet"].Total, counts["CreateFleet"].Lost, len(w.Living()), len(byToken))
}

// answered checks that no token is sent again after its answer. Dry runs have no token.
func answered(t *testing.T, w *world.World) {
	var calls []ec2sim.Call
	w.Sim(http.MethodGet, "/_sim/calls?action=CreateFleet", nil, &calls)
	sent, refused := map[string]bool{}, 0
	for _, call := range calls {
		if call.ClientToken == "" {
			continue
		}
		if sent[call.ClientToken] {
			t.Errorf("token %s was sent again", call.ClientToken)
		}
		sent[call.ClientToken] = true
		if call.Code != "" {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no launch was refused")
	}
	for _, claim := range w.Claims() {
		w.RecordLatest(workflows.Cluster(w.Lab.Cluster()).LaunchID(claim.Annotations["tenon.sh/launch-group"]), "answered-with-errors")
	}
}

// dryBut leaves capacity for one type in one zone, among those that the default NodePool allows.
func dryBut() ec2sim.Faults {
	faults := ec2sim.Faults{ZonesOut: []string{"us-east-1a", "us-east-1b"}}
	for _, pattern := range []string{"c*", "r*", "t*", "i*", "x*", "z*", "m1*", "m2*", "m3*", "m4*", "m5*", "m7*", "m8*", "m6g*", "m6a*", "m6id*", "m6in*",
		"m6i.large", "m6i.xlarge", "m6i.2xlarge", "m6i.8xlarge", "m6i.1*", "m6i.2*", "m6i.3*", "m6i.metal"} {
		faults.Capacity = append(faults.Capacity, ec2sim.CapacityFault{PoolPattern: ec2sim.PoolPattern{InstanceType: pattern}})
	}
	return faults
}

func onlyOneType(t *testing.T, w *world.World) {
	for _, instance := range w.Living() {
		if instance.Type != onlyLeft || instance.Zone != onlyLeftZone {
			t.Errorf("%s is a %s in %s, which should be dry", instance.ID, instance.Type, instance.Zone)
		}
	}
	t.Logf("%d CreateFleet calls until everything ran on %d × %s", len(fleetCalls(w)), len(w.Living()), onlyLeft)
}

// insteadWithin is how long it may take from the first launch, which EC2 refuses, until on-demand instances are launched.
const insteadWithin = 15 * time.Second

// onDemandInstead checks that spot was tried first, and that on-demand instances followed soon.
func onDemandInstead(t *testing.T, w *world.World) {
	calls := fleetCalls(w)
	if len(calls) < 2 {
		t.Fatalf("%d CreateFleet calls, want at least one for spot and one for on-demand", len(calls))
	}
	began := slices.MinFunc(calls, func(a, b ec2sim.Call) int { return a.At.Compare(b.At) }).At
	var last time.Time
	for _, claim := range w.Claims() {
		if kind := claim.Labels[karpv1.CapacityTypeLabelKey]; kind != "on-demand" {
			t.Errorf("NodeClaim %s is %s", claim.Name, kind)
		}
		if launched := claim.Condition(karpv1.ConditionTypeLaunched); launched != nil && launched.LastTransitionTime.After(last) {
			last = launched.LastTransitionTime.Time
		}
	}
	// Conditions have whole seconds.
	took := last.Add(time.Second).Sub(began)
	t.Logf("%d on-demand instances at most %s after the first launch", len(w.Living()), took.Round(100*time.Millisecond))
	if took > world.Patience(insteadWithin) {
		t.Errorf("on-demand instances came %s after the first launch, want %s", took.Round(100*time.Millisecond), insteadWithin)
	}
}

// bucket is a row of EC2's request token table: the tokens it holds and those it gains per second.
type bucket struct{ holds, gains float64 }

// bucketOf returns the row of an action (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
func bucketOf(action string) bucket {
	switch action {
	case "CreateFleet", "RunInstances":
		return bucket{5, 2}
	case "TerminateInstances":
		return bucket{100, 5}
	case "CreateTags", "DeleteTags":
		return bucket{100, 10}
	}
	if strings.HasPrefix(action, "Describe") {
		return bucket{100, 20}
	}
	return bucket{50, 5}
}

// onTheWay is by how much more than others a call that took its token in time may be delayed, on an otherwise idle machine.
const onTheWay = 500 * time.Millisecond

// withinBuckets replays the calls since the last reset against EC2's published buckets, and logs the number of each.
func withinBuckets(t *testing.T, w *world.World) {
	t.Helper()
	var calls []ec2sim.Call
	w.Sim(http.MethodGet, "/_sim/calls?action=*", nil, &calls)
	slices.SortFunc(calls, func(a, b ec2sim.Call) int { return a.At.Compare(b.At) })
	late := world.Patience(onTheWay).Seconds()
	left, last := map[string]float64{}, map[string]time.Time{}
	count, throttled, short := map[string]int{}, map[string]int{}, map[string]int{}
	for _, call := range calls {
		if call.Service != "ec2" {
			continue
		}
		row := bucketOf(call.Action)
		if count[call.Action] == 0 {
			left[call.Action] = row.holds
		} else {
			left[call.Action] = min(row.holds, left[call.Action]+call.At.Sub(last[call.Action]).Seconds()*row.gains)
		}
		last[call.Action] = call.At
		count[call.Action]++
		left[call.Action]--
		if left[call.Action] < -row.gains*late {
			short[call.Action]++
		}
		if call.Code == "RequestLimitExceeded" {
			throttled[call.Action]++
		}
	}
	for action, n := range short {
		t.Errorf("%d calls of %s found EC2's bucket empty", n, action)
	}
	var said []string
	for _, action := range slices.Sorted(maps.Keys(count)) {
		said = append(said, fmt.Sprintf("%s %d (%d throttled)", action, count[action], throttled[action]))
	}
	t.Logf("EC2 was asked: %s", strings.Join(said, ", "))
}
