package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// leastOdd leaves a pod group the least odd of the machines that would do.
func leastOdd(m *market.Market, it *PodGroup) {
	asked := model.AsksDevice(it.Class)
	var found [market.Oddities]bool
	for i := range it.Allowed.All {
		found[market.OddityOf(m.Machines[i].Typ, m.Machines[i].Devices, asked)] = true
	}
	least := market.Oddity(slices.Index(found[:], true))
	if least < 0 || !slices.Contains(found[least+1:], true) {
		return
	}
	kept := market.OfOddity(m, least, asked)
	it.Allowed.Intersect(kept)
	for v := range it.Variants {
		it.Variants[v].Machines.Intersect(kept)
	}
}

// Weigh prepares a pod group's shape for the market: its vector, and what may be bought for it.
func Weigh(m *market.Market, it *PodGroup) {
	sh := it.shape
	if sh.known.weighed {
		return
	}
	sh.Request = m.Dims.Vector(it.Class.Requests)
	sh.most = m.Dims.ClaimCaps(sh.Request, &sh.Rules)
	if it.Refusal != "" {
		sh.Allowed = market.NewBitset(len(m.Machines))
		return
	}
	offer(m, it)
	leastOdd(m, it)
	oneVariant(m, it)
	sh.known.weighed = true
}

// offer finds the machines that would do for a pod group.
func offer(m *market.Market, it *PodGroup) {
	sh := it.shape
	for _, t := range sh.terms {
		v := m.Variant(it.Class, t, sh.wary)
		v.Machines.Intersect(m.Fitting(sh.Request))
		if !v.Machines.Empty() {
			sh.Variants = append(sh.Variants, v)
		}
	}
	sh.Allowed = m.UnionOf(sh.Variants)
}
