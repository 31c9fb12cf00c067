package disrupt

import (
	"fmt"
	"math"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// balancedK is how many times the pool's share of disruption may be its share of savings under the policy Balanced.
// Karpenter calls the policy Balanced (k=2).
const balancedK = 2

// balance weighs what a command saves against what it disrupts, for NodePools of the policy Balanced. With S the part of
// the pool's cost that is saved and D the part of its disruption that is caused,
//
//	S = savings / cost of all the pool's nodes    D = DisruptionCost of the nodes that go / that of all the pool's nodes
//
// the score of a command is S/D, and has to be 1/k at least in every such pool that nodes go from. Savings are shared out
// to the pools by what their nodes cost. The formula is Karpenter's; what a pool has in all is reckoned once, when the
// evaluation begins.
type balance struct {
	// totals are those of the pools that weigh at all.
	totals map[string]*poolTotal
}

type poolTotal struct{ price, disruption float64 }

func newBalance(snapshot *model.Snapshot, pools map[string]*karpv1.NodePool, rates *rates) *balance {
	b := &balance{totals: map[string]*poolTotal{}}
	for name, pool := range pools {
		if pool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidationPolicyBalanced {
			b.totals[name] = &poolTotal{}
		}
	}
	if len(b.totals) == 0 {
		return b
	}
	for _, n := range snapshot.Nodes {
		if total := b.totals[n.Pool]; total != nil && n.Managed() {
			price, _ := rates.of(n)
			total.price += price
			total.disruption += lifecycle.DisruptionCost(n)
		}
	}
	return b
}

// lowest is the lowest score of taking some nodes away when it saves so many dollars per hour, of those in the pools that
// weigh; infinite where none does. It is not known where the price of a node is not.
func (b *balance) lowest(sources []*candidate, saves float64) (score float64, known bool) {
	price, known, parts := 0.0, true, map[string]poolTotal{}
	for _, c := range sources {
		price += c.price
		if b.totals[c.node.Pool] != nil {
			part := parts[c.node.Pool]
			parts[c.node.Pool] = poolTotal{part.price + c.price, part.disruption + c.cost}
			known = known && c.known
		}
	}
	score = math.Inf(1)
	for pool, part := range parts {
		share := 0.0
		if price > 0 {
			share = saves * part.price / price
		}
		score = min(score, b.score(pool, share, part.disruption))
	}
	return score, known
}

// demurs says why taking some nodes away is not worth it when it saves so many dollars per hour; nothing where it is. Pools
// of other policies never demur.
func (b *balance) demurs(sources []*candidate, saves float64) string {
	switch score, known := b.lowest(sources, saves); {
	case !known:
		return "what it costs is not known, so that consolidationPolicy Balanced cannot weigh it"
	case score < 1.0/balancedK:
		return fmt.Sprintf("it would save $%.4f an hour, which scores %.2f, and consolidationPolicy Balanced demands %.2f", saves, score, 1.0/balancedK)
	}
	return ""
}

// praise is what the lowest score adds to the reasons for taking some nodes away; nothing where no pool weighs.
func (b *balance) praise(sources []*candidate, saves float64) string {
	score, _ := b.lowest(sources, saves)
	if math.IsInf(score, 1) {
		return ""
	}
	return fmt.Sprintf(", which scores %.2f where consolidationPolicy Balanced demands %.2f", score, 1.0/balancedK)
}

// score is the part of a pool's cost that is saved for the part of its disruption.
func (b *balance) score(pool string, saves, disruption float64) float64 {
	total := b.totals[pool]
	if total.price <= 0 || total.disruption <= 0 || disruption <= 0 {
		return 0
	}
	return (saves / total.price) / (disruption / total.disruption)
}
