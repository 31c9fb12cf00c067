package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/lifecycle"
	"github.com/tenon-sh/tenon/plan/model"
)

// candidate is a node that may be disrupted for a reason, as far as the node, its pods and its pool decide it. Budgets,
// room and prices are checked later.
type candidate struct {
	node *model.Node
	pool *karpv1.NodePool
	// price is what the node costs now, in US dollars per hour, where that is known.
	price float64
	known bool
	// cost is its DisruptionCost.
	cost float64
	// pods are those that need another place when the node is removed.
	pods []*model.Pod
	// soon says that the node may be disrupted soon, but not yet.
	soon bool
	// kept says what keeps it from being disrupted as underutilized, as far as that has been checked.
	kept *model.Verdict
}

// stays returns a verdict without node and reason, which the caller adds.
func stays(cause model.Cause, format string, values ...any) *model.Verdict {
	return &model.Verdict{Cause: cause, Message: fmt.Sprintf(format, values...)}
}

// staysUntil returns a verdict that ends by itself.
func staysUntil(until time.Time, cause model.Cause, format string, values ...any) *model.Verdict {
	kept := stays(cause, format, values...)
	kept.Until = until
	return kept
}

// DisruptionReasonExpired is why a node is removed that is older than its expireAfter and may be replaced gracefully, or that a
// person has marked as expired.
const DisruptionReasonExpired karpv1.DisruptionReason = "Expired"

// DisruptionReasonOrdered is why a node is replaced that a person has ordered to be replaced. What limits the decisions of
// the planner (pauses, maintenance windows, budgets, rates, protection) does not limit a person. Pods that ask not to be
// disrupted, and PodDisruptionBudgets, hold up the drain, as they do in a drain that a person orders.
const DisruptionReasonOrdered karpv1.DisruptionReason = "ManualReplacement"

// judge says what keeps nodes.
type judge struct {
	in      *model.Input
	now     time.Time
	pools   map[string]*karpv1.NodePool
	budgets *budgetIndex
	// waiting are the pending pods that are not virtual, nominees the Nodes that are nominated for some of them.
	waiting  map[types.UID]bool
	nominees map[string]bool
	// replaced are the replacements with a node that is still leaving.
	replaced map[string]bool
	// shifted are the zones from which traffic is shifted away, and until when.
	shifted map[string]time.Time
	// windows are the answers about maintenance windows, by NodePool and reason.
	windows map[string]map[karpv1.DisruptionReason]*karpv1.Stop
}

func newJudge(in *model.Input) *judge {
	snapshot := in.Snapshot
	j := &judge{in: in, now: snapshot.Time, budgets: newBudgetIndex(snapshot.DisruptionBudgets), pools: make(map[string]*karpv1.NodePool, len(snapshot.NodePools)),
		windows: map[string]map[karpv1.DisruptionReason]*karpv1.Stop{}, waiting: map[types.UID]bool{}, nominees: map[string]bool{}, replaced: map[string]bool{}, shifted: map[string]time.Time{}}
	for _, pool := range snapshot.NodePools {
		j.pools[pool.Name] = pool
	}
	for i := range in.Pools {
		j.leaveShifted(&in.Pools[i])
	}
	for _, pod := range snapshot.Pending {
		if pod.Virtual {
			continue
		}
		j.waiting[pod.UID] = true
		if pod.NominatedNode != "" {
			j.nominees[pod.NominatedNode] = true
		}
	}
	for _, n := range snapshot.Nodes {
		if n.Replacement != "" && n.Leaving() {
			j.replaced[n.Replacement] = true
		}
	}
	return j
}

// leaveShifted records the zones of a pool's offerings from which traffic is shifted away.
func (j *judge) leaveShifted(pool *model.Pool) {
	for _, typ := range pool.Types {
		for i := range typ.Offerings {
			if o := &typ.Offerings[i]; j.now.Before(o.ShiftedUntil) {
				j.shifted[o.Zone] = o.ShiftedUntil
			}
		}
	}
}

