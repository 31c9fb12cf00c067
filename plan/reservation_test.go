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
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
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

// bySource counts the claims of a plan by what they use: a reservation, or a capacity type.
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

// Reserved capacity is used first, never beyond its size, and no pod waits because it is used up.
func TestReservedCapacity(t *testing.T) {
	t.Parallel()
	const zone = "us-east-1a"
	block := func(o *cloud.Offering) { o.ReservationType = "capacity-block" }
	interruptible := func(o *cloud.Offering) { o.ReservationInterruptible = true }
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
			name: "enough", reason: "what is reserved is paid for, so it comes before spot", pods: pods(2),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 5), want: map[string]int{"cr-1": 2}, unplaced: "",
		},
		{
			name: "used up by the batch", reason: "the rest goes on to spot in the same plan, and does not wait for the next", pods: pods(3),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), want: map[string]int{"cr-1": 2, "spot": 1}, unplaced: "",
		},
		{
			name: "on to on-demand", reason: "where there is no spot, the rest is bought on demand", pods: pods(3),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2),
			pools: []*karpv1.NodePool{nodePool("p", requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, "reserved", "on-demand"))},
			want:  map[string]int{"cr-1": 2, "on-demand": 1}, unplaced: "",
		},
		{
			name: "two reservations", reason: "each is counted by itself", pods: pods(5),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), "m6i.xlarge", "us-east-1b", "cr-2", 2),
			want:  map[string]int{"cr-1": 2, "cr-2": 2, "spot": 1}, unplaced: "",
		},
		{
			name: "two of one type and zone", reason: "they are told apart", pods: pods(3),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 1), "m6i.xlarge", zone, "cr-2", 1),
			want:  map[string]int{"cr-1": 1, "cr-2": 1, "spot": 1}, unplaced: "",
		},
		{
			name: "pool by id", reason: "a pool may name its reservations", pods: pods(2),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), "m6i.xlarge", zone, "cr-2", 1),
			pools: []*karpv1.NodePool{nodePool("p", requires(awsv1.LabelCapacityReservationID, corev1.NodeSelectorOpIn, "cr-2"))},
			want:  map[string]int{"cr-2": 1}, unplaced: "capacity reservation cr-2 is used up",
		},
		{
			name: "pool without", reason: "a pool that does not name reserved capacity does not get it", pods: pods(1),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), pools: []*karpv1.NodePool{nodePool("p", onDemand())},
			want: map[string]int{"on-demand": 1}, unplaced: "",
		},
		{
			name: "pod by type of reservation", reason: "a pod may ask for a capacity block", pods: pods(1, selects(awsv1.LabelCapacityReservationType, "capacity-block")),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), "m6i.2xlarge", zone, "cr-2", 9, block),
			want:  map[string]int{"cr-2": 1}, unplaced: "",
		},
		{
			name: "pod that asks for an interruptible one", reason: "a pod may ask for capacity that its owner may take back",
			pods:  pods(1, selects(awsv1.LabelCapacityReservationInterruptible, "true")),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), "m6i.2xlarge", zone, "cr-2", 9, interruptible),
			want:  map[string]int{"cr-2": 1}, unplaced: "",
		},
		{
			name: "pod that refuses an interruptible one", reason: "and a pod may ask for the opposite, which neither spot nor on-demand is",
			pods:  pods(1, selects(awsv1.LabelCapacityReservationInterruptible, "false")),
			types: reserved(reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9, interruptible), "m6i.2xlarge", zone, "cr-2", 9),
			want:  map[string]int{"cr-2": 1}, unplaced: "",
		},
		{
			name: "pod without", reason: "a pod may refuse reserved capacity", pods: pods(1, needs(expr(awsv1.LabelCapacityReservationID, corev1.NodeSelectorOpDoesNotExist))),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 9), want: map[string]int{"spot": 1}, unplaced: "",
		},
		{
			name: "in flight for another", reason: "a claim that cannot be launched into the reservation has taken nothing of it", pods: pods(3),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2),
			nodes: []*plan.Node{inFlight(among(karpv1.CapacityTypeLabelKey, "reserved"), among(awsv1.LabelCapacityReservationID, "cr-1"),
				among(corev1.LabelInstanceTypeStable, "m6i.xlarge"), among(corev1.LabelTopologyZone, "us-east-1c"))},
			want: map[string]int{"cr-1": 2, "spot": 1}, unplaced: "",
		},
		{
			name: "in flight for it", reason: "a claim that is being launched into the reservation has taken its share, and has room for a pod", pods: pods(3),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2),
			nodes: []*plan.Node{inFlight(among(karpv1.CapacityTypeLabelKey, "reserved"), among(awsv1.LabelCapacityReservationID, "cr-1"))},
			want:  map[string]int{"cr-1": 1, "spot": 1}, unplaced: "",
		},
		{
			name: "elsewhere", reason: "the same reservation counts once, whichever pool uses it", pods: pods(4, func(pod *corev1.Pod) {
				pod.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 3),
			pools: []*karpv1.NodePool{nodePool("p", weighs(10), limit(karpv1.ResourceNodes, "2")), nodePool("q", tainted("x"))},
			want:  map[string]int{"cr-1": 3, "spot": 1}, unplaced: "",
		},
		{
			name: "limits count", reason: "a machine is a machine, whoever pays", pods: pods(3),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 3), pools: []*karpv1.NodePool{nodePool("p", limit(corev1.ResourceCPU, "8"))},
			want: map[string]int{"cr-1": 2}, unplaced: "limit cpu 8 leaves 0, and the smallest instance type has 2",
		},
		{
			name: "those who insist", reason: "whoever can do without what is reserved leaves it to whoever cannot",
			pods:  slices.Concat(manyPods(1, "any", "3", "8Gi"), manyPods(2, "only", "3", "4Gi", selects(karpv1.CapacityTypeLabelKey, "reserved"))),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 2), want: map[string]int{"cr-1": 2, "spot": 1}, unplaced: "",
		},
		{
			name: "gone", reason: "a reservation with nothing left is not there", pods: pods(1),
			types: reserved(smallCatalogue(), "m6i.xlarge", zone, "cr-1", 0), pools: []*karpv1.NodePool{nodePool("p", reservedOnly)},
			want: map[string]int{}, unplaced: "capacity reservation cr-1 is used up",
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

// However many pods want it, no reservation is used more often than it has room, and every reserved claim names its
// own.
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

// A claim written by hand is launched into the capacity reserved for it, where it allows that: for each type and zone,
// into the reservation with the most room. One launch never mixes capacity blocks and other reservations.
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
		want         []string // reservations; the capacity type if there is none
	}{
		{name: "any", reason: "what is reserved comes first, one reservation for each type and zone", want: []string{"cr-2", "cr-3"}},
		{name: "by id", reason: "the claim names its reservation",
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationID, "cr-1")}, want: []string{"cr-1"}},
		{name: "by kind", reason: "a launch takes one capacity block",
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationType, "capacity-block")}, want: []string{"cr-4"}},
		{name: "used up", reason: "what has no room is not launched into",
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(awsv1.LabelCapacityReservationID, "cr-5")}},
		{name: "other capacity", reason: "who does not want reserved capacity does not get it",
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(karpv1.CapacityTypeLabelKey, "on-demand"), in(corev1.LabelInstanceTypeStable, "m6i.xlarge"), in(corev1.LabelTopologyZone, "us-east-1a")},
			want:         []string{"on-demand"}},
		{name: "another zone", reason: "a reservation is in one zone",
			requirements: []karpv1.NodeSelectorRequirementWithMinValues{in(corev1.LabelTopologyZone, "us-east-1b"), in(karpv1.CapacityTypeLabelKey, "reserved", "spot")},
			want:         []string{"cr-3"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: test.requirements}}
			keys, err := plan.Offerings(nodeclass.Labels(), claim, catalogue(), nil, now, plan.MinValuesStrict)
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
