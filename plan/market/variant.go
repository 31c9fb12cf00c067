package market

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Those returns the machines for which holds is true.
func (m *Market) Those(holds func(*Machine) bool) Bitset {
	set := NewBitset(len(m.Machines))
	for i := range m.Machines {
		if holds(&m.Machines[i]) {
			set.Set(i)
		}
	}
	return set
}

// Fitting returns the machines with room for a request. It caches the answer, because many pod groups ask for the same.
func (m *Market) Fitting(request []int64) Bitset {
	key := make([]byte, 0, 64)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	return m.fitting.Of(string(key), func() Bitset {
		return m.Those(func(mach *Machine) bool { return solve.Fits(request, mach.Usable) })
	})
}

// Admitted is the set of machines that meet a condition on a label which does not follow from the zone.
func (m *Market) Admitted(c *model.Condition) Bitset {
	return m.admitted.Of(c.ID(), func() Bitset {
		absent, verdicts := c.Admits("", false), Cache[string, bool]{}
		return m.Those(func(mach *Machine) bool {
			if value, present := m.Label(mach, c.Key); present {
				return verdicts.Of(value, func() bool { return c.Admits(value, true) })
			}
			if open := m.Sellers[mach.Pool].Open[c.Key]; open != nil {
				_, _, admits := append(slices.Clone(open), *c).Resolve()
				return admits
			}
			return absent
		})
	})
}

// OpenAnywhere says whether some pool leaves the label to the pods.
func (m *Market) OpenAnywhere(key string) bool {
	return slices.ContainsFunc(m.Sellers, func(s *Seller) bool { return s.Open[key] != nil })
}

// Of returns the machines of a pool.
func (m *Market) Of(s *Seller) Bitset {
	return m.own.Of(s, func() Bitset {
		set := NewBitset(len(m.Machines))
		for i := s.First; i < s.Last; i++ {
			set.Set(i)
		}
		return set
	})
}

// Variant is one alternative of a pod group.
type Variant struct {
	Machines Bitset
	Zones    uint64
	// Custom are the conditions on labels that some pool leaves open.
	Custom model.Term
}

// Variant returns what the market has for one term of a class, whatever the class requests. With wary, pods avoid taints
// with PreferNoSchedule.
func (m *Market) Variant(class *model.Class, t model.Term, wary bool) Variant {
	v := Variant{Zones: Everywhere, Machines: NewBitset(len(m.Machines))}
	for _, s := range m.Sellers {
		if s.Closed == "" && Tolerated(s.NodePool.Spec.Template.Spec.Taints, class.Tolerations, wary) {
			v.Machines.Unite(m.Of(s))
		}
	}
	narrow(m, &v, t.Normalized())
	if len(class.HostPorts) > 0 {
		v.Machines.DeleteFunc(func(i int) bool { return PortsConflict(m.Machines[i].DaemonPorts, class.HostPorts) })
	}
	return v
}

// narrow adds further conditions to a variant. It keeps the machines that are available in the variant's zones, and for
// which its conditions on open labels do not contradict each other.
func narrow(m *Market, v *Variant, conditions model.Term) {
	var zonal model.Term
	for i := range conditions {
		c := &conditions[i]
		if m.Zonal(c.Key) {
			zonal = append(zonal, *c)
			continue
		}
		v.Machines.Intersect(m.Admitted(c))
		if m.OpenAnywhere(c.Key) {
			v.Custom = append(v.Custom, *c)
		}
	}
	if len(zonal) > 0 {
		v.Zones &= m.ZoneMask(zonal)
	}
	v.Machines.Intersect(m.available.Of(v.Zones, func() Bitset {
		return m.Those(func(mach *Machine) bool { return mach.Zones&v.Zones != 0 })
	}))
	if len(v.Custom) < 2 {
		return
	}
	for _, s := range m.Sellers {
		if _, ok := m.Settle(s, v.Custom); !ok {
			v.Machines.Exclude(m.Of(s))
		}
	}
}

// Settle finds the values of a pool's open labels under further conditions.
func (m *Market) Settle(s *Seller, custom model.Term) (map[string]string, bool) {
	if len(s.Open) == 0 {
		return nil, true
	}
	labels := map[string]string{}
	for key, conditions := range s.Open {
		all := slices.Clone(conditions)
		for _, c := range custom {
			if c.Key == key {
				all = append(all, c)
			}
		}
		if key == m.Keys.Partition && len(all) == 1 {
			continue // nobody asks for a partition, and the cloud distributes the nodes
		}
		value, present, ok := all.Resolve()
		if key == m.Keys.Tenancy {
			value, ok = all.Tenancy(m.Keys)
		}
		if !ok {
			return nil, false
		}
		if present {
			labels[key] = value
		}
	}
	return labels, true
}

// Tolerated says whether taints admit pods with these tolerations. With wary, the pods have to tolerate taints with
// PreferNoSchedule as well.
func Tolerated(taints []corev1.Taint, tolerations []corev1.Toleration, wary bool) bool {
	return model.RepelledBy(taints, tolerations) == nil && !(wary && slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectPreferNoSchedule && !model.Tolerates(tolerations, &t)
	}))
}

// Narrow returns variants under further conditions, without those that have no machines left.
func (m *Market) Narrow(variants []Variant, conditions model.Term) []Variant {
	var result []Variant
	for _, v := range variants {
		v.Machines, v.Custom = v.Machines.Clone(), slices.Clip(v.Custom)
		narrow(m, &v, conditions)
		if !v.Machines.Empty() {
			result = append(result, v)
		}
	}
	return result
}

// UnionOf returns the machines of all variants.
func (m *Market) UnionOf(variants []Variant) Bitset {
	union := NewBitset(len(m.Machines))
	for i := range variants {
		union.Unite(variants[i].Machines)
	}
	return union
}

// PortsConflict says whether some host port of a and one of b cannot be on one node.
func PortsConflict(a, b []model.HostPort) bool {
	return slices.ContainsFunc(a, func(x model.HostPort) bool { return slices.ContainsFunc(b, x.Conflicts) })
}
