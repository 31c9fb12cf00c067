package place

import (
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
		if choices[i] = &all[i]; d.BuysNothing {
			choices[i].variants = nil
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
			choices = append(choices, domainChoice{values: values, known: &roomTree{}, price: math.Inf(1)})
		}
		return &choices[i]
	}
	for _, sold := range buyable(d.Market, it, keys, bound) {
		if c := find(sold.values); c != nil && !it.bars(keys, sold.values) {
			c.variants, c.price = sold.variants, d.Market.CostOf(it.Request, sold.variants)
		}
	}
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

// buyable are the combinations of domains in which machines for a pod group can be bought.
func buyable(m *market.Market, it *PodGroup, keys []string, bound map[string]bool) []domainChoice {
	var choices []domainChoice
	if len(it.Variants) > 0 {
		choices = append(choices, domainChoice{variants: it.Variants})
	}
	for _, key := range keys {
		normal := model.NormalizedKey(key)
		var conditions []model.Condition
		values := domainsOf(m, it, key)
		for _, value := range values {
			conditions = append(conditions, model.NewCondition(normal, corev1.NodeSelectorOpIn, []string{value}))
		}
		if !bound[key] && !m.Zonal(key) {
			values = append(values, absent)
			conditions = append(conditions, model.NewCondition(normal, corev1.NodeSelectorOpDoesNotExist, nil))
		}
		var finer []domainChoice
		for _, c := range choices {
			for i, value := range values {
				if variants := m.Narrow(c.variants, model.Term{conditions[i]}); len(variants) > 0 {
					finer = append(finer, domainChoice{values: append(slices.Clip(c.values), value), variants: variants})
				}
			}
		}
		choices = finer
	}
	return choices
}

// domainsOf are the values a label can have on machines for a pod group, ordered.
func domainsOf(m *market.Market, it *PodGroup, key string) []string {
	key = model.NormalizedKey(key)
	values := map[string]bool{}
	if m.Zonal(key) {
		var zones uint64
		for i := range it.Variants {
			zones |= it.Variants[i].Zones & zonesOf(m, it.Variants[i].Machines.All)
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
		for _, v := range it.Variants {
			asked := append(slices.Clip(m.Sellers[pool].Open[key]), about(v.Custom, key)...)
			for _, candidate := range append(asked.Candidates(), known(&it.Rules, key)...) {
				if asked.AllAdmit(candidate, true) {
					values[candidate] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(values))
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
