package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"
)

// How a NodeClaim workflow has its node drained. A node has one Drain at a time, under an id made of its name, whoever
// started it: the workflow of its claim or a person.
//
//   - Where none runs, the workflow starts one as its child, and the child's end is the answer.
//   - Where one runs, the workflow attaches to it: it sends a DrainWaiter by SignalDrainNotify, which says who waits, for
//     the node of which UID, and by when it has to be over. At its end the Drain sends its DrainResult to each waiter by
//     SignalDrainFinished. A drain of an earlier node of that name ends, and answers Canceled.
//   - While either runs, a deadline that comes up is told to the Drain by SignalDrainNotify as well.
//   - A drain that answers Canceled, or that somebody has terminated, is followed by the next.

// drain empties the node. If its drain is taken back or terminated, another one begins. When the instance turns out to be
// gone, nothing is left to drain.
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
			continue // a person ended it in Temporal's UI, as one that is taken back
		case err != nil:
			return result, err
		case result.Outcome != DrainCanceled:
			return result, nil
		}
	}
}

// awaitDrain returns when the drain of the node has finished, or the instance turns out to be gone. Meanwhile it tells the
// drain a deadline that came up.
func (n *nodeClaim) awaitDrain(ctx workflow.Context, finished func() bool) error {
	for {
		if err := workflow.Await(ctx, func() bool { return finished() || n.lost() || !n.hurry.IsZero() }); err != nil {
			return err
		}
		if finished() || n.lost() {
			return nil
		}
		// A drain that has ended between the two needs no deadline.
		_ = workflow.SignalExternalWorkflow(ctx, n.Cluster.DrainID(n.Joined.Node), "", SignalDrainNotify, DrainWaiter{Deadline: n.hurried(ctx)}).Get(ctx, nil)
	}
}

// hurried is the deadline that a drain has to be told, which leaves it a last pass. It is told once.
func (n *nodeClaim) hurried(ctx workflow.Context) time.Time {
	by := n.hurry
	n.hurry = time.Time{}
	if least := workflow.Now(ctx).Add(lastPass); by.Before(least) {
		return least
	}
	return by
}

// attach waits for the drain that is already running on the node, having told it the claim's deadline.
func (n *nodeClaim) attach(ctx workflow.Context, in DrainInput) (DrainResult, error) {
	finished := workflow.GetSignalChannel(ctx, SignalDrainFinished)
	for finished.ReceiveAsync(nil) { // that was of an earlier drain
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
