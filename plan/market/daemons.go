package market

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/solve"
)

// daemonLoad is what one DaemonSet takes from the machines it runs on.
type daemonLoad struct {
	request []int64
	ports   []model.HostPort
	// claiming is the DaemonSet if its pods claim devices.
	claiming []*model.DaemonSet
	// zones are those in which it runs, by machine.
	zones []uint64
}

// runDaemons subtracts from every machine what the DaemonSets that will run on it take: exactly those whose tolerations,
// node selector and node affinity admit the machine. Startup taints keep none away permanently. Where a DaemonSet is bound
// to zones, the machine is split: in these zones it is a different one than elsewhere.
func runDaemons(m *Market, sets []*model.DaemonSet) {
	if len(sets) == 0 {
		return
	}
	loads := make([]daemonLoad, len(sets))
	for i, set := range sets {
		loads[i] = loadOf(m, set)
	}
	machines := make([]Machine, 0, len(m.Machines))
	for _, s := range m.Sellers {
		first := len(machines)
		for i := s.First; i < s.Last; i++ {
			machines = append(machines, withDaemons(m, i, loads)...)
		}
		s.First, s.Last = first, len(machines)
	}
	m.Machines = machines
	// The cached sets refer to machines by index.
	m.admitted, m.available, m.own = nil, nil, nil
}

// loadOf finds out where a DaemonSet runs.
func loadOf(m *Market, set *model.DaemonSet) daemonLoad {
	load := daemonLoad{request: m.Dims.Vector(set.Class.Requests), ports: set.Class.HostPorts, zones: make([]uint64, len(m.Machines))}
	if set.Claims != nil {
		load.claiming = []*model.DaemonSet{set}
	}
	bare := model.Class{Tolerations: set.Class.Tolerations}
	for _, t := range model.TermsOf(set.Class) {
		v := m.Variant(&bare, t, false)
		for i := range v.Machines.All {
			load.zones[i] |= v.Zones
		}
	}
	return load
}

// withDaemons returns a machine with the DaemonSets running on it: several if they leave pods different room in different
// zones.
func withDaemons(m *Market, index int, loads []daemonLoad) []Machine {
	var made []Machine
	for zone := range (Bitset{m.Machines[index].Offered}).All {
		mach := m.Machines[index]
		mach.Usable, mach.Where = slices.Clone(mach.Usable), 0
		for i := range loads {
			if loads[i].zones[index]&(1<<zone) != 0 {
				solve.Subtract(mach.Usable, loads[i].request, 1)
				mach.DaemonPorts = append(mach.DaemonPorts, loads[i].ports...)
				mach.Claiming = append(mach.Claiming, loads[i].claiming...)
			}
		}
		at := slices.IndexFunc(made, func(other Machine) bool {
			return slices.Equal(other.Usable, mach.Usable) && slices.Equal(other.DaemonPorts, mach.DaemonPorts) && slices.Equal(other.Claiming, mach.Claiming)
		})
		if at < 0 {
			at, made = len(made), append(made, mach)
		}
		made[at].Where |= 1 << zone
	}
	for i := range made {
		mach := &made[i]
		if slices.Min(mach.Usable) < 0 {
			mach.Usable[dimPods] = 0 // too small for its own DaemonSets: no pod may run there
		}
		if len(made) == 1 {
			mach.Where = Everywhere
		}
		mach.Offered, mach.Zones = mach.Offered&mach.Where, mach.Zones&mach.Where
		mach.Price = mach.lowest(Everywhere)
	}
	return made
}

// MissingDaemons returns the requests and host ports of the DaemonSets that will still start on a node, because it joined a
// moment ago or has not joined yet, and those of them whose pods claim devices.
func MissingDaemons(n *model.Node, sets []*model.DaemonSet) (sum model.Resources, ports []model.HostPort, claiming []*model.DaemonSet) {
	for _, set := range sets {
		runs := slices.ContainsFunc(n.Pods, func(pod *model.Pod) bool {
			return pod.Daemon && pod.OwnerName == set.Name && pod.Namespace == set.Namespace
		})
		admits := func(t model.Term) bool { return t.Admits(n.Labels) }
		if !runs && model.RepelledBy(model.LastingTaints(n), set.Class.Tolerations) == nil && slices.ContainsFunc(model.TermsOf(set.Class), admits) {
			sum = sum.Add(set.Class.Requests)
			ports = append(ports, set.Class.HostPorts...)
			if set.Claims != nil {
				claiming = append(claiming, set)
			}
		}
	}
	return sum, ports, claiming
}
