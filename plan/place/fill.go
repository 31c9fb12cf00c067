package place

import (
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Onto puts the pod group's next n pods on an existing node.
func (d *Distribution) Onto(s *ExistingNode, it *PodGroup, n int) { d.put(s, it, it.take(n)...) }

// put puts some of a pod group's pods on an existing node.
func (d *Distribution) put(s *ExistingNode, it *PodGroup, pods ...*model.Pod) {
	for _, pod := range pods {
		d.Placements = append(d.Placements, model.Placement{Pod: pod, Node: s.Node.Key()})
	}
	d.fill(s, it, len(pods))
}

// fill takes the room of n pods on an existing node, and counts the pods.
func (d *Distribution) fill(s *ExistingNode, it *PodGroup, n int) {
	if d.Topology.Journal.Keeps {
		sh, ports, attach := it.shape, len(s.Ports), s.Attach
		d.Topology.Journal.Write(func() {
			solve.Subtract(s.Free, sh.Request, -n)
			sh.Rules.Count(s.Tally, -n)
			s.Ports, s.Attach = s.Ports[:ports], attach
		})
	}
	solve.Subtract(s.Free, it.Request, n)
	s.Ports = append(s.Ports, it.Class.HostPorts...)
	if !it.Volumes.Attach.None() {
		if d.Topology.Journal.Keeps {
			s.Attach = s.Attach.Clone()
		}
		s.Attach.Put(&it.Volumes.Attach, n)
	}
	if !it.Devices.None() {
		before, restore := s.Devices, d.Market.Devices.Keep()
		d.Topology.Journal.Write(func() {
			s.Devices = before
			restore()
		})
		_, left := s.Devices.Place(&it.Devices, n)
		s.Devices = left.Commit()
	}
	it.Rules.Count(s.Tally, n)
	d.Counted(s, it.Rules.Joins, n)
}

// Counted adds n pods on an existing node to groups.
func (d *Distribution) Counted(s *ExistingNode, joins []*rules.Group, n int) {
	for _, g := range joins {
		g.Add(n)
		if value, has := d.domainOf(s, g.Key); has && g.Includes(s.Node) {
			g.AddAt(value, n)
		}
	}
}
