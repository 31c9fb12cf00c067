package disrupt

import (
	"maps"
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Allowance is what the budgets of a NodePool allow for one reason.
type Allowance struct {
	NodePool string
	Reason   karpv1.DisruptionReason
	// Left is how many more nodes may be disrupted now, Disrupting how many use up what is allowed.
	Left, Disrupting int
}

// Allowances returns what the budgets of all NodePools allow for the reasons that budgets may name, ordered by NodePool.
func Allowances(in model.Input) []Allowance {
	pools := make(map[string]*karpv1.NodePool, len(in.Snapshot.NodePools))
	for _, pool := range in.Snapshot.NodePools {
		pools[pool.Name] = pool
	}
	book := newBudgets(&in, pools)
	var all []Allowance
	for name := range pools {
		for _, reason := range []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonEmpty, karpv1.DisruptionReasonUnderutilized} {
			all = append(all, Allowance{name, reason, book.left(name, reason), book.pools[name].disrupting})
		}
	}
	slices.SortStableFunc(all, func(a, b Allowance) int { return strings.Compare(a.NodePool, b.NodePool) })
	return all
}

// Limit is a budget or a rate, and how far it is used up.
type Limit struct {
	// NodePool is whose it is; empty for the whole cluster.
	NodePool string
	// Rate says that it is a rate, which counts the nodes that began to be disrupted within its time. A budget counts those that
	// are being disrupted or are not Ready.
	Rate bool
	// Reason is what it is asked for; empty for a rate, which holds for all.
	Reason karpv1.DisruptionReason
	// Allowed is how many nodes it allows, Used how many it counts, and Left how many more may be disrupted.
	Allowed, Used, Left int
}

// Limits returns the budgets and rates of the whole cluster, and the rates of NodePools, as far as there are any. The budgets of
// NodePools are in Allowances.
func Limits(in model.Input) []Limit {
	pools := make(map[string]*karpv1.NodePool, len(in.Snapshot.NodePools))
	for _, pool := range in.Snapshot.NodePools {
		pools[pool.Name] = pool
	}
	book := newBudgets(&in, pools)
	var all []Limit
	for _, reason := range []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted, karpv1.DisruptionReasonEmpty, DisruptionReasonExpired, karpv1.DisruptionReasonUnderutilized} {
		if most := book.permission(book.cluster, reason).most; most < karpv1.Unbounded {
			used := book.cluster.disrupting
			all = append(all, Limit{Reason: reason, Allowed: most, Used: used, Left: max(0, most-used)})
		}
	}
	rate := func(pool string, rate *karpv1.DisruptionRate, nodes, left int) {
		if rate != nil {
			most := rate.Most(nodes)
			all = append(all, Limit{NodePool: pool, Rate: true, Allowed: most, Used: most - left, Left: left})
		}
	}
	rate("", in.Rate, book.cluster.nodes, book.rate.most)
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		own, _ := pools[name].DisruptionRate() // one that cannot be read allows nothing, and is a condition of its own
		rate(name, own, book.pools[name].nodes, book.pools[name].rate.most)
	}
	return all
}

// NodePrices returns a function that says what a node costs per hour, in the currency of the region's prices, as far as that is
// known.
func NodePrices(in model.Input) func(n *model.Node) (price float64, known bool) {
	return newRates(&in).of
}
