package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Emptiness finds the nodes that run nothing which would have to move, and may be taken away within their pool's
// budgets. A node that pods were promised to, or just nominated for, is not empty, nor is one whose free room a buffer
// needs.
func Emptiness(snapshot *Snapshot) Disruption {
	var result Disruption
	pools := map[string]*karpv1.NodePool{}
	for _, pool := range snapshot.NodePools {
		pools[pool.Name] = pool
	}
	pending, nominated := map[types.UID]bool{}, map[string]bool{}
	for _, pod := range snapshot.Pending {
		pending[pod.UID] = !pod.Virtual
		nominated[pod.NominatedNode] = true
	}
	var empty []*Node
	for _, n := range snapshot.Nodes {
		if !n.Managed() {
			continue
		}
		why, when := keptBy(n, pools[n.Pool], pending, snapshot.Time)
		if n.Name != "" && nominated[n.Name] {
			why, when = "pods that wait for a node are nominated to it", time.Time{}
		}
		if why == "" {
			empty = append(empty, n)
			continue
		}
		result.Verdicts = append(result.Verdicts, Verdict{Node: n.Key(), Reason: karpv1.DisruptionReasonEmpty, Message: why})
		result.lookAt(when)
	}
	kept := KeptForHeadroom(snapshot, empty)
	candidates := map[string][]*Node{}
	for _, n := range empty {
		if pod := kept[n.Key()]; pod != nil {
			result.Verdicts = append(result.Verdicts, Verdict{Node: n.Key(), Reason: karpv1.DisruptionReasonEmpty, Cause: CauseBuffer, Message: "it keeps room free for " + pod.Key()})
			continue
		}
		candidates[n.Pool] = append(candidates[n.Pool], n)
	}
	for _, name := range sortedKeys(candidates) {
		result.withinBudget(pools[name], candidates[name], snapshot)
	}
	slices.SortFunc(result.Verdicts, func(a, b Verdict) int { return strings.Compare(a.Node, b.Node) })
	return result
}

// keptBy says what keeps a node from being taken away as empty, or nothing. Where it is only time, when says until when.
func keptBy(n *Node, pool *karpv1.NodePool, pending map[types.UID]bool, now time.Time) (why string, when time.Time) {
	switch {
	case n.Deleting || n.Disrupted || n.Terminating:
		return "it is going away already", time.Time{}
	case pool == nil:
		return fmt.Sprintf("its NodePool %q does not exist", n.Pool), time.Time{}
	case pool.Spec.Replicas != nil:
		return "its NodePool is static", time.Time{}
	case !n.Initialized:
		return "it is not initialized", time.Time{}
	case n.DoNotDisrupt:
		return "it is annotated " + karpv1.DoNotDisruptAnnotationKey + "=true", time.Time{}
	}
	for _, pod := range n.Pods {
		if pod.Undisruptable(now) {
			return "pod " + pod.Key() + " is annotated not to be disrupted", pod.disruptableAt()
		}
		if !pod.Terminal && !pod.Daemon && !pod.Static {
			return "it runs pod " + pod.Key(), time.Time{}
		}
	}
	if slices.ContainsFunc(n.Promised, func(uid types.UID) bool { return pending[uid] }) {
		return "pods that wait for a node are planned for it", time.Time{}
	}
	if n.Nominated(now) {
		return "pods were planned for it a moment ago", n.NominatedUntil
	}
	return quietFor(n, pool, now)
}

// disruptableAt is when the pod's wish not to be disrupted ends; zero if it does not.
func (p *Pod) disruptableAt() time.Time {
	if p.DoNotDisruptFor == 0 || p.Started.IsZero() {
		return time.Time{}
	}
	return p.Started.Add(p.DoNotDisruptFor)
}

// quietFor says whether a node has been without a pod coming or going for as long as its pool demands.
func quietFor(n *Node, pool *karpv1.NodePool, now time.Time) (why string, when time.Time) {
	after := pool.Spec.Disruption.ConsolidateAfter
	if after.IsNever() {
		return "its NodePool's consolidateAfter is Never", time.Time{}
	}
	ready := later(n.InitializedAt, n.LastPodEvent).Add(*after.Duration)
	if now.Before(ready) {
		return fmt.Sprintf("it has not been quiet for consolidateAfter (%s) yet", after.Duration), ready
	}
	return "", time.Time{}
}

// withinBudget turns a pool's candidates into a command, as far as its budgets go.
func (d *Disruption) withinBudget(pool *karpv1.NodePool, candidates []*Node, snapshot *Snapshot) {
	reason := karpv1.DisruptionReasonEmpty
	nodes, disrupting := census(snapshot, pool.Name)
	allowed, err := pool.AllowedDisruptions(snapshot.Time, nodes, reason)
	left := max(0, allowed-disrupting)
	// The youngest go last: of equally empty nodes they have the most life before them.
	slices.SortFunc(candidates, func(a, b *Node) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Key(), b.Key()))
	})
	if len(candidates) > left && err == nil {
		d.lookAt(budgetOpens(pool, snapshot.Time, nodes, allowed))
	}
	command := Command{Reason: reason}
	for _, n := range candidates {
		switch {
		case err != nil:
			d.Verdicts = append(d.Verdicts, Verdict{n.Key(), reason, CauseBudget, "its NodePool's budgets cannot be read: " + err.Error()})
		case len(command.Nodes) < left:
			command.Nodes = append(command.Nodes, n.Key())
		default:
			d.Verdicts = append(d.Verdicts, Verdict{n.Key(), reason, CauseBudget, fmt.Sprintf(
				"its NodePool's budgets allow %d of %d nodes to be disrupted at once for being empty, and %d are", allowed, nodes, disrupting+len(command.Nodes))})
		}
	}
	if len(command.Nodes) > 0 {
		d.Commands = append(d.Commands, command)
	}
}

// lookAt brings NextLook forward to a time, if it is one.
func (d *Disruption) lookAt(when time.Time) {
	if !when.IsZero() && (d.NextLook.IsZero() || when.Before(d.NextLook)) {
		d.NextLook = when
	}
}

// budgetOpens is the next minute within a day at which the pool's scheduled budgets allow more than now; zero if there
// is none. Schedules have no finer grain than a minute.
func budgetOpens(pool *karpv1.NodePool, now time.Time, nodes, allowed int) time.Time {
	scheduled := func(b karpv1.Budget) bool { return b.Schedule != nil }
	if !slices.ContainsFunc(pool.Spec.Disruption.Budgets, scheduled) {
		return time.Time{}
	}
	minute := now.Truncate(time.Minute)
	for range 24 * 60 {
		minute = minute.Add(time.Minute)
		// A budget holds to the end of its last minute, both ends included.
		if more, err := pool.AllowedDisruptions(minute.Add(time.Second), nodes, karpv1.DisruptionReasonEmpty); err == nil && more > allowed {
			return minute.Add(time.Second)
		}
	}
	return time.Time{}
}

// census counts a pool's nodes as budgets do: those that are initialized and not being terminated, and among them those
// that are not ready or on their way out.
func census(snapshot *Snapshot, pool string) (nodes, disrupting int) {
	for _, n := range snapshot.Nodes {
		if n.Pool != pool || n.Claim == "" || !n.Initialized || n.Terminating {
			continue
		}
		nodes++
		if !n.Ready || n.Deleting || n.Disrupted {
			disrupting++
		}
	}
	return nodes, disrupting
}
