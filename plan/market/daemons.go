package market

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
)

// daemonLoad is what one DaemonSet takes of the machines it runs on.
type daemonLoad struct {
	request []int64
	ports   []model.HostPort
	// zones are those in which it runs, by machine.
	zones []uint64
}

// runDaemons takes from every machine what the DaemonSets will run on it: exactly those whose tolerations, node
// selector and node affinity admit the machine. Startup taints keep none away for good. Where a DaemonSet is bound to
// zones, the machine in these zones is another one than elsewhere.
func runDaemons(m *Market, sets []*model.DaemonSet) {
	loads := make([]daemonLoad, len(sets))
	for i, set := range sets {
		loads[i] = loadOf(m, set)
	}
	origins := splitByDaemons(m, loads)
	for i := range m.Machines {
		mach := &m.Machines[i]
		for l := range loads {
			if loads[l].zones[origins[i]]&mach.Offered != 0 {
				Take(mach.Usable, loads[l].request, 1)
				m.DaemonPorts[i] = append(m.DaemonPorts[i], loads[l].ports...)
			}
		}
		if slices.Min(mach.Usable) < 0 {
			mach.Usable[dimPods] = 0 // too small for its own DaemonSets: no pod may go there
		}
	}
}

// loadOf finds out where a DaemonSet runs.
func loadOf(m *Market, set *model.DaemonSet) daemonLoad {
	load := daemonLoad{request: m.Dims.Vector(set.Class.Requests), ports: set.Class.HostPorts, zones: make([]uint64, len(m.Machines))}
	bare := model.Class{Tolerations: set.Class.Tolerations}
	for _, t := range model.TermsOf(set.Class) {
		v := m.Variant(&bare, t, false)
		for i := range v.Machines.All {
			load.zones[i] |= v.Zones
		}
	}
	return load
}

// splitByDaemons makes several machines of each that leaves pods another room in some zones than in others, and returns
// which machine each was before.
func splitByDaemons(m *Market, loads []daemonLoad) (origins []int) {
	if !boundDaemons(m, loads) {
		for i := range m.Machines {
			origins = append(origins, i)
		}
		return origins
	}
	machines, prices := make([]Machine, 0, len(m.Machines)), make([]float64, 0, len(m.ZonePrice))
	for _, s := range m.Sellers {
		first := len(machines)
		for i := s.First; i < s.Last; i++ {
			for _, where := range alikeForDaemons(m, i, loads) {
				machines = append(machines, within(m, i, where))
				prices = append(prices, m.ZonePrice[i*len(m.Zones):(i+1)*len(m.Zones)]...)
				origins = append(origins, i)
			}
		}
		s.First, s.Last = first, len(machines)
	}
	// What was found out about machines is by their places.
	clear(m.columns)
	clear(m.sets)
	clear(m.sold)
	m.Machines, m.ZonePrice = machines, prices
	return origins
}

// boundDaemons says whether a DaemonSet runs in some of the zones only in which a machine is offered.
func boundDaemons(m *Market, loads []daemonLoad) bool {
	for i := range m.Machines {
		if slices.ContainsFunc(loads, func(l daemonLoad) bool { return l.boundOn(i, &m.Machines[i]) }) {
			return true
		}
	}
	return false
}

func (l *daemonLoad) boundOn(index int, mach *Machine) bool {
	zones := l.zones[index] & mach.Offered
	return zones != 0 && zones != mach.Offered
}

// alikeForDaemons are sets of zones in each of which the DaemonSets take the same of a machine: one set where they do so
// everywhere.
func alikeForDaemons(m *Market, index int, loads []daemonLoad) []uint64 {
	if !slices.ContainsFunc(loads, func(l daemonLoad) bool { return l.boundOn(index, &m.Machines[index]) }) {
		return []uint64{Everywhere}
	}
	offered := m.Machines[index].Offered
	byTake := map[string]int{}
	var sets []uint64
	for z := range m.Zones {
		if offered&(1<<z) == 0 {
			continue
		}
		taken, ports := make([]int64, m.Dims.Count()), []model.HostPort(nil)
		for l := range loads {
			if loads[l].zones[index]&(1<<z) != 0 {
				Take(taken, loads[l].request, -1)
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
func within(m *Market, index int, zones uint64) Machine {
	mach := m.Machines[index]
	if zones == Everywhere {
		return mach
	}
	mach.Where, mach.Offered, mach.Zones = zones, mach.Offered&zones, mach.Zones&zones
	mach.Usable = slices.Clone(mach.Usable)
	mach.Price = math.Inf(1)
	for z := range m.Zones {
		if mach.Zones&(1<<z) != 0 {
			mach.Price = min(mach.Price, m.ZonePrice[index*len(m.Zones)+z])
		}
	}
	return mach
}

// admitsDaemon says whether a DaemonSet puts a pod on a node.
func admitsDaemon(n *model.Node, set *model.DaemonSet) bool {
	if model.RepelledBy(model.LastingTaints(n), set.Class.Tolerations) != nil {
		return false
	}
	for _, t := range model.TermsOf(set.Class) {
		if t.Admits(n.Labels) {
			return true
		}
	}
	return false
}

// MissingDaemons are what the DaemonSets will still put on a node: it joined a moment ago, or has not joined yet.
func MissingDaemons(n *model.Node, sets []*model.DaemonSet) (model.Resources, []model.HostPort) {
	var sum model.Resources
	var ports []model.HostPort
	for _, set := range sets {
		if !runsDaemon(n, set) && admitsDaemon(n, set) {
			sum = sum.Add(set.Class.Requests)
			ports = append(ports, set.Class.HostPorts...)
		}
	}
	return sum, ports
}

func runsDaemon(n *model.Node, set *model.DaemonSet) bool {
	for _, pod := range n.Pods {
		if pod.Daemon && pod.OwnerName == set.Name && pod.Namespace == set.Namespace {
			return true
		}
	}
	return false
}
