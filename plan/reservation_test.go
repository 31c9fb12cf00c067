package plan_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// reserved adds a capacity reservation to a catalogue.
func reserved(catalogue []*cloud.InstanceType, typ, zone, id string, count int, options ...func(*cloud.Offering)) []*cloud.InstanceType {
	for _, t := range catalogue {
		if t.Name != typ {
			continue
		}
		for _, o := range t.Offerings {
			if o.Zone == zone && o.CapacityType == "on-demand" {
				o.CapacityType, o.Price = "reserved", o.Price/1e7
				o.ReservationID, o.ReservationCapacity, o.ReservationType = id, count, "default"
				for _, option := range options {
					option(&o)
				}
				t.Offerings = append(t.Offerings, o)
				break
			}
		}
	}
	return catalogue
}

func inPool(pool *karpv1.NodePool, types []*cloud.InstanceType) plan.Pool {
	return plan.Pool{NodePool: pool, Types: types}
}

// bySource counts the claims of a plan by what they draw on: a reservation, or a capacity type.
func bySource(p plan.Plan) map[string]int {
	counts := map[string]int{}
	for _, c := range p.Claims {
		if c.Reservation != "" {
			counts[c.Reservation]++
		} else {
			counts[c.CapacityType]++
		}
	}
	return counts
}

// What is reserved is used first, never more of it than there is, and nobody waits because it is used up.
func TestReservedCapacity(t *testing.T) {
	t.Parallel()
	const zone = "us-east-1a"
	block := func(o *cloud.Offering) { o.ReservationType = "capacity-block" }
	inFlight := func(requirements ...model.Condition) *plan.Node {
		return &plan.Node{Claim: "waiting", Pool: "p", Requirements: requirements, Labels: map[string]string{}, Created: now}
	}
	reservedOnly := requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "reserved")
	// Three cores: one pod fills an m6i.xlarge.
	pods := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "a", "3", "4Gi", options...)
	}
	tests := []struct {
		name, reason string
		pods         []*corev1.Pod
		types        []*cloud.InstanceType
		pools        []*karpv1.NodePool
		nodes        []*plan.Node
		want         map[string]int
		unplaced     string
	}{
		{
			"enough", "what is reserved is paid for, so it comes before spot", pods(2),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 5), nil, nil, map[string]int{"cr-1": 2}, "",
		},
		{
			"used up by the batch", "the rest goes on to spot in the same plan, and does not wait for the next", pods(3),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), nil, nil, map[string]int{"cr-1": 2, "spot": 1}, "",
		},
		{
			"on to on-demand", "where there is no spot, the rest is bought on demand", pods(3),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2),
			[]*karpv1.NodePool{nodePool("p", requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "reserved", "on-demand"))}, nil,
			map[string]int{"cr-1": 2, "on-demand": 1}, "",
		},
		{
			"two reservations", "each is counted by itself", pods(5),
			reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), "m6i.xlarge", "us-east-1b", "cr-2", 2), nil, nil,
			map[string]int{"cr-1": 2, "cr-2": 2, "spot": 1}, "",
		},
		{
			"two of one type and zone", "they are told apart", pods(3),
			reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 1), "m6i.xlarge", zone, "cr-2", 1), nil, nil,
			map[string]int{"cr-1": 1, "cr-2": 1, "spot": 1}, "",
		},
		{
			"pool by id", "a pool may name its reservations", pods(2),
			reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), "m6i.xlarge", zone, "cr-2", 1),
			[]*karpv1.NodePool{nodePool("p", requires(awsv1.LabelCapacityReservationID, corev1.NodeSelectorOpIn, "cr-2"))}, nil,
			map[string]int{"cr-2": 1}, "capacity reservation cr-2 is used up",
		},
		{
			"pool without", "a pool that does not name reserved capacity does not get it", pods(1),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), []*karpv1.NodePool{nodePool("p", onDemand())}, nil,
			map[string]int{"on-demand": 1}, "",
		},
		{
			"pod by type of reservation", "a pod may ask for a capacity block", pods(1, selects(awsv1.LabelCapacityReservationType, "capacity-block")),
			reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), "m6i.2xlarge", zone, "cr-2", 9, block), nil, nil,
			map[string]int{"cr-2": 1}, "",
		},
		{
			"pod without", "a pod may refuse reserved capacity", pods(1, needs(expr(awsv1.LabelCapacityReservationID, corev1.NodeSelectorOpDoesNotExist))),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), nil, nil, map[string]int{"spot": 1}, "",
		},
		{
			"in flight for another", "a claim that cannot be launched into the reservation has taken nothing of it", pods(3),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), nil,
			[]*plan.Node{inFlight(among(karpv1.CapacityTypeLabelKey, "reserved"), among(awsv1.LabelCapacityReservationID, "cr-1"),
				among(corev1.LabelInstanceTypeStable, "m6i.xlarge"), among(corev1.LabelTopologyZone, "us-east-1c"))},
			map[string]int{"cr-1": 2, "spot": 1}, "",
		},
		{
			"in flight for it", "a claim that is being launched into the reservation has taken its share, and has room for a pod", pods(3),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), nil,
			[]*plan.Node{inFlight(among(karpv1.CapacityTypeLabelKey, "reserved"), among(awsv1.LabelCapacityReservationID, "cr-1"))},
			map[string]int{"cr-1": 1, "spot": 1}, "",
		},
		{
			"elsewhere", "the same reservation counts once, whichever pool uses it", pods(4, func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 3),
			[]*karpv1.NodePool{nodePool("p", weighs(10), limit(karpv1.ResourceNodes, "2")), nodePool("q", tainted("x"))}, nil,
			map[string]int{"cr-1": 3, "spot": 1}, "",
		},
		{
			"limits count", "a machine is a machine, whoever pays", pods(3),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 3), []*karpv1.NodePool{nodePool("p", limit(corev1.ResourceCPU, "8"))}, nil,
			map[string]int{"cr-1": 2}, "limit cpu 8 leaves 0, and the smallest instance type has 2",
		},
		{
			"those who insist", "whoever can do without what is reserved leaves it to whoever cannot",
			slices.Concat(manyPods(1, "any", "3", "8Gi"), manyPods(2, "only", "3", "4Gi", selects(karpv1.CapacityTypeLabelKey, "reserved"))),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), nil, nil, map[string]int{"cr-1": 2, "spot": 1}, "",
		},
		{
			"gone", "a reservation with nothing left is not there", pods(1),
			reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 0), []*karpv1.NodePool{nodePool("p", reservedOnly)}, nil,
			map[string]int{}, "capacity reservation cr-1 is used up",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: test.pods, nodes: test.nodes}
			for _, pool := range orDefault(test.pools, []*karpv1.NodePool{nodePool("p")}) {
				w.pools = append(w.pools, inPool(pool, test.types))
			}
			p := plan.Pack(w.input())
			if got := bySource(p); fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("claims %v, want %v: %s", got, test.want, test.reason)
			}
			if test.unplaced == "" && len(p.Unplaced) > 0 || test.unplaced != "" && (len(p.Unplaced) == 0 || p.Unplaced[0].Reasons[0].Message != test.unplaced) {
				t.Errorf("unplaced %v, want %q", p.Unplaced, test.unplaced)
			}
		})
	}
}

