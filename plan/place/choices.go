package place

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
)

// absent is the value of a label that a node does not have.
const absent = "\x00absent"

// maxDomainChoices bounds the choices that are looked at.
const maxDomainChoices = 4096

// domainChoices are the choices a pod group has.
func (d *Distribution) domainChoices(it *PodGroup, keys []string) []*domainChoice {
	known := it.known.choices
	if known == nil || len(it.barred) > 0 {
		known = findDomainChoices(d, it, keys)
		if len(it.barred) == 0 && !slices.ContainsFunc(keys, d.Market.OpenAnywhere) {
			it.known.choices = known
		}
	}
	choices, all := make([]*domainChoice, len(known)), slices.Clone(known)
	for i := range all {
		choices[i] = &all[i]
		switch {
		case d.BuysNothing:
			choices[i].variants = nil
		case d.BuysIn != 0:
			elsewhere := func(v market.Variant) bool { return v.Zones&d.BuysIn == 0 }
			choices[i].variants = slices.DeleteFunc(slices.Clone(choices[i].variants), elsewhere)
		}
	}
	return choices
}

func findDomainChoices(d *Distribution, it *PodGroup, keys []string) []domainChoice {
	bound := map[string]bool{} // labels that a node has to have
	for i := range it.Rules.Spread {
		bound[it.Rules.Spread[i].Key] = true
	}
	for i := range it.Rules.Near {
		bound[it.Rules.Near[i].Key] = true
	}
	byValue := map[string]int{}
	var choices []domainChoice
	find := func(values []string) *domainChoice {
		id := strings.Join(values, "\x00")
		i, known := byValue[id]
		if !known {
			if i = len(choices); i == maxDomainChoices {
				return nil
			}
			byValue[id] = i
			choices = append(choices, domainChoice{values: slices.Clone(values), price: math.Inf(1)})
		}
		return &choices[i]
	}
	buyable(d, it, keys, bound, nil, nil, func(values []string, variants []market.Variant) {
		if c := find(values); c != nil && !it.bars(keys, values) {
			c.variants, c.price = variants, d.Market.CostOf(it.Request, variants)
		}
	})
	for _, p := range placesOf(d, it, keys, bound) {
		if c := find(p.values); c != nil {
			c.known = p.row
		}
	}
	for _, s := range d.openTo(it) {
		if values := domainsAt(d, s, keys, bound); values != nil {
			if c := find(values); c != nil {
				c.open = append(c.open, s)
			}
		}
	}
	return choices
}

// placesOf sorts the nodes that let a pod group in by their domains. Pod groups that ask the same share the work.
func placesOf(d *Distribution, it *PodGroup, keys []string, bound map[string]bool) []place {
	id := strings.Join(keys, "\x00")
	for _, key := range keys {
		id += string('0' + model.Flag(bound[key]))
	}
	id += it.kind()
	places, known := d.places[id]
	if known {
		return places
	}
	at := map[string]int{}
	for _, s := range d.LettingIn(it).Slots {
		values := domainsAt(d, s, keys, bound)
		if values == nil {
			continue
		}
		key := strings.Join(values, "\x00")
		i, found := at[key]
		if !found {
			i = len(places)
			at[key] = i
			places = append(places, place{values: values, row: &roomTree{}})
		}
		places[i].row.Slots = append(places[i].row.Slots, s)
	}
	d.places[id] = places
	return places
}

// domainsAt are the domains an existing node is in, by keys; nil if it has to be in one and is not, or not for sure.
func domainsAt(d *Distribution, s *ExistingNode, keys []string, bound map[string]bool) []string {
	values := make([]string, len(keys))
	for i, key := range keys {
		value, has := d.domainOf(s, key)
		if !has {
			if bound[key] || s.options != nil {
				return nil // what is not settled yet may become any domain
			}
			value = absent
		}
		values[i] = value
	}
	return values
}

// bars says that an attempt to buy for the pod group in these domains has failed.
func (it *PodGroup) bars(keys, values []string) bool {
	return slices.ContainsFunc(it.barred, func(at map[string]string) bool {
		for i, key := range keys {
			if at[key] != values[i] {
				return false
			}
		}
		return true
	})
}

// buyable finds the combinations of domains in which machines for a pod group can be bought.
func buyable(d *Distribution, it *PodGroup, keys []string, bound map[string]bool, chosen []string, conditions model.Term, found func([]string, []market.Variant)) {
	if len(chosen) == len(keys) {
		if variants := d.Market.Narrow(it.Variants, conditions); len(variants) > 0 {
			found(chosen, variants)
		}
		return
	}
	key := keys[len(chosen)]
	for _, value := range domainsOf(d.Market, it, key) {
		c := model.NewCondition(model.NormalizedKey(key), "In", []string{value})
		buyable(d, it, keys, bound, append(slices.Clip(chosen), value), append(slices.Clip(conditions), c), found)
	}
	if !bound[key] && !d.Market.Zonal(key) {
		c := model.NewCondition(model.NormalizedKey(key), "DoesNotExist", nil)
		buyable(d, it, keys, bound, append(slices.Clip(chosen), absent), append(slices.Clip(conditions), c), found)
	}
}

// domainsOf are the values a label can have on machines for a pod group, ordered.
func domainsOf(m *market.Market, it *PodGroup, key string) []string {
	key = model.NormalizedKey(key)
	values := map[string]bool{}
	if m.Zonal(key) {
		var zones uint64
		for i := range it.Variants {
			zones |= it.Variants[i].Zones & zonesOf(m, it.Variants[i].Machines)
		}
		for z := range m.Zones {
			if zones&(1<<z) != 0 {
				values[m.ZoneLabels[z][key]] = true
			}
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
	for pool := range open {
		for _, candidate := range slices.Concat(m.Sellers[pool].Open[key].Candidates(), known(&it.Rules, key), it.named(key)) {
			if m.Sellers[pool].Open[key].AllAdmit(candidate, true) && it.wants(key, candidate) {
				values[candidate] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
}

// wants says whether one of the pod group's alternatives admits a value for a label that pools leave open.
func (it *PodGroup) wants(key, value string) bool {
	return slices.ContainsFunc(it.Variants, func(v market.Variant) bool {
		return !slices.ContainsFunc(v.Custom, func(c model.Condition) bool { return c.Key == key && !c.Admits(value, true) })
	})
}

// named are the values of a label that the pod group's pods ask for.
func (it *PodGroup) named(key string) []string {
	var values []string
	for i := range it.Variants {
		for _, c := range it.Variants[i].Custom {
			if c.Key == key {
				values = append(values, model.Term{c}.Candidates()...)
			}
		}
	}
	return values
}

// known are the domains of a label that nodes are in.
func known(r *rules.Rules, key string) []string {
	var values []string
	for i := range r.Spread {
		if r.Spread[i].Key == key {
			values = slices.AppendSeq(values, maps.Keys(r.Spread[i].Domains))
			values = slices.AppendSeq(values, maps.Keys(r.Spread[i].Counts))
		}
	}
	for i := range r.Near {
		if r.Near[i].Key == key {
			values = slices.AppendSeq(values, maps.Keys(r.Near[i].Domains))
		}
	}
	return values
}
