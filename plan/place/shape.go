package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// shape is what the pods of a pod group ask for while some of their preferences hold.
type shape struct {
	// Request is what one pod takes.
	Request []int64
	// terms are the alternatives for the labels of a node.
	terms []model.Term
	// wary says that PreferNoSchedule taints keep the pods away.
	wary bool
	// Variants are the terms as the market sees them: what each admits. They are empty if no machine will do.
	Variants []market.Variant
	// Allowed is the union of the variants' machines.
	Allowed market.Bitset
	Rules   rules.Rules
	// most is the number of the pods that one new node takes for reasons other than room.
	most int

	// These caches hold for a whole distribution. takers are the existing nodes that may admit the pods, choices the
	// choices of domains, and reach the domains of a label that exist for spread whether or not pods are in them.
	takers  nodeRow
	choices []domainChoice
	reach   map[string][]string
}

// ShapeUp gives a pod group its shape at a step of the ladder of preferences.
func (it *PodGroup) ShapeUp(m *market.Market, step int) {
	it.Step, it.barred, it.shape = step, nil, it.shapes[step]
	if it.shape == nil {
		it.shape = it.shapeAt(step)
		it.shapes[step] = it.shape
		it.weigh(m)
	}
}

// shapeAt returns the shape of a pod group at a step of the ladder, without what depends on the market.
func (it *PodGroup) shapeAt(step int) *shape {
	sh := &shape{Rules: it.Required}
	r := &sh.Rules
	var node model.Term
	for _, p := range it.Preferences[step:] {
		r.Near = slices.Concat(r.Near, p.Near)
		r.Spread = slices.Concat(r.Spread, p.Spread)
		r.Apart = slices.Concat(r.Apart, p.Apart)
		if node == nil {
			node = p.Node
		}
		sh.wary = sh.wary || p.Wary
	}
	for _, t := range it.base {
		sh.terms = append(sh.terms, append(slices.Clip(t), node...))
	}
	return sh
}

// weigh adds to a pod group's shape what depends on the market: its vector, and what may be bought for it.
func (it *PodGroup) weigh(m *market.Market) {
	it.Request = m.Dims.Vector(it.Class.Requests)
	it.most = m.Dims.ClaimCaps(it.Request, &it.Rules)
	if kind := slices.Index(m.Dims.Claims, it.Devices.Key); kind >= 0 {
		it.Request[m.Dims.Claimed(kind)] = 1
	}
	if it.Refusal != "" {
		it.Allowed = market.NewBitset(len(m.Machines))
		return
	}
	offer(m, it)
	kept := market.LeastOdd(m, it.Allowed, model.AsksDevice(it.Class))
	it.Allowed.Intersect(kept)
	for v := range it.Variants {
		it.Variants[v].Machines.Intersect(kept)
	}
	oneVariant(m, it)
}

// offer finds the machines that would do for a pod group.
func offer(m *market.Market, it *PodGroup) {
	for _, t := range it.terms {
		v := m.Variant(it.Class, t, it.wary)
		v.Machines.Intersect(m.Fitting(it.Request))
		if !v.Machines.Empty() {
			it.Variants = append(it.Variants, v)
		}
	}
	it.Allowed = m.UnionOf(it.Variants)
}

// ZonesOfVariants returns the zones that some variants leave.
func ZonesOfVariants(variants []market.Variant) uint64 {
	var zones uint64
	for i := range variants {
		zones |= variants[i].Zones
	}
	return zones
}

// relax gives up the next preference, and reports whether there was one.
func (it *PodGroup) relax(m *market.Market) bool {
	if it.Step == len(it.Preferences) {
		return false
	}
	it.ShapeUp(m, it.Step+1)
	return true
}

// bare returns the pod group without any of its preferences.
func (it *PodGroup) bare(m *market.Market) *PodGroup {
	bare := *it
	bare.ShapeUp(m, len(it.Preferences))
	return &bare
}
