package plan

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Confirm looks once more at a command that is about to be carried out, and says what has come in between; nothing where
// all of its nodes may go. They are marked as leaving in the snapshot. Whether it still pays is not asked again: what
// replaces them has been bought. Where nothing protects the nodes, all pods on them have to find room on nodes that serve,
// beside everything else that waits: in the best order, or as the kube-scheduler is expected to place them.
func Confirm(in Input, command Command) []Verdict {
	j := newJudge(&in)
	at := make(map[string]*Node, len(in.Snapshot.Nodes))
	for _, n := range in.Snapshot.Nodes {
		at[n.Key()] = n
	}
	var going []*Node
	var found []Verdict
	for _, key := range command.Nodes {
		n := at[key]
		if n == nil {
			continue
		}
		kept := j.keepsNode(n)
		if kept == nil {
			kept = j.keepsPods(n, command.Reason)
		}
		if kept == nil && n.Name != "" && j.nominated[n.Name] {
			kept = &block{cause: CauseNominated, message: "pods that wait for a node are nominated to it"}
		}
		if kept != nil {
			found = append(found, Verdict{Node: key, Reason: command.Reason, Cause: kept.cause, Message: kept.message})
			continue
		}
		going = append(going, n)
	}
	if len(found) > 0 {
		return found
	}
	in.Snapshot = in.Snapshot.withSuccessors(going)
	served := in
	served.Pools = nil
	kept := packedOut(served, going, at)
	if len(kept) > 0 && slices.ContainsFunc(in.Snapshot.Nodes, func(n *Node) bool { return !n.Launched }) {
		// What a claim that is not launched yet will hold is known from what its pool sells. What would be bought besides
		// counts as no place all the same.
		kept = packedOut(in, going, at)
	}
	if len(kept) > 0 {
		if rushed := rushedOut(served, going, command.Late); len(rushed) < len(kept) {
			kept = rushed
		}
	}
	for _, n := range going {
		if why := kept[n]; why != "" {
			found = append(found, Verdict{Node: n.Key(), Reason: command.Reason, Cause: CauseRoom, Message: why})
		}
	}
	return found
}

// packedOut says why nodes stay whose pods do not all fit on nodes that serve.
func packedOut(in Input, going []*Node, at map[string]*Node) map[*Node]string {
	place := map[types.UID]*Node{}
	for _, placement := range packAll(in).Placements {
		place[placement.Pod.UID] = at[placement.Node]
	}
	why := map[*Node]string{}
	for _, n := range going {
		for _, pod := range n.Pods {
			if !pod.Reschedulable() || pod.Undisruptable(in.Snapshot.Time) {
				continue
			}
			switch to := place[pod.UID]; {
			case why[n] != "":
			case to == nil:
				why[n] = noOtherPlace(pod)
			case !to.Initialized:
				why[n] = fmt.Sprintf("pod %s would have to wait for node %s", pod.Key(), to.Key())
			}
		}
	}
	return why
}

func noOtherPlace(pod *Pod) string {
	return fmt.Sprintf("pod %s would find no other place now", pod.Key())
}

// rushedOut says the same of nodes whose pods are placed as they come. What was launched for them may be late, and takes
// only small ones.
func rushedOut(in Input, going []*Node, late bool) map[*Node]string {
	replacements := map[string]bool{}
	staying := *in.Snapshot
	staying.Nodes = slices.Clone(in.Snapshot.Nodes)
	movable := make([]*Node, len(going))
	for i, n := range going {
		node := *n
		node.Deleting, node.Disrupted = false, false
		movable[i] = &node
		staying.Nodes[slices.Index(staying.Nodes, n)] = &node
		replacements[n.Replacement] = late && n.Replacement != ""
	}
	in.Snapshot = &staying
	var launched []*Node
	for _, n := range staying.Nodes {
		if replacements[n.Replacement] && !n.leaving() && !slices.Contains(movable, n) {
			launched = append(launched, n)
		}
	}
	why := map[*Node]string{}
	for m := range newField(in, movable).homeless(movable, launched, 0) {
		// Pods that wait may have had their place on a node that goes, and keep none.
		if n := going[slices.Index(movable, m.from)]; why[n] == "" && slices.Contains(n.Pods, m.pod) && !m.pod.Undisruptable(in.Snapshot.Time) {
			why[n] = noOtherPlace(m.pod)
		}
	}
	return why
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
