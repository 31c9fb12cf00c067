package disrupt

import (
	"cmp"
	"fmt"
	"slices"

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

// scored is the score of a command in one of the pools that weigh.
type scored struct {
	score float64
	// known is false where the price of a node is not known.
	known bool
}

// scores are those of taking some nodes away when it saves so many dollars per hour, in the pools of the nodes that weigh.
func (b *balance) scores(sources []*candidate, saves float64) []scored {
	price := 0.0
	for _, c := range sources {
		price += c.price
	}
	var found []scored
	seen := map[string]bool{}
	for _, c := range sources {
		pool := c.node.Pool
		if b.totals[pool] == nil || seen[pool] {
			continue
		}
		seen[pool] = true
		own, disruption, known := 0.0, 0.0, true
		for _, other := range sources {
			if other.node.Pool == pool {
				known = known && other.known
				own += other.price
				disruption += other.cost
			}
		}
		share := 0.0
		if price > 0 {
			share = saves * own / price
		}
		found = append(found, scored{b.score(pool, share, disruption), known})
	}
	return found
}

// approves says whether taking some nodes away is worth it when it saves so many dollars per hour, and if not, what
// their score is. Pools of other policies always approve.
func (b *balance) approves(sources []*candidate, saves float64) (ok bool, why string) {
	for _, in := range b.scores(sources, saves) {
		switch {
		case !in.known:
			return false, "what it costs is not known, so that consolidationPolicy Balanced cannot weigh it"
		case in.score < 1.0/balancedK:
			return false, fmt.Sprintf("it would save $%.4f an hour, which scores %.2f, and consolidationPolicy Balanced demands %.2f", saves, in.score, 1.0/balancedK)
		}
	}
	return true, ""
}

// praise is what the lowest score adds to the reasons for taking some nodes away; nothing where no pool weighs.
func (b *balance) praise(sources []*candidate, saves float64) string {
	scores := b.scores(sources, saves)
	if len(scores) == 0 {
		return ""
	}
	least := slices.MinFunc(scores, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	return fmt.Sprintf(", which scores %.2f where consolidationPolicy Balanced demands %.2f", least.score, 1.0/balancedK)
}

// hopeless says that a node would score too little even if nothing had to be bought for its pods.
func (b *balance) hopeless(c *candidate) (why string, hopeless bool) {
	if b.totals[c.node.Pool] == nil || !c.known {
		return "", false
	}
	score := b.score(c.node.Pool, c.price, c.cost)
	if score >= 1.0/balancedK {
		return "", false
	}
	return fmt.Sprintf("it costs $%.4f an hour, and to save all of that would score %.2f, where consolidationPolicy Balanced demands %.2f", c.price, score, 1.0/balancedK), true
}

// score is the part of a pool's cost that is saved for the part of its disruption.
func (b *balance) score(pool string, saves, disruption float64) float64 {
	total := b.totals[pool]
	if total.price <= 0 || total.disruption <= 0 || disruption <= 0 {
		return 0
	}
	return (saves / total.price) / (disruption / total.disruption)
}
