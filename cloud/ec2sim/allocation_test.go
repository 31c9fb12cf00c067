package ec2sim

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testCandidate returns a pool with a name, price, depth and priority; the name is the type, and its first character the
// zone.
func testCandidate(name string, price, depth, priority float64) *fleetCandidate {
	return &fleetCandidate{
		order: &launchOrder{itype: &InstanceType{Name: name}, subnet: &subnet{Zone: name[:1]}},
		price: price, depth: depth, priority: priority, weight: 1,
	}
}

func TestAllocation(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		plan   allocationPlan
		target int
		left   map[string]int // capacity; absent means plenty
		want   map[string]int
	}{
		{reason: "the cheapest pool takes all", plan: allocationPlan{strategy: "lowest-price", pools: 1}, target: 3, want: map[string]int{"b.cheap": 3}},
		{reason: "two pools are to be used", plan: allocationPlan{strategy: "lowest-price", pools: 2}, target: 4, want: map[string]int{"b.cheap": 2, "a.mid": 2}},
		{reason: "a dry pool hands over to the next", plan: allocationPlan{strategy: "lowest-price", pools: 1}, target: 3,
			left: map[string]int{"b.cheap": 1}, want: map[string]int{"b.cheap": 1, "a.mid": 2}},
		{reason: "priorities go before prices", plan: allocationPlan{strategy: "prioritized"}, target: 2, want: map[string]int{"c.dear": 2}},
		{reason: "the deepest pool wins", plan: allocationPlan{strategy: "capacity-optimized"}, target: 2, want: map[string]int{"a.mid": 2}},
		{reason: "priorities count among deep pools only", plan: allocationPlan{strategy: "capacity-optimized-prioritized"}, target: 1,
			want: map[string]int{"c.dear": 1}},
		{reason: "a shallow pool is not worth its price", plan: allocationPlan{strategy: "price-capacity-optimized"}, target: 2, want: map[string]int{"a.mid": 2}},
		{reason: "all pools share", plan: allocationPlan{strategy: "diversified"}, target: 3, want: map[string]int{"b.cheap": 1, "a.mid": 1, "c.dear": 1}},
		{reason: "one zone only, although it runs dry", plan: allocationPlan{strategy: "lowest-price", pools: 1, singleZone: true},
			target: 3, left: map[string]int{"b.cheap": 2}, want: map[string]int{"b.cheap": 2}},
		{reason: "nothing is left anywhere", plan: allocationPlan{strategy: "lowest-price", pools: 1}, target: 2,
			left: map[string]int{"b.cheap": 0, "a.mid": 0, "c.dear": 0}, want: map[string]int{}},
	} {
		all := []*fleetCandidate{
			testCandidate("a.mid", 2, 0.9, 2), testCandidate("b.cheap", 1, 0.1, 3), testCandidate("c.dear", 3, 0.6, 1),
		}
		got := map[string]int{}
		fill(tc.target, tc.plan, all, func(k *fleetCandidate) error {
			name := k.order.itype.Name
			if left, limited := tc.left[name]; limited && got[name] >= left {
				return errors.New("dry")
			}
			got[name]++
			return nil
		})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

func TestWildcard(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, value string
		want           bool
	}{
		{pattern: "m5.*", value: "m5.large", want: true},
		{pattern: "m5.*", value: "m5a.large", want: false},
		{pattern: "*", value: "", want: true},
		{pattern: "", value: "", want: true},
		{pattern: "", value: "x", want: false},
		{pattern: "a?c", value: "abc", want: true},
		{pattern: "a?c", value: "ac", want: false},
		{pattern: `a\?c`, value: "abc", want: false},
		{pattern: `a\*`, value: "a*", want: true},
		{pattern: "*a*b*", value: "xxaxxbxx", want: true},
		{pattern: "*a*b*", value: "xxbxxaxx", want: false},
	} {
		if got := wildcard(tc.pattern, tc.value); got != tc.want {
			t.Errorf("wildcard(%q, %q) is %v", tc.pattern, tc.value, got)
		}
	}
}