// keeps says what keeps a node from being disrupted for a reason; nil if nothing does.
func (j *judge) keeps(n *model.Node, reason karpv1.DisruptionReason) *model.Verdict {
	if n.Leaving() {
		return stays(model.CauseLeaving, "it is already being removed")
	}
	pool := j.pools[n.Pool]
	if pool == nil {
		return stays(model.CausePolicy, "its NodePool %q does not exist", n.Pool)
	}
	if kept := j.applies(n, pool, reason); kept != nil {
		return kept
	}
	if kept := j.stopped(pool, reason); kept != nil {
		return kept
	}
	if !n.Initialized {
		return stays(model.CauseNode, "it is not initialized")
	}
	return cmp.Or(j.protects(n, reason), j.expects(n), j.patience(n, pool, reason), unapproved(j.in, n, pool, reason))
}

// stopped says that a person has stopped the disruption of a pool's nodes, or that no maintenance window is open for the
// reason; nil if not. pool may be nil.
func (j *judge) stopped(pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	stop := j.in.Snapshot.Stopped(karpv1.PauseDisruption, pool)
	if stop != nil {
		return staysUntil(stop.Until, model.CausePaused, "%s", stop)
	}
	if pool == nil {
		return nil
	}
	if stop = j.window(pool, reason); stop == nil {
		return nil
	}
	return staysUntil(stop.Until, model.CauseWindow, "%s", stop)
}

// window says why no maintenance window of a pool is open for a reason; nil if one is. The answers are kept, since
// schedules are too slow to be read for every node.
func (j *judge) window(pool *karpv1.NodePool, reason karpv1.DisruptionReason) *karpv1.Stop {
	known := j.windows[pool.Name]
	if known == nil {
		known = map[karpv1.DisruptionReason]*karpv1.Stop{}
		for _, reason := range append(DisruptionReasons(), DisruptionReasonOrdered) {
			known[reason] = j.in.Snapshot.Windows.Stop(reason, pool, j.now)
		}
		j.windows[pool.Name] = known
	}
	return known[reason]
}

// applies says why a reason does not apply to a node, or why its pool does not want it to; nil if it applies.
func (j *judge) applies(n *model.Node, pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	running := slices.IndexFunc(n.Pods, (*model.Pod).Reschedulable)
	switch reason {
	case lifecycle.DisruptionReasonOverprovisioned:
		// Surplus nodes are found elsewhere (lifecycle.Overprovision). These verdicts are for all other nodes.
		if pool.Spec.Replicas == nil {
			return stays(model.CauseNone, "its NodePool is not static")
		}
		if kept := j.stopped(pool, reason); kept != nil {
			return kept
		}
		return stays(model.CauseNone, "its NodePool has no more nodes than its replicas, besides those that go")
	case DisruptionReasonExpired:
		return j.expired(n, pool)
	case karpv1.DisruptionReasonDrifted:
		if !n.Drifted {
			return stays(model.CauseNone, "it has not drifted")
		}
	case karpv1.DisruptionReasonEmpty, karpv1.DisruptionReasonUnderutilized:
		empty := reason == karpv1.DisruptionReasonEmpty
		switch {
		case pool.Spec.Replicas != nil:
			return stays(model.CausePolicy, "its NodePool is static")
		case empty && running >= 0:
			return stays(model.CauseNone, "it runs pod %s", n.Pods[running].Key())
		case pool.Spec.Disruption.ConsolidateAfter.IsNever():
			return stays(model.CausePolicy, "its NodePool's consolidateAfter is Never")
		case !empty && pool.Spec.Disruption.ConsolidationPolicy == karpv1.ConsolidationPolicyWhenEmpty:
			return stays(model.CausePolicy, "its NodePool consolidates only nodes that are empty (consolidationPolicy WhenEmpty)")
		case !empty && running < 0:
			return stays(model.CauseNone, "it runs no pod that would have to move")
		}
	}
	return nil
}

