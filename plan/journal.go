package plan

// journal writes down what changes on slots and in groups, so that it can be undone at a cost that is in proportion to
// the changes. It is only kept while a fork of a field is being tried (field.go).
type journal struct {
	keeps   bool
	entries []entry
}

// entry is one change: of the pods of a group in a domain, or of what is free on a slot.
type entry struct {
	// A group's domain has n pods more. Without a domain it is the group's total that has.
	group  *group
	domain string
	n      int
	total  bool
	// A domain is there, or is not, that was not before.
	vanished bool

	// On a slot, n more pods with these requests and rules, beside whom it had this many ports and this room to attach.
	slot    *slot
	request []int64
	joins   []*group
	ports   int
	attach  *attachRoom
	// A slot was closed.
	closed bool
}

func (j *journal) write(e entry) {
	if j.keeps {
		j.entries = append(j.entries, e)
	}
}

// undo takes back what was written after so many entries.
func (j *journal) undo(after int) {
	for i := len(j.entries) - 1; i >= after; i-- {
		j.entries[i].undo()
	}
	clear(j.entries[after:])
	j.entries = j.entries[:after]
}

func (e *entry) undo() {
	switch {
	case e.vanished:
		e.group.domains[e.domain] = true
	case e.total:
		e.group.total -= e.n
	case e.group != nil:
		if e.group.counts[e.domain] -= e.n; e.group.counts[e.domain] == 0 {
			delete(e.group.counts, e.domain)
		}
	case e.closed:
		e.slot.open()
	default:
		s := e.slot
		take(s.free, e.request, -e.n)
		s.ports, s.attach = s.ports[:e.ports], e.attach
		for _, g := range e.joins {
			if g.host >= 0 {
				s.tally[g.host] -= int32(e.n)
			}
		}
		s.changed()
	}
}
