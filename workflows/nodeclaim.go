package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// askAgain is the least time between two questions whether a claim that has expired may be deleted: clocks differ.
const askAgain = 5 * time.Second

// leavesAtOnce marks lives that do not wait for Join to hear that their claim has to end, which takes until its next
// heartbeat: an instance that is interrupted while it joins has two minutes.
const leavesAtOnce = "leaves-joining-at-once"

// lastPass is how long a drain has when its node's end is a matter of force: one pass, which deletes the pods that are
// left, so that their owners make others, and does not wait for them.
const lastPass = 10 * time.Second

// NodeClaim is the life of a node: it joins, serves until somebody or its expiry ends it, is drained and terminated.
// The claim's object is the record people see and edit; this workflow moves it. It returns when instance, Node and
// NodeClaim are gone, and never before.
func NodeClaim(ctx workflow.Context, state NodeClaimInput) (NodeClaimResult, error) {
	n := nodeClaim{NodeClaimInput: state, signals: workflow.GetSignalChannel(ctx, SignalEnding)}
	if err := n.join(ctx); err != nil {
		return NodeClaimResult{}, err
	}
	if err := n.serve(ctx); err != nil {
		return NodeClaimResult{}, err
	}
	return n.end(ctx)
}

type nodeClaim struct {
	NodeClaimInput
	signals workflow.ReceiveChannel
	// hurry is a deadline that the drain under way has to be told; zero while there is none.
	hurry time.Time
}

