package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// askAgain is the minimum time between two requests to delete an expired claim, since clocks differ.
const askAgain = 5 * time.Second

// leavesAtOnce marks lives that, when their claim has to end, do not wait until Join has heard of it. Join hears only with
// its next heartbeat, and an instance that is interrupted while it joins has two minutes.
const leavesAtOnce = "leaves-joining-at-once"

// lastPass is how long a drain has when its node is ended by force: one pass, which deletes the remaining pods so that their
// owners create others, and does not wait for them to end.
const lastPass = 10 * time.Second

// NodeClaim is the life of a node: the node joins, serves until somebody or its expiry ends it, is drained and terminated.
// The NodeClaim object is the record that people see and edit; this workflow acts on it. It returns only when instance, Node
// and NodeClaim are gone. Where a person has paused what ends it, the node serves on.
func NodeClaim(ctx workflow.Context, state NodeClaimInput) (NodeClaimResult, error) {
	n := nodeClaim{NodeClaimInput: state, signals: workflow.GetSignalChannel(ctx, SignalEnding)}
	for {
		if err := n.join(ctx); err != nil {
			return NodeClaimResult{}, err
		}
		if err := n.serve(ctx); err != nil {
			return NodeClaimResult{}, err
		}
		result, err := n.end(ctx)
		if err != nil || !n.servesOn {
			return result, err
		}
		n.servesOn = false
	}
}

type nodeClaim struct {
	NodeClaimInput
	signals workflow.ReceiveChannel
	// hurry is a deadline that still has to be passed on to the running drain; zero if there is none.
	hurry time.Time
	// servesOn says that the claim does not end after all, and is told anew if it has to.
	servesOn bool
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

// serve waits until the node has to be removed.
func (n *nodeClaim) serve(ctx workflow.Context) error {
	if n.leaving() {
		return nil
	}
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(PhaseServing), AttrNode.ValueSet(n.Joined.Node)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	if err := n.runHooks(ctx); err != nil {
		return err
	}
	n.describe(ctx, PhaseServing, "The node serves pods.")
	if n.Joined.ExpireAt.IsZero() {
		return workflow.Await(ctx, n.leaving)
	}
	// The timer is not cancelled when something else ends the life: cancelling it would only cost an event.
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

// runHooks runs the hooks of the NodePool for a node that has come up, unless it has to go meanwhile.
func (n *nodeClaim) runHooks(ctx workflow.Context) error {
	if !n.Joined.HooksDue || n.leaving() {
		return nil
	}
	n.describe(ctx, PhaseServing, "The node serves pods, and the hooks of its NodePool run.")
	running, stop := workflow.WithCancel(ctx)
	defer stop()
	future := HooksActivity.Start(running, HookInput{When: AfterReady, Node: n.Joined.Node, NodeUID: n.Joined.NodeUID, Claim: n.Claim.Name, NodePool: n.NodePool},
		"run the hooks after "+n.Joined.Node+" has come up")
	if err := workflow.Await(ctx, func() bool { return future.IsReady() || n.leaving() }); err != nil {
		return err
	}
	stop()
	var ran HookResult
	if err := future.Get(ctx, &ran); err != nil && !(isCanceled(err) && n.leaving()) {
		return err
	}
	n.Joined.HooksDue = false
	if ran.Failed != "" && !n.leaving() {
		n.leave(Ending{Reason: ReasonHookFailed})
	}
	return nil
}

// expire ends a claim that has expired. It asks DeleteClaim what the NodePool wants when that matters, and does not remember
// the answer. A node that is to be replaced first serves on until somebody ends it; expire asks about it again when its time
// is finally up.
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
		if ending.Why != "" {
			state = "The node has expired, and serves on: " + ending.Why + "."
		}
		if !ending.Again.IsZero() {
			if ending.Why == "" {
				state += " At " + ending.Again.UTC().Format(time.RFC3339) + " it goes by force."
			}
			over = workflow.NewTimerWithOptions(ctx, max(ending.Again.Sub(workflow.Now(ctx)), askAgain), workflow.TimerOptions{Summary: "goes by force"}).IsReady
		}
		n.describe(ctx, PhaseServing, state)
		if err := workflow.Await(ctx, func() bool { return n.leaving() || over() }); err != nil {
			return err
		}
	}
	return nil
}

