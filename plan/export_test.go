package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/plan/disrupt"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// Names that only tests use.
type (
	Amount = model.Amount
	Mounts = model.Mounts
	Repair = lifecycle.Repair
)

// Field lets tests run trials.
type Field struct{ f *disrupt.Simulation }

// NewField makes a Field in which every node may be removed.
func NewField(in model.Input) Field { return Field{disrupt.NewSimulation(in, in.Snapshot.Nodes)} }

// Relocate tries to place some nodes' pods when at most so many claims may be bought.
func (f Field) Relocate(most int, nodes ...*model.Node) (p model.Plan, why string, ok bool) {
	claims, kept := f.f.Relocate(nodes, most, nil)
	if kept != nil {
		return model.Plan{}, kept.Message, false
	}
	return model.Plan{Placements: slices.Clone(f.f.Distribution.Placements), Claims: claims}, "", true
}

// Forget undoes the last trial.
func (f Field) Forget() { f.f.Rollback() }

// String lists everything that a trial may change.
func (f Field) String() string {
	var b strings.Builder
	for _, s := range f.f.Distribution.Existing {
		fmt.Fprintln(&b, s.Node.Key(), s.Free, s.Ports, s.Attach, s.Tally, s.Closed && s.Node.Initialized, f.f.Simulated[s.Node.Key()].Gone)
	}
	for _, g := range f.f.Distribution.Topology.Groups {
		fmt.Fprint(&b, g.Key, g.Total, g.Domains)
		for _, domain := range model.SortedKeys(g.Counts) {
			if g.Counts[domain] != 0 {
				fmt.Fprint(&b, " ", domain, g.Counts[domain])
			}
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintln(&b, f.f.Distribution.Market.Reservations)
	for _, s := range f.f.Distribution.Market.Sellers {
		fmt.Fprintln(&b, s.Budget)
	}
	return b.String()
}
