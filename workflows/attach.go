package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// How a NodeClaim workflow drains its node. A node has one Drain at a time, under an id made from its name, whether the
// workflow of its claim or a person started it.
//
//   - If none runs, the workflow starts one as its child, and the child's result is the answer.
//   - If one runs, the workflow attaches to it: it sends a DrainWaiter by SignalDrainNotify, with its own id, the UID of
//     the node, and the deadline. When the Drain ends, it sends its DrainResult to each waiter by SignalDrainFinished. A
//     drain of an earlier node of that name ends, and answers Canceled.
//   - While either runs, the workflow passes a new deadline on to the Drain, also by SignalDrainNotify.
//   - If a drain answers Canceled, or was terminated, another one follows.

// drain empties the node. If its drain is cancelled or terminated, another one begins. If the instance turns out to be gone,
// nothing is left to drain.
func (n *nodeClaim) drain(ctx workflow.Context) (DrainResult, error) {
	in := DrainInput{Cluster: n.Cluster, ClusterUID: n.ClusterUID, Node: n.Joined.Node, NodeUID: n.Joined.NodeUID, Claim: n.Claim.Name, ClaimUID: n.Claim.UID,
		NodePool: n.NodePool, Deadline: n.Ending.Deadline, Reason: n.Ending.Reason}
	for {
		if !n.hurry.IsZero() {
			in.Deadline = n.hurried(ctx)
		}
		draining, stop := workflow.WithCancel(ctx)
		child := workflow.ExecuteChildWorkflow(DrainOptions(in).child(draining), Drain, in)
		if err := n.awaitDrain(ctx, child.IsReady); err != nil {
			stop()
			return DrainResult{}, err
		}
		if n.lost() {
			stop()
			_ = child.Get(ctx, nil)
			return DrainResult{Outcome: NodeGone}, nil
		}
		stop()
		var result DrainResult
		err := child.Get(ctx, &result)
		if alreadyStarted(err) {
			result, err = n.attach(ctx, in)
		}
		switch {
		case terminated(err):
			continue // a person ended it in Temporal's UI, which counts as cancelling it
		case err != nil:
			return result, err
		case result.Outcome != DrainCanceled:
			return result, nil
		}
	}
}

// awaitDrain returns when the drain of the node has finished, or the instance turns out to be gone. Meanwhile it passes new
// deadlines on to the drain.
func (n *nodeClaim) awaitDrain(ctx workflow.Context, finished func() bool) error {
	for {
		if err := workflow.Await(ctx, func() bool { return finished() || n.lost() || !n.hurry.IsZero() }); err != nil {
			return err
		}
		if finished() || n.lost() {
			return nil
		}
		// A drain that has ended meanwhile needs no deadline.
		_ = workflow.SignalExternalWorkflow(ctx, n.Cluster.DrainID(n.Joined.Node), "", SignalDrainNotify, DrainWaiter{Deadline: n.hurried(ctx)}).Get(ctx, nil)
	}
}

// hurried returns the deadline to pass on to the drain, and clears it. It leaves the drain time for a last pass.
func (n *nodeClaim) hurried(ctx workflow.Context) time.Time {
	by := n.hurry
	n.hurry = time.Time{}
	if least := workflow.Now(ctx).Add(lastPass); by.Before(least) {
		return least
	}
	return by
}

// attach tells the drain that already runs on the node the claim's deadline, and waits for it to end.
func (n *nodeClaim) attach(ctx workflow.Context, in DrainInput) (DrainResult, error) {
	finished := workflow.GetSignalChannel(ctx, SignalDrainFinished)
	for finished.ReceiveAsync(nil) { // from an earlier drain
	}
	note := DrainWaiter{Workflow: workflow.GetInfo(ctx).WorkflowExecution.ID, Deadline: in.Deadline, NodeUID: in.NodeUID}
	if err := workflow.SignalExternalWorkflow(ctx, in.Cluster.DrainID(in.Node), "", SignalDrainNotify, note).Get(ctx, nil); err != nil {
		return DrainResult{Outcome: DrainCanceled}, nil //nolint:nilerr // it ended between the two: ours can start now
	}
	if err := n.awaitDrain(ctx, func() bool { return finished.Len() > 0 }); err != nil {
		return DrainResult{}, err
	}
	var result DrainResult
	if !finished.ReceiveAsync(&result) {
		return DrainResult{Outcome: NodeGone}, nil
	}
	return result, nil
}
