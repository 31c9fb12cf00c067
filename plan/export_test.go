package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Field lets tests try forks.
type Field struct{ f *field }

// NewField makes a field of which every node may go.
func NewField(in Input) Field { return Field{newField(in, in.Snapshot.Nodes)} }

// Relocate tries what becomes of some nodes' pods when at most so many claims may be bought.
func (f Field) Relocate(most int, nodes ...*Node) (p Plan, why string, ok bool) {
	found, why, _ := f.f.relocate(nodes, purchase{most: most})
	if found == nil {
		return Plan{}, why, false
	}
	return Plan{Placements: slices.Clone(found.placements), Claims: found.claims}, "", true
}

// Forget takes the last try back.
func (f Field) Forget() { f.f.rollback() }

// String is all that a fork may change.
func (f Field) String() string {
	var b strings.Builder
	for _, s := range f.f.d.slots {
		fmt.Fprintln(&b, s.node.Key(), s.free, s.ports, s.attach, s.tally, s.closed && s.node.Initialized, f.f.stands[s.node.Key()].gone)
	}
	for _, g := range f.f.d.t.groups {
		fmt.Fprint(&b, g.key, g.total, g.domains)
		for _, domain := range sortedKeys(g.counts) {
			if g.counts[domain] != 0 {
				fmt.Fprint(&b, " ", domain, g.counts[domain])
			}
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, f.f.d.m.purse())
	return b.String()
}
