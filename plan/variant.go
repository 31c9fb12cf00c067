package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// variant is one alternative of an item.
type variant struct {
	machines bitset
	zones    uint64
	// custom are the conditions on labels that some pool leaves open.
	custom term
}

// variant is what the market has for one term of a class, whatever its size.
func (m *market) variant(class *Class, t term, wary bool) variant {
	v := variant{zones: ^uint64(0), machines: newBitset(len(m.machines))}
	for _, s := range m.sellers {
		if s.closed == "" && m.admitsClass(s, class, wary) {
			v.machines.fill(s.first, s.last)
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
	v.machines.intersect(m.soldIn(v.zones))
	if len(class.HostPorts) > 0 {
		for i := range v.machines.all {
			if portsConflict(m.daemonPorts[i], class.HostPorts) {
				v.machines.clear(i)
			}
		}
	}
	if len(v.custom) > 1 {
		m.settleCustom(&v)
	}
	return v
}

// soldIn are the machines that can be had now in some zones.
func (m *market) soldIn(zones uint64) bitset {
	set, known := m.sold[zones]
	if !known {
		set = newBitset(len(m.machines))
		for i := range m.machines {
			if m.machines[i].zones&zones != 0 {
				set.set(i)
			}
		}
		m.sold[zones] = set
	}
	return set
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

// admitsClass says whether the taints of a pool's nodes let pods of the class in.
func (m *market) admitsClass(s *seller, class *Class, wary bool) bool {
	taints := s.NodePool.Spec.Template.Spec.Taints
	return repelledBy(taints, class.Tolerations) == nil && !(wary && deterredBy(taints, class.Tolerations))
}

// deterredBy says whether the pods with these tolerations are not wanted where there is another place.
func deterredBy(taints []corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectPreferNoSchedule && !tolerates(tolerations, &t)
	})
}

// narrow is what variants leave under further conditions.
func (m *market) narrow(variants []variant, conditions term) []variant {
	var zonal term
	var result []variant
	for i := range conditions {
		if m.zonal(conditions[i].key) {
			zonal = append(zonal, conditions[i])
		}
	}
	zones := ^uint64(0)
	if len(zonal) > 0 {
		zones = m.zoneMask(zonal)
	}
	for _, v := range variants {
		v = variant{machines: v.machines.clone(), zones: v.zones & zones, custom: slices.Clip(v.custom)}
		for i := range conditions {
			c := &conditions[i]
			if m.zonal(c.key) {
				continue
			}
			v.machines.intersect(m.admitted(c))
			if m.openAnywhere(c.key) {
				v.custom = append(v.custom, *c)
			}
		}
		v.machines.intersect(m.soldIn(v.zones))
		if len(v.custom) > 1 {
			m.settleCustom(&v)
		}
		if !v.machines.empty() {
			result = append(result, v)
		}
	}
	return result
}

// unionOf are the machines of all variants.
func (m *market) unionOf(variants []variant) bitset {
	union := newBitset(len(m.machines))
	for i := range variants {
		union.unite(variants[i].machines)
	}
	return union
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
