package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Confirm looks once more at nodes that are about to go, by Key, and says what has come in between; nothing where all of
// them may go. The nodes are marked as leaving in the snapshot. Whether it still pays is not asked again: what replaces
// them has been bought. Where nothing protects the nodes, all pods on them have to find room on nodes that serve, beside
// everything else that waits.
func Confirm(in Input, reason karpv1.DisruptionReason, nodes []string) []Verdict {
	j := newJudge(&in)
	at := make(map[string]*Node, len(in.Snapshot.Nodes))
	for _, n := range in.Snapshot.Nodes {
		at[n.Key()] = n
	}
	var going []*Node
	var found []Verdict
	for _, key := range nodes {
		n := at[key]
		if n == nil {
			continue
		}
		kept := j.keepsNode(n)
		if kept == nil {
			kept = j.keepsPods(n, reason)
		}
		if kept == nil && n.Name != "" && j.nominated[n.Name] {
			kept = &block{cause: CauseNominated, message: "pods that wait for a node are nominated to it"}
		}
		if kept != nil {
			found = append(found, Verdict{Node: key, Reason: reason, Cause: kept.cause, Message: kept.message})
			continue
		}
		going = append(going, n)
	}
	if len(found) > 0 {
		return found
	}
	pools := in.Pools
	in.Pools = nil
	found = withoutRoom(in, reason, going, at)
	if len(found) > 0 && slices.ContainsFunc(in.Snapshot.Nodes, func(n *Node) bool { return !n.Launched }) {
		// What a claim that is not launched yet will hold is known from what its pool sells. What would be bought besides
		// counts as no place all the same.
		in.Pools = pools
		found = withoutRoom(in, reason, going, at)
	}
	return found
}

// withoutRoom names the nodes whose pods do not all fit on nodes that serve.
func withoutRoom(in Input, reason karpv1.DisruptionReason, going []*Node, at map[string]*Node) []Verdict {
	place := map[types.UID]*Node{}
	for _, placement := range Pack(in).Placements {
		place[placement.Pod.UID] = at[placement.Node]
	}
	var found []Verdict
	for _, n := range going {
		for _, pod := range n.Pods {
			if !pod.Reschedulable() || pod.Undisruptable(in.Snapshot.Time) {
				continue
			}
			why := ""
			switch to := place[pod.UID]; {
			case to == nil:
				why = fmt.Sprintf("pod %s would find no other place now", pod.Key())
			case !to.Initialized:
				why = fmt.Sprintf("pod %s would have to wait for node %s", pod.Key(), to.Key())
			}
			if why != "" {
				found = append(found, Verdict{Node: n.Key(), Reason: reason, Cause: CauseRoom, Message: why})
				break
			}
		}
	}
	return found
}

// Protected says what asks, on a node or on one of its pods, that the node is not disrupted for a reason; nothing where
// nothing does.
func Protected(n *Node, reason karpv1.DisruptionReason, now time.Time) string {
	j := &judge{now: now, budgets: newBudgetIndex(nil)}
	if kept := j.keepsNode(n); kept != nil {
		return kept.message
	}
	if kept := j.keepsPods(n, reason); kept != nil {
		return kept.message
	}
	return ""
}
