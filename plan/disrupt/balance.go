package disrupt

import (
	"math"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// balancedK is the largest ratio of disruption to savings under the policy Balanced, each as a share of the pool. Karpenter
// calls the policy Balanced (k=2).
const balancedK = 2

// A replacement is worth it if it saves at least minPart of the price of what it replaces, or, for each pod that it moves,
// at least minWorth of what the cluster costs per pod.
const (
	minPart  = 0.2
	minWorth = 0.25
)

// balance weighs what a command saves against what it disrupts. It weighs the pods that replacements move, and in NodePools
// of the policy Balanced everything. With S the part of the pool's cost that is saved and D the part of its disruption that
// is caused,
//
//	S = savings / cost of all the pool's nodes    D = DisruptionCost of the removed nodes / that of all the pool's nodes
//
// the score of a command is S/D, and has to be at least 1/k in every such pool that loses nodes. Savings are divided among
// the pools by the cost of their nodes. The formula is Karpenter's; the totals of a pool are computed once, when the
// evaluation begins.
type balance struct {
	// totals are those of the pools of the policy Balanced.
	totals map[string]*poolTotal
	// average is what the cluster costs, in dollars per hour, per unit of the cost of evicting its pods.
	average float64
}

type poolTotal struct{ price, disruption float64 }

func newBalance(snapshot *model.Snapshot, pools map[string]*karpv1.NodePool, rates rates) *balance {
	b := &balance{totals: map[string]*poolTotal{}}
	for name, pool := range pools {
		if pool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidationPolicyBalanced {
			b.totals[name] = &poolTotal{}
		}
	}
	all, evictions := 0.0, 0.0
	for _, n := range snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		price, known := rates.of(n)
		cost := lifecycle.DisruptionCost(n)
		if known {
			all += price
			evictions += cost - 1
		}
		if total := b.totals[n.Pool]; total != nil {
			total.price += price
			total.disruption += cost
		}
	}
	b.average = all / max(evictions, 1)
	return b
}

// worth says whether a replacement saves enough for what it moves.
func (b *balance) worth(sources []*candidate, saves float64) bool {
	price, evictions := 0.0, 0.0
	for _, c := range sources {
		price += c.price
		evictions += c.cost - 1
	}
	return saves > 0 && (saves >= minPart*price || saves >= minWorth*b.average*evictions)
}

// scores returns the scores, by NodePool of the policy Balanced, of removing some nodes and saving this many dollars per
// hour. They are not known if the price of a node in such a pool is not known.
func (b *balance) scores(sources []*candidate, saves float64) (scores map[string]float64, known bool) {
	price, known, parts := 0.0, true, map[string]poolTotal{}
	for _, c := range sources {
		price += c.price
		if b.totals[c.node.Pool] != nil {
			part := parts[c.node.Pool]
			parts[c.node.Pool] = poolTotal{part.price + c.price, part.disruption + c.cost}
			known = known && c.known
		}
	}
	scores = map[string]float64{}
	for pool, part := range parts {
		total := b.totals[pool]
		if scores[pool] = 0; part.price != 0 {
			scores[pool] = saves * part.price / price / total.price / (part.disruption / total.disruption)
		}
	}
	return scores, known
}

// lowest returns the lowest of the scores; infinite if no node is in a NodePool of the policy Balanced.
func (b *balance) lowest(sources []*candidate, saves float64) (score float64, known bool) {
	scores, known := b.scores(sources, saves)
	score = math.Inf(1)
	for _, of := range scores {
		score = min(score, of)
	}
	return score, known
}

// demurs says why removing some nodes is not worth it if that saves this many dollars per hour; nil if it is worth it.
// Pools of other policies never object.
func (b *balance) demurs(sources []*candidate, saves float64) *model.Verdict {
	switch score, known := b.lowest(sources, saves); {
	case !known:
		return stays(model.CausePolicy, "what it costs is not known, so that consolidationPolicy Balanced cannot weigh it")
	case score < 1.0/balancedK:
		return stays(model.CausePolicy, "it would save %s an hour, which scores %.2f, and consolidationPolicy Balanced demands %.2f", cloud.Money(zoneOf(sources), saves), score, 1.0/balancedK)
	}
	return nil
}