// end drains the node, terminates the instance and removes the objects.
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
		ending, err := n.deleteClaim(ctx, deadline)
		if err != nil || n.servesOn {
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
			n.Ending.Lost = false // the report was wrong: the node is drained like any other
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

// deleteClaim deletes the claim, and waits while a person has paused what ends it, unless the claim is deleted meanwhile or
// its instance is reported gone. A claim that was to end for what its node is, unhealthy or expired, does not wait here: it
// serves on, and whoever looks at nodes tells it again if that is still so.
func (n *nodeClaim) deleteClaim(ctx workflow.Context, deadline time.Time) (Ending, error) {
	for {
		ending, err := DeleteClaimActivity.Run(ctx, DeleteClaimInput{Claim: n.Claim.Name, UID: n.Claim.UID, Reason: n.Ending.Reason,
			Deadline: deadline, Pausable: !n.Ending.Lost}, "delete claim: "+n.Ending.Reason)
		if err != nil || !ending.Postponed {
			return ending, err
		}
		if n.Ending.Reason == ReasonUnhealthy || n.Ending.Reason == ReasonExpired && n.DrainTells {
			n.Ending, n.servesOn = Ending{}, true
			return ending, nil
		}
		n.describe(ctx, PhaseServing, "The node was to go ("+n.Ending.Reason+"), and serves on: "+ending.Why+".")
		until := max(ending.Again.Sub(workflow.Now(ctx)), askAgain)
		timer := workflow.NewTimerWithOptions(ctx, until, workflow.TimerOptions{Summary: "paused"})
		if err := workflow.Await(ctx, func() bool {
			n.receive()
			return n.Ending.Deleting || n.Ending.Lost || timer.IsReady()
		}); err != nil {
			return ending, err
		}
		switch {
		case n.Ending.Deleting:
			return n.Ending, nil
		case workflow.GetInfo(ctx).GetContinueAsNewSuggested():
			return ending, workflow.NewContinueAsNewError(ctx, NodeClaim, n.NodeClaimInput)
		}
	}
}

// tell shows in search attributes why the life ends and how far its end has come.
func (n *nodeClaim) tell(ctx workflow.Context, phase string) error {
	if err := workflow.UpsertTypedSearchAttributes(ctx, AttrPhase.ValueSet(phase), AttrReason.ValueSet(n.Ending.Reason)); err != nil {
		return fmt.Errorf("show phase: %w", err)
	}
	return nil
}

// lookForNode looks for the Node of a claim that ended before the workflow knew of one. The Node may have registered and
// have pods all the same. Join returns at once if the claim is being deleted.
func (n *nodeClaim) lookForNode(ctx workflow.Context) error {
	if n.Joined.Node != "" || n.lost() {
		return nil
	}
	joined, err := JoinActivity.Run(ctx, JoinInput{Claim: n.Claim, Instance: n.Instance}, "look for the node of "+n.Instance.ID)
	n.Joined.Node, n.Joined.NodeUID = joined.Node, joined.NodeUID
	return err
}

// leaving reports whether the claim has to end. Everything waits on this condition. It receives pending signals first, so
// that none is left in the buffer when the workflow moves on or continues as new.
func (n *nodeClaim) leaving() bool {
	n.receive()
	return n.Ending.Reason != ""
}

// lost reports whether the instance was reported gone.
func (n *nodeClaim) lost() bool {
	n.receive()
	return n.Ending.Lost
}

// receive takes in the signals. A signal without a reason is a mistake of its sender: it must not pass on its deadline, or
// the report that the instance is lost, to an end that comes later.
func (n *nodeClaim) receive() {
	var ending Ending
	for n.signals.ReceiveAsync(&ending) {
		if ending.Reason != "" {
			n.leave(ending)
		}
		ending = Ending{}
	}
}

// leave records why the claim ends. The first reason stays, since a removal has one. A signal without a deadline does not
// clear a known one.
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