// join waits until the node serves pods, or the claim has to end. The activity returns now and then although nothing
// is wrong: a node may take for ever to initialize, and an activity may not.
func (n *nodeClaim) join(ctx workflow.Context) error {
	for !n.Joined.Initialized && !n.leaving() {
		n.describe(ctx, PhaseJoining, "Waiting for the instance to join the cluster and become ready.")
		var joined JoinResult
		joining, stop := workflow.WithCancel(ctx)
		future := JoinActivity.Start(joining, JoinInput{Claim: n.Claim, Instance: n.Instance}, "wait for the node of "+n.Instance.ID)
		if err := workflow.Await(ctx, func() bool { return future.IsReady() || n.leaving() }); err != nil {
			stop()
			return err
		}
		stop()
		if !future.IsReady() && workflow.GetVersion(ctx, leavesAtOnce, workflow.DefaultVersion, 1) > workflow.DefaultVersion {
			break // Join ends by itself when it sees that its claim is being deleted
		}
		err := future.Get(ctx, &joined)
		switch {
		case err == nil:
			n.Joined = joined
		case !n.leaving():
			return err
		}
		if n.Joined.Failed != "" {
			n.leave(Ending{Reason: n.Joined.Failed})
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() && !n.leaving() {
			return workflow.NewContinueAsNewError(ctx, NodeClaim, n.NodeClaimInput)
		}
	}
	return nil
}

// serve waits until the node has to go.
func (n *nodeClaim) serve(ctx workflow.Context) error {
	if n.leaving() {
		return nil
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(PhaseServing), AttrNode.ValueSet(n.Joined.Node)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	n.describe(ctx, PhaseServing, "The node serves pods.")
	if n.Joined.ExpireAt.IsZero() {
		return workflow.Await(ctx, n.leaving)
	}
	// The timer is left to itself when something else ends the life: cancelling it would only cost an event.
	expiry := workflow.NewTimerWithOptions(ctx, max(n.Joined.ExpireAt.Sub(workflow.Now(ctx)), 0), workflow.TimerOptions{Summary: "expires"})
	if err := workflow.Await(ctx, func() bool { return n.leaving() || expiry.IsReady() }); err != nil {
		return err
	}
	if n.DrainTells {
		return n.expire(ctx)
	}
	if !n.leaving() {
		n.leave(Ending{Reason: ReasonExpired})
	}
	return nil
}

// expire ends a claim that has expired. How its NodePool wants that is asked when it matters, and not remembered: a node
// that is to be replaced first serves on until somebody ends it, and is asked about again when its time is up for good.
func (n *nodeClaim) expire(ctx workflow.Context) error {
	for !n.leaving() {
		ending, err := DeleteClaimActivity.Run(ctx, DeleteClaimInput{Claim: n.Claim.Name, UID: n.Claim.UID, Reason: ReasonExpired, Expires: true},
			"delete claim: "+ReasonExpired)
		if err != nil {
			return err
		}
		if !ending.Postponed {
			n.leave(Ending{Reason: ReasonExpired, Deadline: ending.Deadline, Deleting: true})
			return nil
		}
		state := "The node has expired, and serves until it is replaced within its NodePool's budgets."
		over := func() bool { return false }
		if !ending.Again.IsZero() {
			state += " At " + ending.Again.UTC().Format(time.RFC3339) + " it goes by force."
			over = workflow.NewTimerWithOptions(ctx, max(ending.Again.Sub(workflow.Now(ctx)), askAgain), workflow.TimerOptions{Summary: "goes by force"}).IsReady
		}
		n.describe(ctx, PhaseServing, state)
		if err := workflow.Await(ctx, func() bool { return n.leaving() || over() }); err != nil {
			return err
		}
	}
	return nil
}

// end drains the node, terminates the instance and lets the objects go.
func (n *nodeClaim) end(ctx workflow.Context) (NodeClaimResult, error) {
	result := NodeClaimResult{Reason: n.Ending.Reason}
	ctx = hasten(ctx, n.Ending.Reason)
	if !n.DrainTells {
		if err := n.tell(ctx, PhaseDraining); err != nil {
			return result, err
		}
	}
	n.describe(ctx, PhaseDraining, "Draining: "+n.Ending.Reason+".")
	if !n.Ending.Deleting {
		deadline := n.Ending.Deadline
		if least := workflow.Now(ctx).Add(lastPass); !deadline.IsZero() && deadline.Before(least) {
			deadline = least
		}
		ending, err := DeleteClaimActivity.Run(ctx, DeleteClaimInput{Claim: n.Claim.Name, UID: n.Claim.UID, Reason: n.Ending.Reason,
			Deadline: deadline}, "delete claim: "+n.Ending.Reason)
		if err != nil {
			return result, err
		}
		n.Ending.Deadline, n.Ending.Deleting = ending.Deadline, true
	}
	for {
		if err := n.lookForNode(ctx); err != nil {
			return result, err
		}
		result.Node = n.Joined.Node
		var err error
		switch {
		case n.Joined.Node != "" && !n.lost():
			var drain DrainResult
			drain, err = n.drain(ctx)
			result.Drain = drain.Outcome
		case n.DrainTells:
			err = n.tell(ctx, PhaseTerminating)
		}
		if err != nil {
			return result, err
		}
		n.describe(ctx, PhaseTerminating, "Terminating the instance.")
		_, err = TerminateActivity.Run(ctx, TerminateInput{Claim: n.Claim, Instance: n.Instance.ID, Node: n.Joined.Node, NodeUID: n.Joined.NodeUID,
			Reason: n.Ending.Reason, Outcome: result.Drain, Lost: n.lost(), DrainsAgain: true}, "terminate "+n.Instance.ID)
		switch FailureType(err) {
		case FailureNotLost:
			n.Ending.Lost = false // whoever said so was wrong: its pods are drained as any
			continue
		case FailureNotDrained:
			if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
				return result, workflow.NewContinueAsNewError(ctx, NodeClaim, n.NodeClaimInput)
			}
			continue
		}
		n.describe(ctx, "Terminated", "The node is gone: "+n.Ending.Reason+".")
		return result, err
	}
}

// tell shows by search attributes why the life ends and how far that has come.
func (n *nodeClaim) tell(ctx workflow.Context, phase string) error {
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(phase), AttrReason.ValueSet(n.Ending.Reason)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	return nil
}

// lookForNode asks for the Node of a claim that ended before it was told of one. The Node may have registered, and have
// pods, all the same. A Join returns at once where the claim is being deleted.
func (n *nodeClaim) lookForNode(ctx workflow.Context) error {
	if n.Joined.Node != "" || n.lost() {
		return nil
	}
	joined, err := JoinActivity.Run(ctx, JoinInput{Claim: n.Claim, Instance: n.Instance}, "look for the node of "+n.Instance.ID)
	n.Joined.Node, n.Joined.NodeUID = joined.Node, joined.NodeUID
	return err
}

// leaving reports whether the claim has to end. It is the condition everything waits on, and receives what was
// signalled first: no signal is ever left in the buffer when the workflow moves on or continues as new.
func (n *nodeClaim) leaving() bool {
	n.receive()
	return n.Ending.Reason != ""
}

// lost reports whether the instance turned out to be gone while its node was being drained.
func (n *nodeClaim) lost() bool {
	n.receive()
	return n.Ending.Lost
}

// receive takes in what was signalled. An end has a reason: a signal without one is a mistake of who sent it, and must not
// give the end that comes later its deadline, or the word that the instance is lost.
func (n *nodeClaim) receive() {
	var ending Ending
	for n.signals.ReceiveAsync(&ending) {
		if ending.Reason != "" {
			n.leave(ending)
		}
		ending = Ending{}
	}
}

// leave records why the claim ends. The first reason stays: a removal has one. A deadline once known is kept.
func (n *nodeClaim) leave(ending Ending) {
	if n.Ending.Reason == "" {
		n.Ending.Reason = ending.Reason
	} else if ending.Forced {
		n.hurry = ending.Deadline
	}
	n.Ending.Lost = n.Ending.Lost || ending.Lost
	n.Ending.Deleting = n.Ending.Deleting || ending.Deleting
	if !ending.Deadline.IsZero() {
		n.Ending.Deadline = ending.Deadline
	}
}

func (n *nodeClaim) describe(ctx workflow.Context, phase, state string) {
	details := fmt.Sprintf("**%s** %s\n\n| | |\n|---|---|\n| NodeClaim | %s |\n| NodePool | %s |\n| Instance | %s, %s %s in %s |\n",
		phase, state, n.Claim.Name, orNone(n.NodePool), n.Instance.ID, n.Instance.CapacityType, n.Instance.InstanceType, n.Instance.Zone)
	if n.Joined.Node != "" {
		details += "| Node | " + n.Joined.Node + " |\n"
	}
	if !n.Joined.ExpireAt.IsZero() {
		details += "| Expires | " + n.Joined.ExpireAt.UTC().Format(time.RFC3339) + " |\n"
	}
	if !n.Ending.Deadline.IsZero() {
		details += "| Drain deadline | " + n.Ending.Deadline.UTC().Format(time.RFC3339) + " |\n"
	}
	workflow.SetCurrentDetails(ctx, details)
}
