package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// item is the pending pods of one class whose volumes ask the same: what Pack distributes.
type item struct {
	class *Class
	// volumes is what the pods' volumes ask.
	volumes volumeNeeds
	pods    []*Pod
	// left is how many of pods, counted from the end of what is placed, have no place yet.
	left int
	// request is what one pod takes.
	request []int64
	// terms are the alternatives for the labels of a node.
	terms []term
	// variants are the terms as seen by the market: what each admits. Empty where no machine will do.
	variants []variant
	// allowed is the union of the variants' machines, narrowed to those the item is bought now.
	allowed bitset
	// refusal is why the item cannot be planned anywhere; empty if it can.
	refusal string
	// limited says that a pool's limit, and nothing else, kept pods of the item from a machine.
	limited map[int]string
}

// variant is one alternative of an item.
type variant struct {
	machines bitset
	zones    uint64
	// custom are the conditions on labels that some pool leaves open.
	custom term
}

// next takes the item's next n pods.
func (it *item) next(n int) []*Pod {
	start := len(it.pods) - it.left
	it.left -= n
	return it.pods[start : start+n : start+n]
}

// itemsOf groups pods by class and volumes, the largest requests first. Pods of an item are ordered by age.
func itemsOf(book *volumeBook, pods []*Pod) []*item {
	type kind struct {
		class   *Class
		volumes string
	}
	byKind := map[kind]*item{}
	var items []*item
	for _, pod := range pods {
		volumes := book.needs(pod)
		it := byKind[kind{pod.Class, volumes.key}]
		if it == nil {
			it = &item{class: pod.Class, volumes: volumes}
			byKind[kind{pod.Class, volumes.key}] = it
			items = append(items, it)
		}
		it.pods = append(it.pods, pod)
	}
	for _, it := range items {
		slices.SortFunc(it.pods, func(a, b *Pod) int {
			return cmp.Or(-cmp.Compare(a.Priority, b.Priority), a.Created.Compare(b.Created), strings.Compare(string(a.UID), string(b.UID)))
		})
		it.left = len(it.pods)
	}
	slices.SortFunc(items, func(a, b *item) int {
		x, y := &a.class.Requests, &b.class.Requests
		return cmp.Or(-cmp.Compare(x.CPU, y.CPU), -cmp.Compare(x.Memory, y.Memory), strings.Compare(a.class.key, b.class.key),
			strings.Compare(a.volumes.key, b.volumes.key))
	})
	return items
}

// weigh prepares an item for the market: its vector, and what may be bought for it.
func (m *market) weigh(it *item) {
	it.request = m.dims.vector(it.class.Requests)
	it.terms = it.volumes.restrict(termsOf(it.class))
	it.refusal = refusalOf(it)
	it.allowed = newBitset(len(m.machines))
	if it.refusal != "" {
		return
	}
	for _, t := range it.terms {
		v := m.variant(it.class, t)
		for i := range v.machines.all {
			if !fits(it.request, m.machines[i].usable) {
				v.machines.clear(i)
			}
		}
		if !v.machines.empty() {
			it.variants = append(it.variants, v)
			it.allowed.unite(v.machines)
		}
	}
	m.spareDevices(it)
	m.oneVariant(it)
}

// variant is what the market has for one term of a class, whatever its size.
func (m *market) variant(class *Class, t term) variant {
	v := variant{zones: ^uint64(0), machines: newBitset(len(m.machines))}
	for _, s := range m.sellers {
		if s.closed == "" && repelledBy(s.NodePool.Spec.Template.Spec.Taints, class.Tolerations) == nil {
			for i := s.first; i < s.last; i++ {
				v.machines.set(i)
			}
		}
	}
	var zonal term
	for _, c := range t.normalized() {
		if m.zonal(c.key) {
			zonal = append(zonal, c)
			continue
		}
		v.machines.intersect(m.admitted(&c))
		if m.openAnywhere(c.key) {
			v.custom = append(v.custom, c)
		}
	}
	if len(zonal) > 0 {
		v.zones = m.zoneMask(zonal)
	}
	for i := range v.machines.all {
		if m.machines[i].zones&v.zones == 0 || len(class.HostPorts) > 0 && portsConflict(m.daemonPorts[i], class.HostPorts) {
			v.machines.clear(i)
		}
	}
	if len(v.custom) > 1 {
		m.settleCustom(&v)
	}
	return v
}

// settleCustom drops the machines of pools in which the conditions on open labels contradict each other.
func (m *market) settleCustom(v *variant) {
	for _, s := range m.sellers {
		if _, ok := s.settle(v.custom); ok {
			continue
		}
		for i := s.first; i < s.last; i++ {
			v.machines.clear(i)
		}
	}
}

// settle finds the values of a pool's open labels under further conditions.
func (s *seller) settle(custom term) (map[string]string, bool) {
	if len(s.open) == 0 {
		return nil, true
	}
	labels := map[string]string{}
	for key, conditions := range s.open {
		all := slices.Clone(conditions)
		for _, c := range custom {
			if c.key == key {
				all = append(all, c)
			}
		}
		value, present, ok := all.resolve()
		if !ok {
			return nil, false
		}
		if present {
			labels[key] = value
		}
	}
	return labels, true
}

// spareDevices keeps machines with devices for the pods that ask for them, unless there is nothing else.
func (m *market) spareDevices(it *item) {
	if slices.ContainsFunc(it.class.Requests.Extended, func(a Amount) bool { return isDevice(a.Name) }) {
		return
	}
	plain := newBitset(len(m.machines))
	for i := range it.allowed.all {
		if !m.machines[i].devices {
			plain.set(i)
		}
	}
	if plain.empty() {
		return
	}
	it.allowed = plain
	for v := range it.variants {
		it.variants[v].machines.intersect(plain)
	}
}

// refusalOf says why a class cannot be planned, whatever the cluster and the pools are like.
func refusalOf(it *item) string {
	class := it.class
	switch {
	case it.volumes.refusal != "":
		return it.volumes.refusal
	case class.ResourceClaims:
		return "it asks for devices by dynamic resource allocation, which is not planned for"
	case class.Affinity != nil && len(class.Affinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
		return "it requires pod affinity, which is not planned for"
	case class.AntiAffinity != nil && len(class.AntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0:
		return "it requires pod anti-affinity, which is not planned for"
	}
	for i := range class.Spread {
		if class.Spread[i].WhenUnsatisfiable == "DoNotSchedule" {
			return "it requires topology spread over " + class.Spread[i].TopologyKey + ", which is not planned for"
		}
	}
	if class.NodeAffinity != nil {
		for i := range class.NodeAffinity.NodeSelectorTerms {
			if len(class.NodeAffinity.NodeSelectorTerms[i].MatchFields) > 0 {
				return "its node affinity uses matchFields, which no NodePool can meet"
			}
		}
	}
	if len(it.terms) == 0 {
		return "its node affinity has no term that a node could match"
	}
	return ""
}

func portsConflict(a, b []HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Conflicts(y) {
				return true
			}
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
