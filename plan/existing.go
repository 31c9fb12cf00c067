package plan

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
	// tally counts the pods of the groups over hostnames, which topology knows.
	tally    []int32
	topology *topology
	// closed says that nothing is to be put on it for the time being.
	closed bool
	// rows are those it stands in whose trees have to know what is free.
	rows []rowAt
}

// slotsOf are the nodes that may take pods: initialized ones first, then those that have joined, then claims.
func (m *market) slotsOf(book *volumeBook, topology *topology) []*slot {
	snapshot := book.snapshot
	var slots []*slot
	for _, n := range snapshot.Nodes {
		if n.Deleting || n.Disrupted || n.Terminating || n.Cordoned || n.lost() {
			continue
		}
		s := m.slot(n, snapshot.DaemonSets)
		s.attach = book.room(n)
		m.dims.unbounded(s.free)
		slots = append(slots, s)
	}
	topology.tallies(slots)
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

// admits says whether a node that exists, or whose machine is known, lets the item's pods in, were there room.
func (s *slot) admits(it *item) bool {
	if !it.tolerated(lastingTaints(s.node)) {
		return false
	}
	for _, t := range it.terms {
		if t.admits(s.node.Labels) || !s.node.Initialized && t.normalized().admits(s.node.Labels) {
			return true
		}
	}
	return false
}

// willAdmit says whether a claim will let the item's pods in, whichever machine it gets.
func (s *slot) willAdmit(it *item) bool {
	if s.options.empty() || !it.tolerated(lastingTaints(s.node)) {
		return false
	}
	for _, v := range it.variants {
		if s.options.within(v.machines) && s.zones&^v.zones == 0 && v.custom.admits(s.node.Labels) {
			return true
		}
	}
	return false
}

// room says how many of the item's pods the node holds, n at most.
func (s *slot) room(it *item, n int) int { return s.roomUnder(&it.rules, it, n) }

// roomUnder is room where the item's pods follow other rules.
func (s *slot) roomUnder(r *rules, it *item, n int) int {
	if s.closed {
		return 0
	}
	n = min(n, times(it.request, s.free))
	if n > 0 && len(it.class.HostPorts) > 0 {
		if portsConflict(s.ports, it.class.HostPorts) {
			return 0
		}
		n = 1
	}
	if n == 0 {
		return 0
	}
	return s.attach.holds(&it.volumes.attach, r.slotAllows(s.tally, n, s.topology))
}

// lost says that nobody here knows whether the node will ever take a pod: it is not Tenon's, and it is not Ready.
func (n *Node) lost() bool { return n.Claim == "" && !n.Initialized }

// lastingTaints are the taints that keep pods off a node for good. While a node of ours is not initialized, its startup
// taints and those that Kubernetes itself puts on a node that has just joined are about to go. On nodes of others the same
// taints say that something is wrong.
func lastingTaints(n *Node) []corev1.Taint {
	if n.Initialized || n.Claim == "" {
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
	if strings.HasPrefix(taint.Key, "readiness.k8s.io/") {
		return true
	}
	return slices.ContainsFunc(n.StartupTaints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}
