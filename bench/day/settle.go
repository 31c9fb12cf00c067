package day

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
)

// Group is a set of pods of one size, some of which are removed.
type Group struct {
	Name string
	// CPU is in thousandths of a core, Memory in MiB.
	CPU, Memory int64
	// Before and After are the numbers of pods.
	Before, After int
}

// Node is a node that exists at the beginning, with its number of pods of each Group, by name.
type Node struct {
	Type string         `json:"type"`
	Pods map[string]int `json:"pods"`
}

// Settled is the outcome for a cluster from which pods were removed.
type Settled struct {
	// Before and After are what the nodes cost per hour.
	Before, After float64
	// NodesBefore and NodesAfter are the numbers of nodes.
	NodesBefore, NodesAfter int
	// Steps is the number of steps until nothing more was wanted.
	Steps int
	Result
}

// Settle brings pods to an empty cluster or, if there is a layout, to the nodes it lists; removes some, and consolidates
// until nothing more is wanted.
func Settle(ctx context.Context, o Options, groups []Group, layout []Node, consolidate Consolidator) (Settled, error) {
	w := newWorld(o)
	w.demand = nil
	for _, g := range groups {
		w.demand = append(w.demand, &demand{name: g.Name, cpu: g.CPU, memory: g.Memory})
	}
	waves := max(1, o.Waves)
	for wave := range waves {
		for i, g := range groups {
			w.demand[i].come(w, g.Before*(wave+1)/waves-g.Before*wave/waves)
		}
		if err := w.lay(layout); err != nil {
			return Settled{}, err
		}
		if err := w.place(ctx); err != nil {
			return Settled{}, err
		}
	}
	s := Settled{Before: w.price(), NodesBefore: len(w.nodes)}
	begin, idle := w.now, w.now
	for s.Steps = 1; w.now.Sub(idle) <= o.Going+o.ConsolidateAfter+o.Step; s.Steps++ {
		w.now = w.now.Add(o.Step)
		going := min(1, float64(w.now.Sub(begin))/float64(max(1, o.Going)))
		for i, g := range groups {
			if surplus := len(w.demand[i].pods) - (g.Before - int(going*float64(g.Before-g.After))); surplus > 0 {
				w.retire(w.demand[i], surplus)
			}
		}
		decided := w.result.Decisions
		if err := w.consolidate(ctx, consolidate); err != nil {
			return s, err
		}
		if w.result.Decisions > decided {
			idle = w.now
		}
		if w.now.Sub(begin) > time.Hour {
			return s, fmt.Errorf("nodes are still taken away after %d steps", s.Steps)
		}
	}
	s.After, s.NodesAfter, s.Result = w.price(), len(w.nodes), w.result
	return s, nil
}

// lay creates the nodes of a layout, with their pods.
func (w *world) lay(layout []Node) error {
	for _, n := range layout {
		m, err := w.buy(compare.Machine{Types: []string{n.Type}, Zones: []string{w.options.Catalogue[0].Offerings[0].Zone}, CapacityTypes: []string{karpv1.CapacityTypeOnDemand}})
		if err != nil {
			return err
		}
		var keys []string
		left := maps.Clone(n.Pods)
		for _, p := range w.waiting {
			if app := p.Labels["app"]; left[app] > 0 {
				left[app]--
				keys = append(keys, compare.Key(p))
			}
		}
		w.put(m, keys)
	}
	return nil
}

// put binds pods to the machine bought for them, as if they had been nominated to it.
func (w *world) put(m *machine, keys []string) {
	meant := make(map[string]bool, len(keys))
	for _, key := range keys {
		meant[key] = true
	}
	left := w.waiting[:0:0]
	for _, p := range w.waiting {
		if meant[compare.Key(p)] && m.fits(p) {
			m.take(p, w.now)
			continue
		}
		left = append(left, p)
	}
	w.waiting = slices.Clip(left)
}
