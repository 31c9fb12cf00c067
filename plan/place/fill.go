package place

import (
	"github.com/tenon-sh/tenon/plan/model"
	"github.com/tenon-sh/tenon/plan/rules"
	"github.com/tenon-sh/tenon/plan/solve"
)

// Onto puts the pod group's next n pods on an existing node.
func (d *Distribution) Onto(s *ExistingNode, it *PodGroup, n int) {
	for _, pod := range it.take(n) {
		d.Placements = append(d.Placements, model.Placement{Pod: pod, Node: s.Node.Key()})
	}
	d.fill(s, it, n)
}

// fill takes n pods' room on an existing node, and counts them.
func (d *Distribution) fill(s *ExistingNode, it *PodGroup, n int) {
	if d.Topology.Journal.Keeps {
		d.Topology.Journal.Write((&nodeFill{node: s, request: it.Request, joins: it.Rules.Joins, n: n, ports: len(s.Ports), attach: s.Attach}).Undo)
	}
	solve.Subtract(s.Free, it.Request, n)
	s.Ports = append(s.Ports, it.Class.HostPorts...)
	if !it.Volumes.Attach.None() {
		if d.Topology.Journal.Keeps {
			s.Attach = s.Attach.Clone()
		}
		s.Attach.Put(&it.Volumes.Attach, n)
	}
	it.Rules.Count(s.Tally, n)
	s.changed()
	d.Counted(s, it.Rules.Joins, n)
}

// Counted notes that groups have n pods more on an existing node.
func (d *Distribution) Counted(s *ExistingNode, joins []*rules.Group, n int) {
	for _, g := range joins {
		g.Add(n)
		if value, has := d.domainOf(s, g.Key); has && (g.Included == nil || g.Included(s.Node)) {
			g.AddAt(value, n)
		}
	}
}

// nodeFill is n more pods on an existing node, with these requests and rules, beside whom it had this many ports and this
// room to attach.
type nodeFill struct {
	node    *ExistingNode
	request []int64
	joins   []*rules.Group
	n       int
	ports   int
	attach  *rules.AttachmentRoom
}

// Undo takes the change back.
func (c *nodeFill) Undo() {
	s := c.node
	solve.Subtract(s.Free, c.request, -c.n)
	s.Ports, s.Attach = s.Ports[:c.ports], c.attach
	for _, g := range c.joins {
		if g.Host >= 0 {
			s.Tally[g.Host] -= int32(c.n)
		}
	}
	s.changed()
}
