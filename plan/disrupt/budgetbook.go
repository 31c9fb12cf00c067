package disrupt

import (
	"strings"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// budgets tracks what the budgets of NodePools allow across all commands of one evaluation. Nodes that are leaving or not
// Ready when the evaluation begins count as well, whoever caused it.
type budgets struct {
	now   time.Time
	pools map[string]*poolBudget
	rate  permission // what the rate of the whole cluster still allows to begin
	// cluster is the account of all pools together. Its pool has the budgets of the whole cluster.
	cluster *poolBudget
}

// poolBudget is the account of one pool.
type poolBudget struct {
	pool *karpv1.NodePool
	// nodes are those that percentages refer to, disrupting those that use up what is allowed, claims all that exist or are
	// planned.
	nodes, disrupting, claims int
	allowed                   map[karpv1.DisruptionReason]permission
	// waits says that the pool wants one step at a time, stepped that it has had one.
	waits, stepped bool
	rate           permission // what the pool's rate still allows to begin
}

// permission is what a pool's budgets allow for one reason, or what a rate allows.
type permission struct {
	most int
	err  error
	// opens is when more may be allowed; zero if that is not known.
	opens time.Time
}

// newBudgets counts the nodes of each pool as Karpenter does: those that are initialized and whose machine is not being
// terminated.
func newBudgets(in *model.Input, pools map[string]*karpv1.NodePool) *budgets {
	b := &budgets{now: in.Snapshot.Time, pools: make(map[string]*poolBudget, len(pools))}
	for name, pool := range pools {
		b.pools[name] = &poolBudget{pool: pool, allowed: map[karpv1.DisruptionReason]permission{}, waits: pool.Annotations[karpv1.WaitForReadyAnnotationKey] == "true"}
	}
	for _, n := range in.Snapshot.Nodes {
		of := b.pools[n.Pool]
		if of == nil || n.Claim == "" {
			continue
		}
		of.claims++
		if !n.Initialized || n.Terminating {
			continue
		}
		of.nodes++
		if !n.Ready || n.Leaving() {
			of.disrupting++
		}
	}
	everywhere := &karpv1.NodePool{}
	everywhere.Spec.Disruption.Budgets = in.Budgets
	b.cluster = &poolBudget{pool: everywhere, allowed: map[karpv1.DisruptionReason]permission{}}
	begun := []karpv1.Begun(nil)
	for name, of := range b.pools {
		b.cluster.nodes, b.cluster.disrupting = b.cluster.nodes+of.nodes, b.cluster.disrupting+of.disrupting
		rate, _ := of.pool.DisruptionRate() // if it is invalid, AllowedDisruptions allows none
		of.rate.most, of.rate.opens = rate.Left(of.nodes, in.Begun[name], b.now)
		begun = append(begun, in.Begun[name]...)
	}
	b.rate.most, b.rate.opens = in.Rate.Left(b.cluster.nodes, begun, b.now)
	return b
}

func (b *budgets) permission(of *poolBudget, reason karpv1.DisruptionReason) permission {
	found, known := of.allowed[reason]
	if !known {
		found.most, found.err = of.pool.AllowedDisruptions(b.now, of.nodes, reason)
		found.opens = of.pool.NextOpening(b.now, of.nodes, reason)
		of.allowed[reason] = found
	}
	return found
}

// left returns how many more nodes of a pool may be disrupted for a reason.
func (b *budgets) left(pool string, reason karpv1.DisruptionReason) int {
	of := b.pools[pool]
	left := max(0, min(b.permission(of, reason).most-of.disrupting, of.rate.most, b.permission(b.cluster, reason).most-b.cluster.disrupting, b.rate.most))
	switch {
	case !of.waits || reason == karpv1.DisruptionReasonEmpty:
		return left
	case of.stepped:
		return 0
	}
	return min(left, 1)
}

// take counts nodes of a pool that will be disrupted for a reason.
func (b *budgets) take(pool string, reason karpv1.DisruptionReason, nodes int) {
	if of := b.pools[pool]; of != nil {
		of.disrupting += nodes
		of.rate.most -= nodes
		b.rate.most -= nodes
		b.cluster.disrupting += nodes
		of.stepped = of.stepped || reason != karpv1.DisruptionReasonEmpty
	}
}

// refusal says why nothing is left of a pool's budgets for a reason; nil where something is.
func (b *budgets) refusal(pool string, reason karpv1.DisruptionReason) *model.Verdict {
	of := b.pools[pool]
	everywhere := b.permission(b.cluster, reason)
	switch allowed := b.permission(of, reason); {
	case b.left(pool, reason) > 0:
		return nil
	case allowed.err != nil:
		return staysUntil(allowed.opens, model.CauseBudget, "its NodePool's budgets cannot be read: %s", strings.ReplaceAll(allowed.err.Error(), "\n", "; "))
	case of.rate.most <= 0:
		return staysUntil(of.rate.opens, model.CauseBudget, "its NodePool's disruption rate is used up (%s)", karpv1.DisruptionRateAnnotationKey)
	case b.rate.most <= 0:
		return staysUntil(b.rate.opens, model.CauseBudget, "the cluster's disruption rate is used up (--disruption-rate)")
	case allowed.most > of.disrupting && everywhere.most <= b.cluster.disrupting:
		return staysUntil(everywhere.opens, model.CauseBudget, "the cluster's budgets allow %d of %d nodes to be disrupted at once for being %s, and %d are (--disruption-budgets)",
			everywhere.most, b.cluster.nodes, strings.ToLower(string(reason)), b.cluster.disrupting)
	case allowed.most > of.disrupting && of.waits:
		return staysUntil(allowed.opens, model.CauseQuiet, "its NodePool replaces one node after the other, each when the pods that were moved are Ready (%s)", karpv1.WaitForReadyAnnotationKey)
	default:
		return staysUntil(allowed.opens, model.CauseBudget, "its NodePool's budgets allow %d of %d nodes to be disrupted at once for being %s, and %d are",
			allowed.most, of.nodes, strings.ToLower(string(reason)), of.disrupting)
	}
}
