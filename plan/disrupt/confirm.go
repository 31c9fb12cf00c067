package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan/model"
)

// Confirm checks a command once more before it is carried out, and returns what keeps its nodes now; nothing if all of them
// may be removed. They are marked as leaving in the snapshot. Confirm does not ask again whether the command pays, because
// its replacements have been bought. If nothing protects the nodes, all pods on them have to find room on nodes that serve,
// beside everything else that waits: in the best order, or as the kube-scheduler is expected to place them.
func Confirm(in model.Input, command model.Command) []model.Verdict {
	j := newJudge(&in)
	at := make(map[string]*model.Node, len(in.Snapshot.Nodes))
	for _, n := range in.Snapshot.Nodes {
		at[n.Key()] = n
	}
	var going []*model.Node
	var found []model.Verdict
	for _, key := range command.Nodes {
		n := at[key]
		if n == nil {
			continue
		}
		kept := j.protects(n, command.Reason)
		if command.Reason != DisruptionReasonOrdered {
			kept = cmp.Or(j.stopped(j.pools[n.Pool], command.Reason), rolloutStopped(j.pools[n.Pool], command.Reason), rolledBack(n, j.pools[n.Pool], command.Reason), kept)
		}
		if kept != nil {
			found = append(found, model.Verdict{Node: key, Reason: command.Reason, Cause: kept.Cause, Message: kept.Message})
			continue
		}
		going = append(going, n)
	}
	if len(found) > 0 {
		return found
	}
	// The nodes are judged as if nothing had been decided yet.
	in.Snapshot = with(in.Snapshot, func(n *model.Node) bool { return slices.Contains(going, n) }, func(n *model.Node) {
		n.Deleting, n.Disrupted, n.Replacement = false, false, ""
	})
	served := in
	served.Pools = nil
	found = roomless(served, going, command.Reason)
	if len(found) > 0 && slices.ContainsFunc(in.Snapshot.Nodes, func(n *model.Node) bool { return !n.Launched }) {
		// What a claim that is not launched yet will hold is only known from what its pool sells. A place that would have
		// to be bought still does not count.
		return roomless(in, going, command.Reason)
	}
	return found
}

// Overtaken says that most of the pods which a command was to move have left since it was decided, as when a workload is
// deleted: what was to be launched for them is not needed, and nodes that become empty are removed anyway.
func Overtaken(moves, left int) bool { return 2*left < moves }

// roomless returns verdicts for the nodes whose pods do not all fit on nodes that serve.
func roomless(in model.Input, going []*model.Node, reason karpv1.DisruptionReason) (found []model.Verdict) {
	f := NewSimulation(in, going)
	if claims, kept := f.Relocate(going, anyNumber, nil); kept == nil && len(claims) == 0 {
		return nil
	}
	for pod := range f.unplaced(going) {
		// Pods that wait may have been planned for one of these nodes, but do not keep it.
		from := slices.IndexFunc(going, func(n *model.Node) bool { return slices.Contains(n.Pods, pod) })
		if from < 0 || pod.Undisruptable(in.Snapshot.Time) {
			continue
		}
		key := going[from].Key()
		if !slices.ContainsFunc(found, func(v model.Verdict) bool { return v.Node == key }) {
			found = append(found, model.Verdict{Node: key, Reason: reason, Cause: model.CauseRoom, Message: fmt.Sprintf("pod %s would find no other place now", pod.Key())})
		}
	}
	return found
}

// Protected says what on a node or one of its pods forbids disrupting the node for a reason; empty if nothing does.
func Protected(n *model.Node, reason karpv1.DisruptionReason, now time.Time) string {
	if kept := newJudge(&model.Input{Snapshot: &model.Snapshot{Time: now}}).protects(n, reason); kept != nil {
		return kept.Message
	}
	return ""
}
