package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
)

// listen registers the query and the updates.
func (d *drain) listen(ctx workflow.Context) error {
	if d.Progress.Started.IsZero() {
		d.Progress.Started = workflow.GetInfo(ctx).WorkflowStartTime
	}
	if err := workflow.SetQueryHandler(ctx, QueryStatus, func() (DrainStatus, error) { return d.status(), nil }); err != nil {
		return fmt.Errorf("register query %s: %w", QueryStatus, err)
	}
	for _, update := range []struct {
		name     string
		validate func(workflow.Context, DrainOrder) error
		apply    func(workflow.Context, DrainOrder)
	}{
		{UpdatePause, d.mayPause, func(workflow.Context, DrainOrder) { d.Progress.Paused = true }},
		{UpdateResume, d.mayResume, func(workflow.Context, DrainOrder) { d.Progress.Paused = false }},
		{UpdateCancel, d.mayCancel, func(workflow.Context, DrainOrder) { d.canceled = true }},
		{UpdateForce, d.mayForce, d.force},
		{UpdateDeadline, d.mayMove, func(_ workflow.Context, order DrainOrder) { d.Deadline = order.Deadline }},
	} {
		handle := func(ctx workflow.Context, order DrainOrder) (DrainStatus, error) {
			update.apply(ctx, order)
			if said := order.said(update.name); said != "" {
				d.Progress.Said = said
			}
			d.changed = true
			if update.name == UpdatePause {
				return d.stopped(ctx)
			}
			return d.status(), nil
		}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, update.name, handle, workflow.UpdateHandlerOptions{Validator: update.validate}); err != nil {
			return fmt.Errorf("register update %s: %w", update.name, err)
		}
	}
	return nil
}

// pauseStops marks drains that answer a pause only when evictions have stopped.
const pauseStops = "pause-stops-evictions"

// stopped answers a pause once evictions have stopped: a pass learns of its cancellation with its next heartbeat.
func (d *drain) stopped(ctx workflow.Context) (DrainStatus, error) {
	if workflow.GetVersion(ctx, pauseStops, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return d.status(), nil
	}
	err := workflow.Await(ctx, func() bool { return d.pass == nil || !d.Progress.Paused || d.ended != "" })
	return d.status(), err
}

// said returns what is remembered of an order: who gave it, and why. It is empty if neither is known.
func (o DrainOrder) said(order string) string {
	switch {
	case o.By == "" && o.Note == "":
		return ""
	case o.Note == "":
		return order + " by " + o.By
	case o.By == "":
		return order + ": " + o.Note
	}
	return order + " by " + o.By + ": " + o.Note
}

// running returns an error if the drain has ended or is being cancelled: every order needs a drain that runs.
func (d *drain) running() error {
	switch {
	case d.ended != "":
		return fmt.Errorf("the drain of %s has ended: %s", d.Node, d.ended)
	case d.canceled:
		return fmt.Errorf("the drain of %s is being canceled", d.Node)
	}
	return nil
}

func (d *drain) mayPause(workflow.Context, DrainOrder) error {
	if d.Progress.Forced {
		return fmt.Errorf("the drain of %s is forced; its pods are deleted already", d.Node)
	}
	return d.running()
}

func (d *drain) mayResume(workflow.Context, DrainOrder) error {
	if err := d.running(); err != nil {
		return err
	}
	if !d.Progress.Paused {
		return fmt.Errorf("the drain of %s is not paused", d.Node)
	}
	return nil
}

// mayCancel refuses if the node is removed whatever becomes of the drain.
func (d *drain) mayCancel(workflow.Context, DrainOrder) error {
	if err := d.running(); err != nil {
		return err
	}
	if d.Claim != "" && (d.Reason != ReasonManualDrain || len(d.Progress.Waiters) > 0) {
		return fmt.Errorf("NodeClaim %s is being deleted (%s), so node %s has to go; a drain can only be paused then", d.Claim, d.endReason(), d.Node)
	}
	return nil
}

func (d *drain) endReason() string {
	if d.Reason == ReasonManualDrain {
		return ReasonClaimDeleted
	}
	return d.Reason
}

func (d *drain) mayForce(workflow.Context, DrainOrder) error {
	if err := d.running(); err != nil {
		return err
	}
	if d.Progress.Forced {
		return fmt.Errorf("the drain of %s is forced already", d.Node)
	}
	return nil
}

func (d *drain) force(ctx workflow.Context, _ DrainOrder) {
	d.Progress.Forced, d.Progress.Paused = true, false
	if latest := workflow.Now(ctx).Add(forceWithin); d.Deadline.IsZero() || latest.Before(d.Deadline) {
		d.Deadline = latest
	}
}

func (d *drain) mayMove(ctx workflow.Context, order DrainOrder) error {
	if err := d.running(); err != nil {
		return err
	}
	switch {
	case d.Progress.Forced:
		return fmt.Errorf("the drain of %s is forced; its pods are deleted already", d.Node)
	case !order.Deadline.IsZero() && !order.Deadline.After(workflow.Now(ctx)):
		return fmt.Errorf("the deadline %s is past; use %s to end the drain now", order.Deadline.UTC().Format(time.RFC3339), UpdateForce)
	}
	return nil
}

func (d *drain) phase() string {
	switch {
	case d.ended != "":
		return PhaseFinished
	case d.canceled:
		return PhaseCanceling
	case d.Progress.Paused:
		return PhasePaused
	case len(d.Progress.Blockers) > 0:
		return PhaseBlocked
	}
	return PhaseDraining
}

func (d *drain) status() DrainStatus {
	note := d.Note
	if d.Progress.Said != "" {
		note = d.Progress.Said
	}
	return DrainStatus{Node: d.Node, Claim: d.Claim, NodePool: d.NodePool, Phase: d.phase(), Outcome: d.ended, Reason: d.Reason, Note: note, By: d.By,
		Delete: d.Delete, Forced: d.Progress.Forced, Started: d.Progress.Started, Deadline: d.Deadline,
		Evicted: d.Progress.Evicted, Left: d.Progress.Left, Blockers: d.Progress.Blockers}
}
