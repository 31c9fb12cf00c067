package plan

// journal writes down what changes in groups and on slots, so that it can be undone at a cost that is in proportion to
// the changes. It is only kept while a fork of a field is being tried (field.go).
type journal struct {
	keeps   bool
	entries []entry
}

// entry is one change: of the pods of a group in a domain, or of something that undoes its own changes.
type entry struct {
	// A group's domain has n pods more. Without a domain it is the group's total that has.
	group  *group
	domain string
	n      int
	total  bool
	// A domain is there, or is not, that was not before.
	vanished bool

	other undoer
}

// undoer is a change that can be taken back when all that came after it has been.
type undoer interface{ undo() }

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
	case e.other != nil:
		e.other.undo()
	case e.vanished:
		e.group.domains[e.domain] = true
	case e.total:
		e.group.total -= e.n
	default:
		e.group.levelled(e.group.counts[e.domain], -e.n)
		if e.group.counts[e.domain] -= e.n; e.group.counts[e.domain] == 0 {
			delete(e.group.counts, e.domain)
		}
	}
}
