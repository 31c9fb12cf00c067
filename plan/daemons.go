package plan

import (
	"fmt"
	"math"
	"slices"
)

// daemonLoad is what one DaemonSet takes of the machines it runs on.
type daemonLoad struct {
	request []int64
	ports   []HostPort
	// zones are those in which it runs, by machine.
	zones []uint64
}

// runDaemons takes from every machine what the DaemonSets will run on it: exactly those whose tolerations, node
// selector and node affinity admit the machine. Startup taints keep none away for good. Where a DaemonSet is bound to
// zones, the machine in these zones is another one than elsewhere.
func (m *market) runDaemons(sets []*DaemonSet) {
	loads := make([]daemonLoad, len(sets))
	for i, set := range sets {
		loads[i] = m.loadOf(set)
	}
	origins := m.splitByDaemons(loads)
	for i := range m.machines {
		mach := &m.machines[i]
		for l := range loads {
			if loads[l].zones[origins[i]]&mach.offered != 0 {
				take(mach.usable, loads[l].request, 1)
				m.daemonPorts[i] = append(m.daemonPorts[i], loads[l].ports...)
			}
		}
		if slices.Min(mach.usable) < 0 {
			mach.usable[dimPods] = 0 // too small for its own DaemonSets: no pod may go there
		}
	}
}

// loadOf finds out where a DaemonSet runs.
func (m *market) loadOf(set *DaemonSet) daemonLoad {
	load := daemonLoad{request: m.dims.vector(set.Class.Requests), ports: set.Class.HostPorts, zones: make([]uint64, len(m.machines))}
	bare := Class{Tolerations: set.Class.Tolerations}
	for _, t := range termsOf(set.Class) {
		v := m.variant(&bare, t, false)
		for i := range v.machines.all {
			load.zones[i] |= v.zones
		}
	}
	return load
}

// splitByDaemons makes several machines of each that leaves pods another room in some zones than in others, and returns
// which machine each was before.
func (m *market) splitByDaemons(loads []daemonLoad) (origins []int) {
	if !m.boundDaemons(loads) {
		for i := range m.machines {
			origins = append(origins, i)
		}
		return origins
	}
	machines, prices := make([]machine, 0, len(m.machines)), make([]float64, 0, len(m.zonePrice))
	for _, s := range m.sellers {
		first := len(machines)
		for i := s.first; i < s.last; i++ {
			for _, where := range m.alikeForDaemons(i, loads) {
				machines = append(machines, m.within(i, where))
				prices = append(prices, m.zonePrice[i*len(m.zones):(i+1)*len(m.zones)]...)
				origins = append(origins, i)
			}
		}
		s.first, s.last = first, len(machines)
	}
	// What was found out about machines is by their places.
	clear(m.columns)
	clear(m.sets)
	clear(m.sold)
	m.machines, m.zonePrice = machines, prices
	return origins
}

// boundDaemons says whether a DaemonSet runs in some of the zones only in which a machine is offered.
func (m *market) boundDaemons(loads []daemonLoad) bool {
	for i := range m.machines {
		if slices.ContainsFunc(loads, func(l daemonLoad) bool { return l.boundOn(i, &m.machines[i]) }) {
			return true
		}
	}
	return false
}

func (l *daemonLoad) boundOn(index int, mach *machine) bool {
	zones := l.zones[index] & mach.offered
	return zones != 0 && zones != mach.offered
}

// alikeForDaemons are sets of zones in each of which the DaemonSets take the same of a machine: one set where they do so
// everywhere.
func (m *market) alikeForDaemons(index int, loads []daemonLoad) []uint64 {
	if !slices.ContainsFunc(loads, func(l daemonLoad) bool { return l.boundOn(index, &m.machines[index]) }) {
		return []uint64{everywhere}
	}
	offered := m.machines[index].offered
	byTake := map[string]int{}
	var sets []uint64
	for z := range m.zones {
		if offered&(1<<z) == 0 {
			continue
		}
		taken, ports := make([]int64, m.dims.count()), []HostPort(nil)
		for l := range loads {
			if loads[l].zones[index]&(1<<z) != 0 {
				take(taken, loads[l].request, -1)
				ports = append(ports, loads[l].ports...)
			}
		}
		key := fmt.Sprint(taken, ports)
		at, known := byTake[key]
		if !known {
			at = len(sets)
			byTake[key] = at
			sets = append(sets, 0)
		}
		sets[at] |= 1 << z
	}
	return sets
}

// within is a machine as it is in some zones only.
func (m *market) within(index int, zones uint64) machine {
	mach := m.machines[index]
	if zones == everywhere {
		return mach
	}
	mach.where, mach.offered, mach.zones = zones, mach.offered&zones, mach.zones&zones
	mach.usable = slices.Clone(mach.usable)
	mach.price = math.Inf(1)
	for z := range m.zones {
		if mach.zones&(1<<z) != 0 {
			mach.price = min(mach.price, m.zonePrice[index*len(m.zones)+z])
		}
	}
	return mach
}

// admitsDaemon says whether a DaemonSet puts a pod on a node.
func admitsDaemon(n *Node, set *DaemonSet) bool {
	if repelledBy(lastingTaints(n), set.Class.Tolerations) != nil {
		return false
	}
	for _, t := range termsOf(set.Class) {
		if t.admits(n.Labels) {
			return true
		}
	}
	return false
}

// missingDaemons are what the DaemonSets will still put on a node: it joined a moment ago, or has not joined yet.
func missingDaemons(n *Node, sets []*DaemonSet) (Resources, []HostPort) {
	var sum Resources
	var ports []HostPort
	for _, set := range sets {
		if !runsDaemon(n, set) && admitsDaemon(n, set) {
			sum = sum.Add(set.Class.Requests)
			ports = append(ports, set.Class.HostPorts...)
		}
	}
	return sum, ports
}

func runsDaemon(n *Node, set *DaemonSet) bool {
	for _, pod := range n.Pods {
		if pod.Daemon && pod.OwnerName == set.Name && pod.Namespace == set.Namespace {
			return true
		}
	}
	return false
}
