package activities

import (
	"slices"
	"sync"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// mergedShare divides a rate's period into the spans within which nodes are counted together. What began within one span
// counts from its latest moment. So a NodePool has about twenty entries for each rate, however long its period.
const mergedShare = 20

// counted returns those of the nodes that began to be disrupted which a rate still counts, their NodePool's or the
// cluster's. It keeps all nodes of a NodePool whose rate cannot be read, because the rate may count them once it can.
func (l *lately) counted(snapshot *plan.Snapshot, disrupted []workflows.Disrupted) []workflows.Disrupted {
	within := map[string]time.Duration{}
	for _, pool := range snapshot.NodePools {
		switch rate, err := pool.DisruptionRate(); {
		case err != nil:
			within[pool.Name] = karpv1.DisruptionRateMost
		case rate != nil:
			within[pool.Name] = rate.Within
		}
	}
	var counted []workflows.Disrupted
	last := map[string]int{} // the index in counted of a NodePool's last entry
	for _, d := range slices.SortedStableFunc(slices.Values(disrupted), func(a, b workflows.Disrupted) int { return a.At.Compare(b.At) }) {
		spans := []time.Duration{within[d.NodePool]}
		if l.rate != nil {
			spans = append(spans, l.rate.Within)
		}
		slices.Sort(spans)
		// Once the shorter rate no longer counts an entry, the longer rate decides how entries are merged.
		counts := slices.IndexFunc(spans, func(span time.Duration) bool { return d.At.Add(span).After(snapshot.Time) })
		if counts < 0 {
			continue
		}
		at, some := last[d.NodePool]
		if moment := spans[counts] / mergedShare; some && counted[at].At.Truncate(moment).Equal(d.At.Truncate(moment)) {
			counted[at].Nodes, counted[at].At = counted[at].Nodes+d.Nodes, d.At
			continue
		}
		last[d.NodePool] = len(counted)
		counted = append(counted, d)
	}
	return counted
}

// remembered returns the nodes that began to be disrupted as Disruption reports them. For a NodePool where this process
// knows of more nodes, it returns what this process knows: a Disruption that was terminated begins without them, and one
// that was reset has lost the last of them.
func remembered(said, known []workflows.Disrupted) []workflows.Disrupted {
	more := map[string]int{} // how many nodes of each NodePool this process knows beyond those that Disruption reports
	for _, d := range known {
		more[d.NodePool] += d.Nodes
	}
	for _, d := range said {
		more[d.NodePool] -= d.Nodes
	}
	var all []workflows.Disrupted
	for _, d := range said {
		if more[d.NodePool] <= 0 {
			all = append(all, d)
		}
	}
	for _, d := range known {
		if more[d.NodePool] > 0 {
			all = append(all, d)
		}
	}
	return all
}

// begun converts what Disruption remembers to what the planner reads.
func begun(disrupted []workflows.Disrupted) map[string][]karpv1.Begun {
	pools := map[string][]karpv1.Begun{}
	for _, d := range disrupted {
		pools[d.NodePool] = append(pools[d.NodePool], karpv1.Begun{Nodes: d.Nodes, At: d.At})
	}
	return pools
}

// lately is what the last evaluation of this process knew and began. The starter asks the planner with it, and so does not
// wake Disruption for nodes that a rate holds back. If another process evaluates, the starter wakes Disruption for nothing,
// but less and less often.
type lately struct {
	// rate is the cluster's rate; nil if it has none.
	rate *karpv1.DisruptionRate

	mu        sync.Mutex
	disrupted []workflows.Disrupted
	// known says that this process has evaluated, or has read what was known before it.
	known bool
}

// counts reports whether any rate counts the nodes that begin to be disrupted.
func (l *lately) counts(snapshot *plan.Snapshot) bool {
	return l.rate != nil || slices.ContainsFunc(snapshot.NodePools, func(pool *karpv1.NodePool) bool {
		rate, err := pool.DisruptionRate()
		return rate != nil || err != nil
	})
}

func (l *lately) set(disrupted []workflows.Disrupted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.disrupted, l.known = disrupted, true
}

// knows reports whether set has been called.
func (l *lately) knows() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known
}

func (l *lately) get() []workflows.Disrupted {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.disrupted
}
