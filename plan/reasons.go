package plan

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// explain says, for each pool, why it cannot serve what is left of an item. The work is done once for all its pods.
func (m *market) explain(it *item) []Reason {
	if it.refusal != "" {
		return []Reason{{Message: it.refusal}}
	}
	if len(m.sellers) == 0 {
		return []Reason{{Message: "there is no NodePool"}}
	}
	reasons := make([]Reason, 0, len(m.sellers))
	for i, s := range m.sellers {
		reasons = append(reasons, Reason{NodePool: s.name, Message: m.obstacle(it, i)})
	}
	return sortReasons(reasons)
}

// obstacle is the first thing that keeps a pool from serving an item.
func (m *market) obstacle(it *item, index int) string {
	s := m.sellers[index]
	if s.closed != "" {
		return s.closed
	}
	if taint := repelledBy(s.NodePool.Spec.Template.Spec.Taints, it.class.Tolerations); taint != nil {
		return fmt.Sprintf("taint %s is not tolerated", taint.ToString())
	}
	if why, ok := it.limited[index]; ok {
		return why
	}
	// With several alternatives, the last is the one the user put up with most readily; it says the most.
	var why string
	for _, t := range it.terms {
		why = m.obstacleOf(it, s, t.normalized())
	}
	return why
}

// obstacleOf narrows the pool's machines condition by condition and names the one after which nothing is left.
func (m *market) obstacleOf(it *item, s *seller, t term) string {
	left := newBitset(len(m.machines))
	for i := s.first; i < s.last; i++ {
		left.set(i)
	}
	zones := ^uint64(0)
	for i := range t {
		c := &t[i]
		if m.zonal(c.key) {
			zones &= m.zoneMask(term{*c})
			continue
		}
		alone := newBitset(len(m.machines))
		for j := s.first; j < s.last; j++ {
			alone.set(j)
		}
		alone.intersect(m.admitted(c))
		if alone.empty() {
			return m.nobodyHas(s, c)
		}
		left.intersect(m.admitted(c))
		if left.empty() {
			return fmt.Sprintf("no instance type meets %s together with its other requirements", c)
		}
	}
	for i := range left.all {
		if m.machines[i].zones&zones == 0 {
			left.clear(i)
		}
	}
	if left.empty() {
		return m.nowhere(t)
	}
	return m.tooSmall(it, left)
}

// nobodyHas is about a condition that no machine of the pool meets.
func (m *market) nobodyHas(s *seller, c *condition) string {
	value, defined := s.labels[c.key]
	switch {
	case c.key == corev1.LabelHostname:
		return fmt.Sprintf("%s can be met only by a node that exists", c)
	case defined:
		return fmt.Sprintf("%s is not met: the pool's nodes have %q", c, value)
	case !m.wellKnown[c.key] && s.open[c.key] == nil:
		return fmt.Sprintf("%s is not met: the pool does not define the label", c)
	}
	return fmt.Sprintf("no instance type and offering meets %s", c)
}

func (m *market) nowhere(t term) string {
	var zonal []string
	for i := range t {
		if m.zonal(t[i].key) {
			zonal = append(zonal, t[i].String())
		}
	}
	return "no offering is available with " + strings.Join(zonal, " and ")
}

// tooSmall is about machines that meet all requirements and do not hold one pod.
func (m *market) tooSmall(it *item, left bitset) string {
	ports, held := false, false
	largest := make([]int64, m.dims.count())
	for i := range left.all {
		mach := &m.machines[i]
		if fits(it.request, mach.usable) {
			held = true
			ports = ports || portsConflict(m.daemonPorts[i], it.class.HostPorts)
			continue
		}
		for d, amount := range mach.usable {
			largest[d] = max(largest[d], amount)
		}
	}
	if ports {
		return "a DaemonSet takes its host ports"
	}
	if held && len(m.sellers[m.machines[firstOf(left)].pool].minimums) > 0 {
		return "too few instance types hold it to meet the pool's minValues"
	}
	for d, amount := range it.request {
		if !held && amount > largest[d] {
			if largest[d] == 0 && d >= dimExtended {
				return fmt.Sprintf("no instance type has %s", m.dims.name(d))
			}
			return fmt.Sprintf("%s %s is more than any instance type leaves for pods (%s)",
				m.dims.name(d), quantity(m.dims.name(d), amount), quantity(m.dims.name(d), largest[d]))
		}
	}
	return "no instance type has enough of everything it asks for at once"
}

func firstOf(set bitset) int {
	for i := range set.all {
		return i
	}
	return 0
}

func sortReasons(reasons []Reason) []Reason {
	slices.SortFunc(reasons, func(a, b Reason) int { return strings.Compare(a.NodePool, b.NodePool) })
	return reasons
}
