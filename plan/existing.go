package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// slot is a node that exists or is on its way, with what is free on it.
type slot struct {
	node  *Node
	free  []int64
	ports []HostPort
	// attach is how many volumes the node can still attach.
	attach *attachRoom
	// options are the machines a claim without one may still become; nil once it is launched.
	options bitset
	zones   uint64
}

// slotsOf are the nodes that may take pods: initialized ones first, then those that have joined, then claims.
func (m *market) slotsOf(book *volumeBook) []*slot {
	snapshot := book.snapshot
	var slots []*slot
	for _, n := range snapshot.Nodes {
		if n.Deleting || n.Disrupted || n.Terminating || n.Cordoned {
			continue
		}
		s := m.slot(n, snapshot.DaemonSets)
		s.attach = book.room(n)
		slots = append(slots, s)
	}
	stage := func(s *slot) int {
		switch {
		case s.node.Initialized:
			return 0
		case s.node.Registered:
			return 1
		case s.node.Launched:
			return 2
		}
		return 3
	}
	slices.SortFunc(slots, func(a, b *slot) int {
		return cmp.Or(cmp.Compare(stage(a), stage(b)), strings.Compare(a.node.Key(), b.node.Key()))
	})
	return slots
}

func (m *market) slot(n *Node, sets []*DaemonSet) *slot {
	s := &slot{node: n}
	if n.Claim != "" && !n.Launched && n.Name == "" {
		m.foresee(s)
		return s
	}
	s.free = m.dims.vector(n.Allocatable)
	for _, pod := range n.Pods {
		if pod.Terminal {
			continue
		}
		take(s.free, m.dims.vector(pod.Class.Requests), 1)
		s.ports = append(s.ports, pod.Class.HostPorts...)
	}
	daemons, ports := missingDaemons(n, sets)
	take(s.free, m.dims.vector(daemons), 1)
	s.ports = append(s.ports, ports...)
	return s
}

// foresee works out what a claim without machine offers whichever machine it gets.
func (m *market) foresee(s *slot) {
	s.free = make([]int64, m.dims.count())
	s.options = newBitset(len(m.machines))
	index := slices.IndexFunc(m.sellers, func(seller *seller) bool { return seller.name == s.node.Pool })
	if index < 0 {
		return
	}
	seller := m.sellers[index]
	for i := seller.first; i < seller.last; i++ {
		s.options.set(i)
	}
	var zonal term
	for _, c := range claimConditions(s.node) {
		switch {
		case m.zonal(c.key):
			zonal = append(zonal, c)
		case m.wellKnown[c.key]:
			s.options.intersect(m.admitted(&c))
		}
	}
	s.zones = m.zoneMask(zonal)
	requests := m.dims.vector(s.node.Requests)
	first := true
	for i := range s.options.all {
		mach := &m.machines[i]
		if mach.zones&s.zones == 0 || !fits(requests, m.dims.vector(ResourcesOf(mach.typ.Allocatable))) {
			s.options.clear(i)
			continue
		}
		for d, amount := range mach.usable {
			if first || amount < s.free[d] {
				s.free[d] = amount
			}
		}
		first = false
		s.ports = append(s.ports, m.daemonPorts[i]...)
	}
	slices.SortFunc(s.ports, func(a, b HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.IP, b.IP))
	})
	s.ports = slices.Compact(s.ports)
}

// claimConditions are what a claim requires of its machine.
func claimConditions(n *Node) term {
	t := make(term, 0, len(n.Requirements))
	for _, r := range n.Requirements {
		t = append(t, newCondition(karpv1.NormalizedLabelKey(r.Key), r.Operator, r.Values))
	}
	return t
}

// takes says whether the node admits the item's pods, were there room.
func (s *slot) takes(it *item) bool {
	if repelledBy(lastingTaints(s.node), it.class.Tolerations) != nil {
		return false
	}
	if s.options == nil {
		for _, t := range it.terms {
			if t.admits(s.node.Labels) || !s.node.Initialized && t.normalized().admits(s.node.Labels) {
				return true
			}
		}
		return false
	}
	if s.options.empty() {
		return false
	}
	for _, v := range it.variants {
		if s.options.within(v.machines) && s.zones&^v.zones == 0 && v.custom.admits(s.node.Labels) {
			return true
		}
	}
	return false
}

// room says how many of the item's pods the node holds.
func (s *slot) room(it *item) int {
	n := times(it.request, s.free)
	if n > 0 && len(it.class.HostPorts) > 0 {
		if portsConflict(s.ports, it.class.HostPorts) {
			return 0
		}
		n = 1
	}
	return s.attach.holds(&it.volumes.attach, n)
}

func (s *slot) put(it *item, n int) {
	take(s.free, it.request, n)
	s.ports = append(s.ports, it.class.HostPorts...)
	s.attach.put(&it.volumes.attach, n)
}

// fillExisting places items on slots, in order of both, and promised pods first where they were promised.
func fillExisting(items []*item, slots []*slot) []Placement {
	placements := keepPromises(items, slots)
	for _, it := range items {
		if it.refusal != "" {
			continue
		}
		for _, s := range slots {
			if it.left == 0 {
				break
			}
			n := min(s.room(it), it.left)
			if n == 0 || !s.takes(it) {
				continue
			}
			s.put(it, n)
			for _, pod := range it.next(n) {
				placements = append(placements, Placement{Pod: pod, Node: s.node.Key()})
			}
		}
	}
	return placements
}

// keepPromises puts pods where an earlier plan has put them. A claim without machine was made for its pods; anywhere
// else the promise has to be still good.
func keepPromises(items []*item, slots []*slot) []Placement {
	promised := map[types.UID]*slot{}
	for _, s := range slots {
		for _, uid := range s.node.Promised {
			promised[uid] = s
		}
	}
	if len(promised) == 0 {
		return nil
	}
	var placements []Placement
	for _, it := range items {
		kept := it.pods[:0:0]
		for _, pod := range it.pods {
			s := promised[pod.UID]
			if s == nil || s.options == nil && (it.refusal != "" || s.room(it) == 0 || !s.takes(it)) {
				kept = append(kept, pod)
				continue
			}
			s.put(it, 1)
			placements = append(placements, Placement{Pod: pod, Node: s.node.Key()})
		}
		it.pods, it.left = kept, len(kept)
	}
	return placements
}

// lastingTaints are the taints that keep pods off a node for good. While a node is not initialized, its startup taints
// and those that Kubernetes itself puts on a node that has just joined are about to go.
func lastingTaints(n *Node) []corev1.Taint {
	if n.Initialized {
		return n.Taints
	}
	lasting := true
	for i := range n.Taints {
		lasting = lasting && !passing(n, &n.Taints[i])
	}
	if lasting {
		return n.Taints
	}
	return slices.DeleteFunc(slices.Clone(n.Taints), func(t corev1.Taint) bool { return passing(n, &t) })
}

func passing(n *Node, taint *corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, karpv1.UnregisteredTaintKey, "node.cloudprovider.kubernetes.io/uninitialized":
		return true
	}
	if hasPrefix(taint.Key, "readiness.k8s.io/") {
		return true
	}
	return slices.ContainsFunc(n.StartupTaints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}
