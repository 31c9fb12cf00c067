package plan

// slotFill is n more pods on a slot, with these requests and rules, beside whom it had this many ports and this room to
// attach.
type slotFill struct {
	slot    *slot
	request []int64
	joins   []*group
	n       int
	ports   int
	attach  *attachRoom
}

func (c *slotFill) undo() {
	s := c.slot
	take(s.free, c.request, -c.n)
	s.ports, s.attach = s.ports[:c.ports], c.attach
	for _, g := range c.joins {
		if g.host >= 0 {
			s.tally[g.host] -= int32(c.n)
		}
	}
	s.changed()
}

// slotClosing is a slot that was closed.
type slotClosing struct{ slot *slot }

func (c slotClosing) undo() { c.slot.open() }
