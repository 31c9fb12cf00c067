package place

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan/devices"
	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// ExistingNode is a node that exists or is on its way, with its free room.
type ExistingNode struct {
	Node  *model.Node
	Free  []int64
	Ports []model.HostPort
	// Attach is how many volumes the node can still attach.
	Attach *rules.AttachmentRoom
	// Devices are its free devices.
	Devices *devices.Room
	// options are the machines that a claim without one may still become; nil once it is launched.
	options market.Bitset
	zones   uint64
	// Tally counts the pods of the groups over hostnames, by Group.Host.
	Tally    []int32
	topology *rules.Topology
	// Closed says that no pods may be put on it for now.
	Closed bool
}

// nodeRow is existing nodes in the order in which they are filled.
type nodeRow []*ExistingNode

// Next returns the index of the first existing node, starting at from, that has room for a request, or the number of
// nodes if there is none. It looks at resources only.
func (r nodeRow) Next(from int, request []int64) int {
	for from < len(r) && (r[from].Closed || !solve.Fits(request, r[from].Free)) {
		from++
	}
	return from
}

// existingNodesOf returns the nodes that may take pods: initialized ones first, then those that have joined, then
// claims.
func existingNodesOf(m *market.Market) []*ExistingNode {
	snapshot := m.Book.Snapshot
	var existing []*ExistingNode
	for _, n := range snapshot.Nodes {
		if n.Deleting || n.Disrupted || n.Terminating || n.Cordoned || n.Claim == "" && !n.Initialized {
			continue // a node that is neither Tenon's nor initialized may never take a pod
		}
		s := existingNodeOf(m, n, snapshot.DaemonSets)
		s.Attach = m.Book.Room(n)
		for i := range m.Dims.Caps {
			s.Free[m.Dims.Cap(i)] = math.MaxInt32 // existing nodes count groups in Tally
		}
		for i := range m.Dims.Claims {
			s.Free[m.Dims.Claimed(i)] = math.MaxInt32 // and devices in Devices
		}
		existing = append(existing, s)
	}
	first := func(a, b bool) int { return cmp.Compare(model.Flag(b), model.Flag(a)) }
	slices.SortFunc(existing, func(s, other *ExistingNode) int {
		a, b := s.Node, other.Node
		return cmp.Or(first(a.Initialized, b.Initialized), first(a.Registered, b.Registered), first(a.Launched, b.Launched), strings.Compare(a.Key(), b.Key()))
	})
	return existing
}

func existingNodeOf(m *market.Market, n *model.Node, sets []*model.DaemonSet) *ExistingNode {
	s := &ExistingNode{Node: n}
	if n.Claim != "" && !n.Launched && n.Name == "" {
		foresee(m, s)
		return s
	}
	s.Free, s.Devices = m.Dims.Vector(n.Allocatable), m.Devices.Room(n)
	for _, pod := range n.Pods {
		if pod.Terminal {
			continue
		}
		solve.Subtract(s.Free, m.Dims.Vector(pod.Class.Requests), 1)
		s.Ports = append(s.Ports, pod.Class.HostPorts...)
	}
	daemons, ports, claiming := market.MissingDaemons(n, sets)
	s.Devices = s.Devices.WithDaemons(claiming)
	solve.Subtract(s.Free, m.Dims.Vector(daemons), 1)
	s.Ports = append(s.Ports, ports...)
	return s
}

// foresee works out what a claim without a machine offers, whichever machine it gets.
func foresee(m *market.Market, s *ExistingNode) {
	s.Free = make([]int64, m.Dims.Count())
	s.options = m.Those(func(mach *market.Machine) bool { return m.Sellers[mach.Pool].Name == s.Node.Pool })
	var zonal model.Term
	for _, c := range s.Node.Requirements {
		switch {
		case m.Zonal(c.Key):
			zonal = append(zonal, c)
		case c.Key == m.Keys.Tenancy: // any machine can have any
		case m.WellKnown.Has(c.Key):
			s.options.Intersect(m.Admitted(&c))
		}
	}
	s.zones = m.ZoneMask(zonal)
	requests := m.Dims.Vector(s.Node.Requests)
	first := true
	var rooms []*devices.Room
	for i := range s.options.All {
		mach := &m.Machines[i]
		if mach.Zones&s.zones == 0 || !solve.Fits(requests, m.Dims.Vector(model.ResourcesOf(mach.Typ.Allocatable))) {
			s.options.Clear(i)
			continue
		}
		for d, amount := range mach.Usable {
			if first || amount < s.Free[d] {
				s.Free[d] = amount
			}
		}
		for d, name := range m.Dims.Extended {
			if slices.Contains(mach.Typ.OnRequest, corev1.ResourceName(name)) && requests[market.DimExtended+d] == 0 {
				s.Free[market.DimExtended+d] = 0
			}
		}
		first = false
		rooms = append(rooms, m.NewDevices(i))
		for _, port := range mach.DaemonPorts {
			if !slices.Contains(s.Ports, port) {
				s.Ports = append(s.Ports, port)
			}
		}
	}
	s.Devices = devices.Either(rooms)
}

// admits reports whether a node that exists, or whose machine is known, admits the pod group's pods if there is room.
func (s *ExistingNode) admits(it *PodGroup) bool {
	return it.tolerated(model.LastingTaints(s.Node)) && slices.ContainsFunc(it.terms, func(t model.Term) bool {
		return t.Admits(s.Node.Labels) || !s.Node.Initialized && t.Normalized().Admits(s.Node.Labels)
	})
}

// willAdmit reports whether a claim will admit the pod group's pods, whichever machine it gets.
func (s *ExistingNode) willAdmit(it *PodGroup) bool {
	return !s.options.Empty() && it.tolerated(model.LastingTaints(s.Node)) && slices.ContainsFunc(it.Variants, func(v market.Variant) bool {
		return s.options.Within(v.Machines) && s.zones&^v.Zones == 0 && v.Custom.Admits(s.Node.Labels)
	})
}

// Room returns how many of the pod group's pods the node can hold, n at most.
func (s *ExistingNode) Room(it *PodGroup, n int) int {
	if s.Closed {
		return 0
	}
	n = min(n, solve.Times(it.Request, s.Free))
	if n > 0 && len(it.Class.HostPorts) > 0 {
		if market.PortsConflict(s.Ports, it.Class.HostPorts) {
			return 0
		}
		n = 1
	}
	if n == 0 || s.options != nil && !s.willAdmit(it) {
		return 0
	}
	return s.Devices.Holds(&it.Devices, s.Attach.Holds(&it.Volumes.Attach, it.Rules.SlotAllows(s.Tally, n, s.topology)))
}
