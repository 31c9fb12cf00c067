package plan

import (
	"reflect"
	"slices"

	"github.com/tenon-sh/tenon/cloud"
)

// fieldAfter is newField for whoever has an earlier field, which is not used any more: what can be bought is worked out
// anew only where it may have changed.
func fieldAfter(last *field, in Input, movable []*Node) *field {
	if last == nil || !sameGoods(&last.in, &in) {
		return newField(in, movable)
	}
	m := last.d.m
	limited := slices.ContainsFunc(m.sellers, func(s *seller) bool { return len(s.budget) > 0 })
	if limited || len(m.reservations) > 0 {
		// What limits and reservations leave follows from the nodes.
		return newField(in, movable)
	}
	return newFieldOver(in, movable, m)
}

// sameGoods says whether the same can be bought, as far as that does not follow from nodes and pods.
func sameGoods(a, b *Input) bool {
	return a.MinValues == b.MinValues && a.Nominates == b.Nominates && slices.EqualFunc(a.Pools, b.Pools, samePool) &&
		slices.Equal(a.Snapshot.DaemonSets, b.Snapshot.DaemonSets) && sameRefusals(a, b)
}

func samePool(a, b Pool) bool {
	if a.Problem != b.Problem || a.NodePrice != b.NodePrice || a.Packing != b.Packing || !slices.Equal(a.Types, b.Types) || a.NodePool.Name != b.NodePool.Name || closedBecause(a) != closedBecause(b) {
		return false
	}
	return a.NodePool == b.NodePool || reflect.DeepEqual(&a.NodePool.Spec, &b.NodePool.Spec)
}

// sameRefusals says whether the same offerings are left out at both moments.
func sameRefusals(a, b *Input) bool {
	refused := func(in *Input, key cloud.OfferingKey) bool { return in.Snapshot.Time.Before(in.Unavailable[key]) }
	for key := range a.Unavailable {
		if refused(a, key) != refused(b, key) {
			return false
		}
	}
	for key := range b.Unavailable {
		if refused(a, key) != refused(b, key) {
			return false
		}
	}
	return true
}

// again is the market for another field over the same goods, of whose items the dimensions are.
func (m *market) again(in *Input, dims *dimensions) *market {
	next := *m
	next.now, next.unavailable, next.dims, next.limitMet, next.passages = in.Snapshot.Time, in.Unavailable, dims, false, map[passage]bitset{}
	return &next
}
