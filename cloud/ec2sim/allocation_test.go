package ec2sim

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// candidates makes pools with a name, price, depth and priority; the name is both type and zone.
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
		{"the cheapest pool takes all", allocationPlan{strategy: "lowest-price", pools: 1}, 3, nil, map[string]int{"b.cheap": 3}},
		{"two pools are to be used", allocationPlan{strategy: "lowest-price", pools: 2}, 4, nil, map[string]int{"b.cheap": 2, "a.mid": 2}},
		{"a dry pool hands over to the next", allocationPlan{strategy: "lowest-price", pools: 1}, 3, map[string]int{"b.cheap": 1}, map[string]int{"b.cheap": 1, "a.mid": 2}},
		{"priorities go before prices", allocationPlan{strategy: "prioritized"}, 2, nil, map[string]int{"c.dear": 2}},
		{"the deepest pool wins", allocationPlan{strategy: "capacity-optimized"}, 2, nil, map[string]int{"a.mid": 2}},
		{"priorities count among deep pools only", allocationPlan{strategy: "capacity-optimized-prioritized"}, 1, nil, map[string]int{"c.dear": 1}},
		{"a shallow pool is not worth its price", allocationPlan{strategy: "price-capacity-optimized"}, 2, nil, map[string]int{"a.mid": 2}},
		{"all pools share", allocationPlan{strategy: "diversified"}, 3, nil, map[string]int{"b.cheap": 1, "a.mid": 1, "c.dear": 1}},
		{"one zone only, although it runs dry", allocationPlan{strategy: "lowest-price", pools: 1, singleZone: true}, 3, map[string]int{"b.cheap": 2}, map[string]int{"b.cheap": 2}},
		{"nothing is left anywhere", allocationPlan{strategy: "lowest-price", pools: 1}, 2, map[string]int{"b.cheap": 0, "a.mid": 0, "c.dear": 0}, map[string]int{}},
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
		{"m5.*", "m5.large", true},
		{"m5.*", "m5a.large", false},
		{"*", "", true},
		{"", "", true},
		{"", "x", false},
		{"a?c", "abc", true},
		{"a?c", "ac", false},
		{`a\?c`, "abc", false},
		{`a\*`, "a*", true},
		{"*a*b*", "xxaxxbxx", true},
		{"*a*b*", "xxbxxaxx", false},
	} {
		if got := wildcard(tc.pattern, tc.value); got != tc.want {
			t.Errorf("wildcard(%q, %q) is %v", tc.pattern, tc.value, got)
		}
	}
}

func TestShortRegion(t *testing.T) {
	t.Parallel()
	for region, want := range map[string]string{"us-east-1": "use1", "eu-central-1": "euc1", "ap-southeast-2": "apse2", "us-west-2": "usw2"} {
		if got := shortRegion(region); got != want {
			t.Errorf("%s is %s, want %s", region, got, want)
		}
	}
}
