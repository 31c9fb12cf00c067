package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// little is the factor by which the price of a plan may rise although there is more to choose from, or less to place.
// Where pods are not told where to go, plans are chosen by their final cost, and may be dearer at first; then
// littleMore applies.
const (
	little     = 1.01
	littleMore = 1.07
)

// A plan that may buy more kinds of machines, in more zones, in more ways, or for a further pool, costs no more.
func TestMoreChoiceCostsNoMore(t *testing.T) {
	t.Parallel()
	for _, narrowing := range []struct {
		reason string
		narrow func(t *rapid.T, b batch) batch
	}{
		{reason: "fewer families", narrow: func(t *rapid.T, b batch) batch {
			of := func(typ *cloud.InstanceType) string { return typ.Labels["karpenter.k8s.aws/instance-family"] }
			var all []string
			for _, typ := range b.pools[0].Types {
				all = append(all, of(typ))
			}
			slices.Sort(all)
			kept := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Compact(all)), 1, -1, rapid.ID[string]).Draw(t, "kept families")
			return b.keeping(func(typ *cloud.InstanceType, _ cloud.Offering) bool { return slices.Contains(kept, of(typ)) })
		}},
		{reason: "no large machines", narrow: func(t *rapid.T, b batch) batch {
			most := rapid.SampledFrom([]int64{8, 16, 32, 48}).Draw(t, "most cores")
			return b.keeping(func(typ *cloud.InstanceType, _ cloud.Offering) bool { return typ.Capacity.Cpu().Value() <= most })
		}},
		{reason: "no small machines", narrow: func(t *rapid.T, b batch) batch {
			least := rapid.SampledFrom([]int64{4, 8, 16}).Draw(t, "least cores")
			return b.keeping(func(typ *cloud.InstanceType, _ cloud.Offering) bool { return typ.Capacity.Cpu().Value() >= least })
		}},
		{reason: "fewer zones", narrow: func(t *rapid.T, b batch) batch {
			kept := rapid.SampledFrom(threeZones).Draw(t, "kept zone")
			return b.keeping(func(_ *cloud.InstanceType, o cloud.Offering) bool { return o.Zone == kept })
		}},
		{reason: "no spot", narrow: func(_ *rapid.T, b batch) batch {
			return b.keeping(func(_ *cloud.InstanceType, o cloud.Offering) bool { return o.CapacityType == "on-demand" })
		}},
		{reason: "one of two pools", narrow: func(t *rapid.T, b batch) batch {
			// The pools divide the families, and the second one sells nothing in the narrow world.
			second := rapid.SliceOfNDistinct(rapid.SampledFrom(families), 1, 8, rapid.ID[string]).Draw(t, "families of the second pool")
			return b.keeping(func(typ *cloud.InstanceType, _ cloud.Offering) bool {
				return !slices.Contains(second, typ.Labels["karpenter.k8s.aws/instance-family"])
			})
		}},
	} {
		t.Run(narrowing.reason, func(t *testing.T) {
			t.Parallel()
			checkBatches(t, func(t *rapid.T, wide batch) {
				narrow := narrowing.narrow(t, wide)
				if narrowing.reason == "one of two pools" {
					wide = wide.inPools(narrow.pools[0].Types)
				}
				holdAgainst(t, wide, narrow, fmt.Sprintf("%d types", len(narrow.pools[0].Types)))
			})
		})
	}
}

// A plan with fewer pods to place costs no more.
func TestFewerPodsCostNoMore(t *testing.T) {
	t.Parallel()
	checkBatches(t, func(t *rapid.T, b batch) {
		out := rapid.SliceOfDistinct(rapid.SampledFrom(b.appNames()), rapid.ID[string]).Draw(t, "left out")
		holdAgainst(t, b.without(func(app string) bool { return slices.Contains(out, app) }), b, "more pods")
	})
}

// holdAgainst checks that a batch costs no more than another that asks for as much, or has less to choose from.
func holdAgainst(t *rapid.T, easier, harder batch, what string) {
	t.Helper()
	hard := plan.Pack(harder.input())
	if len(hard.Unplaced) > 0 {
		return // leaving pods costs less
	}
	easy := plan.Pack(easier.input())
	if len(easy.Unplaced) > 0 {
		t.Fatalf("%s is unplaced, and with %s it is not: %v", easy.Unplaced[0].Pod.Key(), what, easy.Unplaced[0].Reasons)
	}
	most := little
	if !easier.nominates {
		most = littleMore
	}
	if cost, other := easier.total(easy), harder.total(hard); cost > other*most {
		t.Errorf("$%.4f/h on %d nodes, and with %s $%.4f/h on %d: %.3f times as much%s\n---%s", cost, len(easy.Claims), what, other, len(hard.Claims), cost/other, fleet(easy), fleet(hard))
	}
}

// keeping returns the batch with some offerings only.
func (b batch) keeping(keep func(*cloud.InstanceType, cloud.Offering) bool) batch {
	return b.on(only(b.pools[0].Types, keep))
}

// inPools returns the batch with two pools: one for some of the types, and one for the others.
func (b batch) inPools(first []*cloud.InstanceType) batch {
	named := map[string]bool{}
	for _, typ := range first {
		named[typ.Name] = true
	}
	split := b.on(first)
	second := b.pools[0]
	second.NodePool = nodePool("second")
	second.Types = only(b.pools[0].Types, func(typ *cloud.InstanceType, _ cloud.Offering) bool { return !named[typ.Name] })
	split.pools = append(split.pools, second)
	return split
}