// expired says why a node has not expired, or why Disrupt does not handle its expiry; nil if it does.
func (j *judge) expired(n *model.Node, pool *karpv1.NodePool) *model.Verdict {
	at := n.ExpiresAt()
	switch {
	case n.ExpireOrder != nil && pool.DeletionTimestamp.IsZero():
		return nil
	case n.ExpireMisread != "":
		return stays(model.CausePolicy, "%s", n.ExpireMisread)
	case at.IsZero():
		return stays(model.CauseNone, "it never expires")
	case !pool.ExpiresGracefully() && !j.now.Before(at) && j.stopped(pool, DisruptionReasonExpired) != nil:
		return j.stopped(pool, DisruptionReasonExpired)
	case !pool.ExpiresGracefully():
		return stays(model.CauseNone, "it expires at %s, whatever runs on it then", lifecycle.Clock(at))
	case j.now.Before(at):
		return staysUntil(at, model.CauseNone, "it expires at %s, and is replaced then", lifecycle.Clock(at))
	}
	return nil
}

// protects says what forbids disrupting a node, however long ago the disruption was decided.
func (j *judge) protects(n *model.Node, reason karpv1.DisruptionReason) *model.Verdict {
	if reason == DisruptionReasonOrdered {
		return j.nominated(n)
	}
	return cmp.Or(j.keepsZone(n), j.keepsNode(n), j.nominated(n), j.keepsPods(n, reason))
}

// keepsZone says that traffic is shifted away from a node's zone; nil if not. The node is left as it is until traffic
// returns: whatever replaced it would compete with the pods that are moving to the other zones.
func (j *judge) keepsZone(n *model.Node) *model.Verdict {
	until, shifted := j.shifted[n.Zone]
	if !shifted {
		return nil
	}
	return staysUntil(until, model.CauseNode, "traffic is shifted away from its zone %s until %s (ARC zonal shift)", n.Zone, lifecycle.Clock(until))
}

// keepsNode says what about the node itself keeps it.
func (j *judge) keepsNode(n *model.Node) *model.Verdict {
	if !n.Undisruptable(j.now) {
		return nil
	}
	annotation := cmp.Or(n.Protection, karpv1.DoNotDisruptAnnotationKey)
	if n.DoNotDisruptUntil.IsZero() {
		return stays(model.CauseNode, "it is annotated %s=true", annotation)
	}
	return staysUntil(n.DoNotDisruptUntil, model.CauseNode, "it is annotated %s, which holds until %s", annotation, lifecycle.Clock(n.DoNotDisruptUntil))
}

// expects says why pods may be on their way to a node; nil if none are.
func (j *judge) expects(n *model.Node) *model.Verdict {
	switch {
	case n.Replacement != "" && j.replaced[n.Replacement]:
		return stays(model.CauseNominated, "it replaces nodes that are still leaving")
	case slices.ContainsFunc(n.Promised, func(uid types.UID) bool { return j.waiting[uid] }):
		return stays(model.CauseNominated, "pods that wait for a node are planned for it")
	case n.Nominated(j.now):
		return staysUntil(n.NominatedUntil, model.CauseNominated, "pods were planned for it a moment ago")
	}
	return nil
}

// nominated says that pods that wait are nominated to a node; nil if none are.
func (j *judge) nominated(n *model.Node) *model.Verdict {
	if !j.nominees[n.Name] {
		return nil
	}
	return stays(model.CauseNominated, "pods that wait for a node are nominated to it")
}

