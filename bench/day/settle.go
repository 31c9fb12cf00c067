package day

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/duel"
)

// Group are pods of one size, some of which go.
type Group struct {
	Name string
	// CPU is in thousandths of a core, Memory in MiB.
	CPU, Memory int64
	// Before and After are how many pods there are.
	Before, After int
}

// Node is a node that is there at the beginning, with so many pods of each Group, by name.
type Node struct {
	Type string         `json:"type"`
	Pods map[string]int `json:"pods"`
}

// Settled is what became of a cluster from which pods were taken.
type Settled struct {
	// Before and After are what its nodes cost per hour.
	Before, After float64
	// NodesBefore and NodesAfter are how many there were.
	NodesBefore, NodesAfter int
	// Steps is how many steps it took until nothing more was wanted.
	Steps int
	Result
}

// Settle brings pods to an empty cluster or, where there is a layout, to the nodes they are on there; takes some away, and
// consolidates until nothing more is wanted.
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

// lay makes the nodes of a layout, with their pods.
func (w *world) lay(layout []Node) error {
	for _, n := range layout {
		m, err := w.buy(duel.Machine{Types: []string{n.Type}, Zones: []string{w.options.Catalogue[0].Offerings[0].Zone}, CapacityTypes: []string{karpv1.CapacityTypeOnDemand}})
		if err != nil {
			return err
		}
		var keys []string
		left := maps.Clone(n.Pods)
		for _, p := range w.waiting {
			if app := p.Labels["app"]; left[app] > 0 {
				left[app]--
				keys = append(keys, duel.Key(p))
			}
		}
		w.put(m, keys)
	}
	return nil
}

// put gives the pods a machine was bought for that machine: the kube-scheduler is told so.
func (w *world) put(m *machine, keys []string) {
	meant := make(map[string]bool, len(keys))
	for _, key := range keys {
		meant[key] = true
	}
	left := w.waiting[:0:0]
	for _, p := range w.waiting {
		if meant[duel.Key(p)] && m.fits(p) {
			m.take(p, w.now)
			continue
		}
		left = append(left, p)
	}
	w.waiting = slices.Clip(left)
}
