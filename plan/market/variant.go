package market

import (
	"encoding/binary"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/model"
)

// Fitting are the machines with room for a request. Many pod groups ask for the same.
func (m *Market) Fitting(request []int64) Bitset {
	key := make([]byte, 0, 64)
	for _, amount := range request {
		key = binary.AppendVarint(key, amount)
	}
	set, known := m.fits[string(key)]
	if !known {
		set = NewBitset(len(m.Machines))
		for i := range m.Machines {
			if Fits(request, m.Machines[i].Usable) {
				set.Set(i)
			}
		}
		m.fits[string(key)] = set
	}
	return set
}

// Variant is one alternative of a pod group.
type Variant struct {
	Machines Bitset
	Zones    uint64
	// Custom are the conditions on labels that some pool leaves open.
	Custom model.Term
}

// Variant is what the market has for one term of a class, whatever its size.
func (m *Market) Variant(class *model.Class, t model.Term, wary bool) Variant {
	v := Variant{Zones: ^uint64(0), Machines: NewBitset(len(m.Machines))}
	for _, s := range m.Sellers {
		if s.Closed == "" && m.admitsClass(s, class, wary) {
			v.Machines.fill(s.First, s.Last)
		}
	}
	var zonal model.Term
	for _, c := range t.Normalized() {
		if m.Zonal(c.Key) {
			zonal = append(zonal, c)
			continue
		}
		v.Machines.Intersect(m.Admitted(&c))
		if m.OpenAnywhere(c.Key) {
			v.Custom = append(v.Custom, c)
		}
	}
	if len(zonal) > 0 {
		v.Zones = m.ZoneMask(zonal)
	}
	v.Machines.Intersect(m.soldIn(v.Zones))
	if len(class.HostPorts) > 0 {
		for i := range v.Machines.All {
			if PortsConflict(m.DaemonPorts[i], class.HostPorts) {
				v.Machines.Clear(i)
			}
		}
	}
	if len(v.Custom) > 1 {
		SettleCustom(m, &v)
	}
	return v
}

// soldIn are the machines that can be had now in some zones.
func (m *Market) soldIn(zones uint64) Bitset {
	set, known := m.sold[zones]
	if !known {
		set = NewBitset(len(m.Machines))
		for i := range m.Machines {
			if m.Machines[i].Zones&zones != 0 {
				set.Set(i)
			}
		}
		m.sold[zones] = set
	}
	return set
}

// SettleCustom drops the machines of pools in which the conditions on open labels contradict each other.
func SettleCustom(m *Market, v *Variant) {
	for _, s := range m.Sellers {
		if _, ok := s.Settle(v.Custom); ok {
			continue
		}
		for i := s.First; i < s.Last; i++ {
			v.Machines.Clear(i)
		}
	}
}

// Settle finds the values of a pool's open labels under further conditions.
func (s *Seller) Settle(custom model.Term) (map[string]string, bool) {
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
		value, present, ok := all.Resolve()
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
func (m *Market) admitsClass(s *Seller, class *model.Class, wary bool) bool {
	taints := s.NodePool.Spec.Template.Spec.Taints
	return model.RepelledBy(taints, class.Tolerations) == nil && !(wary && DeterredBy(taints, class.Tolerations))
}

// DeterredBy says whether the pods with these tolerations are not wanted where there is another place.
func DeterredBy(taints []corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(taints, func(t corev1.Taint) bool {
		return t.Effect == corev1.TaintEffectPreferNoSchedule && !model.Tolerates(tolerations, &t)
	})
}

// Narrow is what variants leave under further conditions.
func (m *Market) Narrow(variants []Variant, conditions model.Term) []Variant {
	var zonal model.Term
	var result []Variant
	for i := range conditions {
		if m.Zonal(conditions[i].Key) {
			zonal = append(zonal, conditions[i])
		}
	}
	zones := ^uint64(0)
	if len(zonal) > 0 {
		zones = m.ZoneMask(zonal)
	}
	for _, v := range variants {
		v = Variant{Machines: v.Machines.Clone(), Zones: v.Zones & zones, Custom: slices.Clip(v.Custom)}
		for i := range conditions {
			c := &conditions[i]
			if m.Zonal(c.Key) {
				continue
			}
			v.Machines.Intersect(m.Admitted(c))
			if m.OpenAnywhere(c.Key) {
				v.Custom = append(v.Custom, *c)
			}
		}
		v.Machines.Intersect(m.soldIn(v.Zones))
		if len(v.Custom) > 1 {
			SettleCustom(m, &v)
		}
		if !v.Machines.Empty() {
			result = append(result, v)
		}
	}
	return result
}

// UnionOf are the machines of all variants.
func (m *Market) UnionOf(variants []Variant) Bitset {
	union := NewBitset(len(m.Machines))
	for i := range variants {
		union.Unite(variants[i].Machines)
	}
	return union
}

// PortsConflict says whether some host ports of both cannot be on one node.
func PortsConflict(a, b []model.HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Conflicts(y) {
				return true
			}
		}
	}
	return false
}