// However many want it, no reservation is used more often than it has room, and every reserved claim names its own.
func TestReservationsAreNeverOverdrawn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, drawing{replicas: 25})
		types := smallCatalogue()
		room := map[string]int{}
		for i := range rapid.IntRange(1, 4).Draw(t, "reservations") {
			id, typ := fmt.Sprintf("cr-%d", i), rapid.SampledFrom(types).Draw(t, "type")
			room[id] = rapid.IntRange(0, 4).Draw(t, "room")
			types = reserved(types, typ.Name, rapid.SampledFrom(threeZones).Draw(t, "zone"), id, room[id])
		}
		for i := range w.pools {
			w.pools[i].Types = types
		}
		p := plan.Pack(w.input())
		check(t, w, p)
		for _, c := range p.Claims {
			if (c.CapacityType == "reserved") != (c.Reservation != "") {
				t.Fatalf("claim %+v", c)
			}
			if c.Reservation == "" {
				continue
			}
			if room[c.Reservation]--; room[c.Reservation] < 0 {
				t.Fatalf("reservation %s is overdrawn", c.Reservation)
			}
			ids := 0
			for _, r := range c.Requirements {
				if r.Key == awsv1.LabelCapacityReservationID && r.Operator == corev1.NodeSelectorOpIn && slices.Equal(r.Values, []string{c.Reservation}) {
					ids++
				}
			}
			if ids != 1 {
				t.Fatalf("requirements %v do not name the reservation %s once", c.Requirements, c.Reservation)
			}
		}
	})
}

// A claim by hand is launched into what is reserved for it, where it allows that: of each type and zone into the
// reservation with the most room, and never into capacity blocks and other reservations by one launch.
func TestReservedOfferings(t *testing.T) {
	t.Parallel()
	block := func(o *cloud.Offering) { o.ReservationType = "capacity-block" }
	catalogue := func() []*cloud.InstanceType {
		types := reserved(smallCatalogue(), "m6i.xlarge", "us-east-1a", "cr-1", 2)
		types = reserved(types, "m6i.xlarge", "us-east-1a", "cr-2", 5)
		types = reserved(types, "m6i.xlarge", "us-east-1b", "cr-3", 1)
		types = reserved(types, "m6i.2xlarge", "us-east-1a", "cr-4", 1, block)
		return reserved(types, "m6i.4xlarge", "us-east-1a", "cr-5", 0)
	}
	in := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
	}
	tests := []struct {
		name, reason string
		requirements []karpv1.NodeSelectorRequirementWithMinValues
		want         []string // reservations; the capacity type where there is none
	}{
		{"any", "what is reserved comes first, one reservation for each type and zone", nil, []string{"cr-2", "cr-3"}},
		{"by id", "the claim names its reservation", []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationID, "cr-1")}, []string{"cr-1"}},
		{"by kind", "a launch takes one capacity block", []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationType, "capacity-block")}, []string{"cr-4"}},
		{"used up", "what has no room is not launched into", []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationID, "cr-5")}, nil},
		{"other capacity", "who does not want reserved capacity does not get it", []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, "on-demand"), in(corev1.LabelInstanceTypeStable, "m6i.xlarge"), in(corev1.LabelTopologyZone, "us-east-1a")}, []string{"on-demand"}},
		{"another zone", "a reservation is in one zone", []karpv1.NodeSelectorRequirementWithMinValues{in(corev1.LabelTopologyZone, "us-east-1b"), in(karpv1.CapacityTypeLabelKey, "reserved", "spot")}, []string{"cr-3"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: test.requirements}}
			keys, err := plan.Offerings(claim, catalogue(), nil, now, plan.MinValuesStrict)
			if (err != nil) != (test.want == nil) {
				t.Fatal(err)
			}
			var got []string
			for _, key := range keys {
				if key.ReservationID == "" {
					got = append(got, key.CapacityType)
				} else {
					got = append(got, key.ReservationID)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("launched into %v, want %v: %s", got, test.want, test.reason)
			}
		})
	}
}
