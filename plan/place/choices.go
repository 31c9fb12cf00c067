package place

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// domainChoice is one combination of domains, one for each label that a pod group's rules are about, with the nodes
// there and what can be bought there.
type domainChoice struct {
	// at has the domains by label. A label that the nodes do not have is missing.
	at map[string]string
	// row has the existing nodes there that may admit the pods.
	row nodeRow
	// next is the first existing node that may still have room while the rules' floors are as in floors.
	next     int
	floors   int
	variants []market.Variant
	price    float64
	// fresh are the pods that new nodes are bought for.
	fresh []*model.Pod
	// closed says that there is room for no more pods.
	closed bool
}

// advance moves next to the first existing node that has room for another of the pod group's pods, and reports whether
// there is one. It starts again at the first node when every host has one more of the pods that are spread over hosts.
func (c *domainChoice) advance(it *PodGroup) bool {
	for {
		for ; c.next < len(c.row); c.next++ {
			c.next = c.row.Next(c.next, it.Request)
			if c.next < len(c.row) && c.row[c.next].Room(it, 1) > 0 {
				return true
			}
		}
		floors := it.Rules.Floors()
		if floors <= c.floors {
			return false
		}
		c.floors, c.next = floors, 0
	}
}

// maxDomainChoices limits the number of choices considered in which something can be bought.
const maxDomainChoices = 4096

// domainChoices returns the choices that a pod group has now.
func (d *Distribution) domainChoices(it *PodGroup) []*domainChoice {
	keys := it.keys()
	if it.choices == nil || slices.ContainsFunc(keys, d.Market.OpenAnywhere) {
		it.choices = d.findChoices(it, keys)
	}
	choices := make([]*domainChoice, len(it.choices))
	for i, c := range it.choices {
		tried := func(at map[string]string) bool { return maps.Equal(at, c.at) }
		if d.BuysNothing || slices.ContainsFunc(it.barred, tried) {
			c.variants = nil
		}
		choices[i] = &c
	}
	return choices
}

// choiceList is a list of choices of domains without duplicates.
type choiceList struct {
	all    []domainChoice
	places map[string]int
}

// in returns the choice of some domains, and adds it if it is missing.
func (l *choiceList) in(at map[string]string) *domainChoice {
	id := string(model.AppendMap(nil, at))
	i, known := l.places[id]
	if !known {
		i = len(l.all)
		l.places[id] = i
		l.all = append(l.all, domainChoice{at: at, price: math.Inf(1)})
	}
	return &l.all[i]
}

// findChoices finds all choices of domains that a pod group has, including those that were tried without success.
func (d *Distribution) findChoices(it *PodGroup, keys []string) []domainChoice {
	bound := map[string]bool{} // labels that a node must have
	for _, g := range amongOf(&it.Rules) {
		if g.Host < 0 {
			bound[g.Key] = true
		}
	}
	found := choiceList{places: map[string]int{}}
	for _, sold := range buyable(d.Market, it, keys, bound) {
		c := found.in(sold.at)
		c.variants, c.price = sold.variants, d.Market.CostOf(it.Request, sold.variants)
	}
	for _, c := range d.takersOf(it, keys, bound) {
		if slices.ContainsFunc(c.row, func(s *ExistingNode) bool { return s.options == nil || s.willAdmit(it) }) {
			found.in(c.at).row = c.row
		}
	}
	return found.all
}

// takersOf returns the existing nodes that may admit the pod group's pods if there is room, by their domains: those
// that do admit them, and the claims whose machine is not known yet, which Room checks later. Pod groups that ask the
// same share the result.
func (d *Distribution) takersOf(it *PodGroup, keys []string, bound map[string]bool) []domainChoice {
	id := fmt.Sprint(keys, bound) + it.kind()
	if takers, known := d.takers[id]; known {
		return takers
	}
	existing := slices.DeleteFunc(slices.Clone(d.Existing), func(s *ExistingNode) bool { return s.options == nil && !s.admits(it) })
	if !model.AsksDevice(it.Class) {
		// Pods that need no device take nodes without devices first.
		slices.SortStableFunc(existing, func(a, b *ExistingNode) int {
			return cmp.Compare(model.Flag(a.Node.Allocatable.HasDevice()), model.Flag(b.Node.Allocatable.HasDevice()))
		})
	}
	found := choiceList{places: map[string]int{}}
	for _, s := range existing {
		if at := d.domainsAt(s, keys, bound); at != nil {
			c := found.in(at)
			c.row = append(c.row, s)
		}
	}
	d.takers[id] = found.all
	return found.all
}

