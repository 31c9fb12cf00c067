package plan

import "slices"

// runDaemons takes from every machine what the DaemonSets will run on it: exactly those whose tolerations, node
// selector and node affinity admit the machine. Startup taints keep none away for good. A DaemonSet that is bound to
// zones counts where the machine may come to one of them.
func (m *market) runDaemons(sets []*DaemonSet) {
	for _, set := range sets {
		request := m.dims.vector(set.Class.Requests)
		for i := range m.daemonMachines(set).all {
			take(m.machines[i].usable, request, 1)
			m.daemonPorts[i] = append(m.daemonPorts[i], set.Class.HostPorts...)
		}
	}
	for i := range m.machines {
		if slices.Min(m.machines[i].usable) < 0 {
			m.machines[i].usable[dimPods] = 0 // too small for its own DaemonSets: no pod may go there
		}
	}
}

// daemonMachines are the machines a DaemonSet runs on.
func (m *market) daemonMachines(set *DaemonSet) bitset {
	machines := newBitset(len(m.machines))
	for _, t := range termsOf(set.Class) {
		bare := Class{Tolerations: set.Class.Tolerations}
		machines.unite(m.variant(&bare, t, false).machines)
	}
	return machines
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
