package disrupt

import (
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

// NodePrices returns a function that says what a node costs per hour, in the currency of the region's prices, as far as that is
// known.
func NodePrices(in model.Input) func(n *model.Node) (price float64, known bool) {
	return newRates(&in).of
}
