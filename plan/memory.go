package plan

import "slices"

// Memory evaluates one cluster again and again. It gives the answers that Disrupt gives; what becomes of the cluster without
// a node, it asks only where the answer may be another than the last time. Of the last evaluation that looked for nodes that
// are not used well enough it keeps the snapshot, and what the next one is compared with: some 3 KiB a node. The zero value
// remembers nothing yet. A Memory is not for concurrent use.
type Memory struct {
	answers *answers
	// purse is what limits and reservations left when answers were begun.
	purse purse
}

// Disrupt is Disrupt for a cluster that was looked at before. Snapshots should share the Nodes that have not changed.
func (m *Memory) Disrupt(in Input) Disruption {
	d := newDecision(in)
	d.memory = m
	found := d.decide()
	if m.answers != nil && m.answers.f == d.field {
		// What was decided is not what the next evaluation finds.
		m.answers.f.revert()
		m.answers.f.d.m.restore(m.purse)
		m.answers.f.retire()
	}
	return found
}

// recall are the answers that hold for a field in which nothing has been decided yet.
func (m *Memory) recall(f *field) *answers {
	if m == nil {
		return nil
	}
	m.answers, m.purse = carry(m.answers, f), f.d.m.purse()
	return m.answers
}

// field is the field of the last evaluation that asked one, if there is one.
func (m *Memory) field() *field {
	if m == nil || m.answers == nil {
		return nil
	}
	return m.answers.f
}

// retire drops what only forks need: the field is compared with the next one, and asked nothing more.
func (f *field) retire() {
	f.inDomain, f.shelves, f.openings, f.looks, f.kept = nil, nil, nil, nil, nil
	f.d.takers, f.d.places = nil, nil
	for _, s := range f.d.slots {
		s.rows = nil
	}
	for _, it := range f.items {
		for _, sh := range append(slices.Clip(it.shapes), it.shape) {
			if sh != nil {
				sh.known.takers, sh.known.cells = nil, nil
			}
		}
	}
}