// keepsPods says which pod on a node keeps it. Drift and expiry do not end by waiting: if the drain has an end, it begins,
// and pods that ask not to be disrupted or that no PodDisruptionBudget releases have until then.
func (j *judge) keepsPods(n *model.Node, reason karpv1.DisruptionReason) *model.Verdict {
	if (reason == karpv1.DisruptionReasonDrifted || reason == DisruptionReasonExpired) && n.TerminationGracePeriod != nil {
		return nil
	}
	for _, pod := range n.Pods {
		if !pod.Undisruptable(j.now) {
			continue
		}
		kept := staysUntil(pod.DisruptableAt(), model.CausePod, "pod %s is annotated not to be disrupted", pod.Key())
		if !kept.Until.IsZero() {
			kept.Message += ", which holds until " + lifecycle.Clock(kept.Until)
		}
		return kept
	}
	for _, pod := range n.Pods {
		if why := j.budgets.keeps(pod); why != "" {
			return stays(model.CausePDB, "%s", why)
		}
	}
	return nil
}

// patience says what a node still has to wait for when nothing else keeps it.
func (j *judge) patience(n *model.Node, pool *karpv1.NodePool, reason karpv1.DisruptionReason) *model.Verdict {
	if reason == karpv1.DisruptionReasonEmpty || reason == karpv1.DisruptionReasonUnderutilized {
		if kept := cmp.Or(j.quiet(n, pool), j.young(n, pool)); kept != nil {
			return kept
		}
	}
	if hold, held := j.in.Held[n.Key()]; held && reason != karpv1.DisruptionReasonEmpty && j.now.Before(hold.Until) {
		return staysUntil(hold.Until, model.CauseQuiet, "%s", hold.Why)
	}
	if j.in.Settling[n.Pool] {
		return stays(model.CauseQuiet, "pods that were moved within its NodePool are not Ready yet (%s)", karpv1.WaitForReadyAnnotationKey)
	}
	return nil
}

// quiet says that pods have arrived on a node or left it more recently than its pool demands; nil if not.
func (j *judge) quiet(n *model.Node, pool *karpv1.NodePool) *model.Verdict {
	holds, until := n.Consolidatable(pool, j.now)
	if holds {
		return nil
	}
	return staysUntil(until, model.CauseQuiet, "it has not been quiet for consolidateAfter (%s) yet", pool.Spec.Disruption.ConsolidateAfter.Duration)
}

// young says that a node is younger than its pool demands of nodes to be removed; nil if not. If that age is invalid, no
// node is old enough.
func (j *judge) young(n *model.Node, pool *karpv1.NodePool) *model.Verdict {
	age, err := pool.MinimumNodeAge()
	if err != nil {
		return stays(model.CausePolicy, "how old a node has to be is not known: %v", err)
	}
	if old := n.Created.Add(age); j.now.Before(old) {
		return staysUntil(old, model.CauseQuiet, "it is younger than %s, which its NodePool demands (%s)", pool.Annotations[karpv1.MinimumNodeAgeAnnotationKey], karpv1.MinimumNodeAgeAnnotationKey)
	}
	return nil
}

// soonWithin is how soon a node has to be quiet for that to be worth waiting for.
const soonWithin = 5 * time.Minute

// soonQuiet says that only consolidateAfter keeps a node from being disrupted as underutilized, that it is nearly over, and
// that it would be over already if only arriving pods counted: a node does not go on losing pods forever. When a workload
// shrinks, the nodes that lose pods are the ones to remove, and they are the last to be quiet. Until then, the new places
// of their pods are not given to the pods of other nodes.
func (j *judge) soonQuiet(n *model.Node, kept *model.Verdict) bool {
	pool := j.pools[n.Pool]
	if kept.Cause != model.CauseQuiet || !kept.Until.After(j.now) || kept.Until.Sub(j.now) > soonWithin || unapproved(j.in, n, pool, underutilized) != nil {
		return false
	}
	if _, held := j.in.Held[n.Key()]; held || j.in.Settling[n.Pool] || j.quiet(n, pool) == nil || j.young(n, pool) != nil {
		return false
	}
	settled := j.now.Add(-*pool.Spec.Disruption.ConsolidateAfter.Duration)
	return !n.InitializedAt.After(settled) && !slices.ContainsFunc(n.Pods, func(pod *model.Pod) bool { return pod.Reschedulable() && pod.Created.After(settled) })
}