// LettingIn returns the existing nodes that may admit the pod group's pods if there is room, whatever their domains.
func (d *Distribution) LettingIn(it *PodGroup) nodeRow {
	if it.takers == nil {
		it.takers = nodeRow{}
		for _, all := range d.takersOf(it, nil, nil) {
			it.takers = all.row
		}
	}
	return it.takers
}

// amongOf returns the groups whose label a node must have, because pods are to be spread over its domains, or near
// others in one.
func amongOf(r *rules.Rules) []*rules.Group {
	var groups []*rules.Group
	for i := range r.Spread {
		groups = append(groups, r.Spread[i].Group)
	}
	for i := range r.Near {
		groups = append(groups, r.Near[i].Group)
	}
	return groups
}

// domainsAt returns the domains of an existing node by key. It returns nil if the node is not, or not certainly, in a
// domain that it must be in.
func (d *Distribution) domainsAt(s *ExistingNode, keys []string, bound map[string]bool) map[string]string {
	at := make(map[string]string, len(keys))
	for _, key := range keys {
		switch value, has := d.domainOf(s, key); {
		case has:
			at[key] = value
		case bound[key] || s.options != nil:
			return nil // what is not settled yet may become any domain
		}
	}
	return at
}

// buyable returns the combinations of domains in which machines for a pod group can be bought.
func buyable(m *market.Market, it *PodGroup, keys []string, bound map[string]bool) []domainChoice {
	var choices []domainChoice
	if len(it.Variants) > 0 {
		choices = append(choices, domainChoice{at: map[string]string{}, variants: it.Variants})
	}
	for _, key := range keys {
		var finer []domainChoice
		add := func(c domainChoice, at map[string]string, operator corev1.NodeSelectorOperator, values ...string) {
			condition := model.NewCondition(model.NormalizedKey(key), operator, values)
			if variants := m.Narrow(c.variants, model.Term{condition}); len(variants) > 0 {
				finer = append(finer, domainChoice{at: at, variants: variants})
			}
		}
		values := domainsOf(m, it, key)
		for _, c := range choices {
			for _, value := range values {
				at := maps.Clone(c.at)
				at[key] = value
				add(c, at, corev1.NodeSelectorOpIn, value)
			}
			if !bound[key] && !m.Zonal(key) {
				add(c, c.at, corev1.NodeSelectorOpDoesNotExist)
			}
		}
		choices = finer[:min(len(finer), maxDomainChoices)]
	}
	return choices
}

// domainsOf returns the values that a label can have on machines for a pod group, sorted.
func domainsOf(m *market.Market, it *PodGroup, key string) []string {
	key = model.NormalizedKey(key)
	values := map[string]bool{}
	if m.Zonal(key) {
		var zones uint64
		for i := range it.Variants {
			zones |= it.Variants[i].Zones & zonesOf(m, it.Variants[i].Machines.All)
		}
		for _, value := range m.ZoneValues(zones, key) {
			values[value] = true
		}
		delete(values, "")
		return slices.Sorted(maps.Keys(values))
	}
	open := map[int]bool{}
	for i := range it.Allowed.All {
		mach := &m.Machines[i]
		if value, present := m.Label(mach, key); present {
			values[value] = true
		} else if m.Sellers[mach.Pool].Open[key] != nil {
			open[mach.Pool] = true
		}
	}
	var known []string // domains that nodes are in
	for _, g := range amongOf(&it.Rules) {
		if g.Key == key {
			known = slices.AppendSeq(slices.AppendSeq(known, maps.Keys(g.Domains)), maps.Keys(g.Counts))
		}
	}
	for pool := range open {
		for _, v := range it.Variants {
			asked := append(slices.Clip(m.Sellers[pool].Open[key]), v.Custom.About(key)...)
			for _, candidate := range append(asked.Candidates(), known...) {
				if asked.AllAdmit(candidate, true) {
					values[candidate] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}
