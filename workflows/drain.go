package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// deadlineSlack is how long after the deadline the workflow still waits for the pass of evictions to report what is
	// left. The pass returns at the deadline by itself; the timer is for a dead worker.
	deadlineSlack = 3 * time.Second
	// forceWithin is how long a forced drain may still take. Its pods are deleted at once, and a minute later those that
	// remain no longer count; volumes may need the rest.
	forceWithin = 2 * time.Minute
	// lookAgain is how long a blocked drain waits for a signal that its blockers may have changed before it checks by
	// itself.
	lookAgain = 30 * time.Minute
)

// Drain empties a node. It runs one Evict pass after another until a pass finds the node drained, and shows the blockers in
// between. The deadline is a timer here, so that it outlives every worker. People steer a drain by the updates in
// drainorders.go. Cancelling the workflow itself only stops it: whoever does that (a claim whose instance is gone) knows
// that there is nothing to revert. A drain cancelled by the update makes its node schedulable again.
//
// While a budget or an annotation blocks every pod, no pass runs: the drain waits for a signal that this may have changed,
// and checks by itself every half hour. A drain that stays blocked costs four actions an hour.
//
// Hooks of the NodePool run after the cordon and before the first eviction (annotation tenon.sh/hooks).
//
// A drain in which nothing happens is one activity and eleven history events.
func Drain(ctx workflow.Context, in DrainInput) (DrainResult, error) {
	d := &drain{DrainInput: in, notices: workflow.GetSignalChannel(ctx, SignalDrainNotify)}
	if err := d.listen(ctx); err != nil {
		return DrainResult{}, err
	}
	for {
		d.steer(ctx)
		if err := d.show(ctx); err != nil {
			return DrainResult{}, err
		}
		// A cancellation makes timers ready as well, but that is no news.
		if err := workflow.Await(ctx, d.news); err != nil || ctx.Err() != nil {
			return d.stop(ctx), nil //nolint:nilerr // a cancelled drain has a result
		}
		d.changed = false
		if err := d.absorb(ctx); err != nil {
			return DrainResult{}, err
		}
		if outcome := d.outcome(ctx); outcome != "" {
			return d.finish(ctx, outcome)
		}
		if d.pass == nil && workflow.GetInfo(ctx).GetContinueAsNewSuggested() && workflow.AllHandlersFinished(ctx) {
			return DrainResult{}, workflow.NewContinueAsNewError(ctx, Drain, d.DrainInput)
		}
	}
}

// drain is the durable state of a drain and what is in flight.
type drain struct {
	DrainInput
	notices workflow.ReceiveChannel

	pass  *evictPass
	found EvictResult
	pause *drainPause
	alarm deadlineAlarm

	// strangers are workflows that wait for a drain of another node which has this one's name by now. told counts the
	// waiters that have been told of the end.
	strangers []string
	told      int

	// gone says that the node was reported gone.
	gone bool
	// woken says that, since the last pass began, a signal reported that the blockers may have changed.
	woken    bool
	changed  bool
	canceled bool
	ended    DrainOutcome
}

// drainPause is the time between two passes of a drain whose pods are all blocked, and the terms of the previous pass.
type drainPause struct {
	over     workflow.Future
	stop     workflow.CancelFunc
	deadline time.Time
	forced   bool
}

// evictPass is the activity Evict or Hooks in flight, and the terms it was started with.
type evictPass struct {
	future   workflow.Future
	stop     workflow.CancelFunc
	deadline time.Time
	forced   bool
	// stopping says that its cancellation was requested.
	stopping bool
	// hooks says that it runs hooks, and evicts nothing.
	hooks bool
}

// deadlineAlarm is the timer of the deadline.
type deadlineAlarm struct {
	at     time.Time
	future workflow.Future
	stop   workflow.CancelFunc
}

func (a *deadlineAlarm) rings() bool { return a.future != nil && a.future.IsReady() }

// steer makes what is in flight match the state: one pass under the current terms unless paused, and one timer for the
// deadline.
func (d *drain) steer(ctx workflow.Context) {
	want := !d.Progress.Paused && !d.canceled
	if d.pass != nil && (!want || !d.pass.deadline.Equal(d.Deadline) || d.pass.forced != d.Progress.Forced) {
		d.pass.stop()
		d.pass.stopping = true
	}
	if d.pause != nil && (!want || d.woken || d.pause.over.IsReady() || !d.pause.deadline.Equal(d.Deadline) || d.pause.forced != d.Progress.Forced) {
		d.pause.stop()
		d.pause = nil
	}
	if d.pass == nil && d.pause == nil && want {
		d.woken = false
		passing, stop := workflow.WithCancel(ctx)
		d.pass = &evictPass{stop: stop, deadline: d.Deadline, forced: d.Progress.Forced}
		d.pass.future = d.begin(passing)
	}
	if d.alarm.at.Equal(d.Deadline) {
		return
	}
	if d.alarm.stop != nil {
		d.alarm.stop()
	}
	d.alarm = deadlineAlarm{at: d.Deadline}
	if d.Deadline.IsZero() {
		return
	}
	var timing workflow.Context
	timing, d.alarm.stop = workflow.WithCancel(ctx)
	left := max(d.Deadline.Add(deadlineSlack).Sub(workflow.Now(ctx)), 0)
	d.alarm.future = workflow.NewTimerWithOptions(timing, left, workflow.TimerOptions{Summary: "deadline of the drain"})
}

// begin starts what is next: the hooks of the NodePool if there are any, and then the evictions. A forced drain waits for no
// hook.
func (d *drain) begin(ctx workflow.Context) workflow.Future {
	hooks := &d.Progress.Hooks
	if d.pass.hooks = hooks.Due && !hooks.Over && !d.Progress.Forced; d.pass.hooks {
		return HooksActivity.Start(ctx, HookInput{When: BeforeDrain, Node: d.Node, NodeUID: d.NodeUID, Claim: d.Claim, NodePool: d.NodePool, Reason: d.Reason,
			Deadline: d.Deadline, Done: hooks.Done, Known: d.Progress.Digest}, "run the hooks before the drain of "+d.Node)
	}
	in := EvictInput{Node: d.Node, NodeUID: d.NodeUID, Claim: d.Claim, Deadline: d.Deadline, Force: d.Progress.Forced, Reason: d.Reason, Known: d.Progress.Digest, MayWait: true}
	if d.Claim != "" && !hooks.Over && d.Progress.Evicted == 0 {
		in.HooksOf = d.NodePool
	}
	return EvictActivity.Start(ctx, in, "evict the pods of "+d.Node)
}

// news is the one condition the drain waits for. It receives the signals first, so that none is left in the buffer
// when the workflow ends or continues as new.
func (d *drain) news() bool {
	d.receive()
	return d.changed || d.alarm.rings() || d.pass != nil && d.pass.future.IsReady() || d.pause != nil && d.pause.over.IsReady()
}

func (d *drain) receive() {
	var waiter DrainWaiter
	for d.notices.ReceiveAsync(&waiter) {
		stranger := waiter.NodeUID != "" && waiter.NodeUID != d.NodeUID
		switch {
		case stranger && waiter.Workflow != "":
			d.strangers = append(d.strangers, waiter.Workflow)
		case waiter.Workflow != "" && !slices.Contains(d.Progress.Waiters, waiter.Workflow):
			d.Progress.Waiters = append(d.Progress.Waiters, waiter.Workflow)
		}
		d.gone = d.gone || stranger || waiter.Gone
		d.woken = d.woken || waiter.Wake
		if !stranger && !waiter.Deadline.IsZero() && (d.Deadline.IsZero() || waiter.Deadline.Before(d.Deadline)) {
			d.Deadline = waiter.Deadline
		}
		d.changed = true
		waiter = DrainWaiter{}
	}
}

// absorb takes over the findings of a pass that has returned. A cancelled pass may have found nothing. One whose worker died
// before the cancellation reached it is not retried but ends with a timeout.
func (d *drain) absorb(ctx workflow.Context) error {
	if d.pass == nil || !d.pass.future.IsReady() {
		return nil
	}
	pass := d.pass
	d.pass = nil
	pass.stop()
	if pass.hooks {
		return d.absorbHooks(ctx, pass)
	}
	var found EvictResult
	if err := pass.future.Get(ctx, &found); err != nil {
		if isCanceled(err) || pass.stopping && temporal.IsTimeoutError(err) {
			return nil
		}
		return err
	}
	d.found = found
	if found.HooksDue {
		d.Progress.Hooks.Due = true
		return nil
	}
	d.Progress.Evicted += found.Evicted
	d.Progress.Left, d.Progress.Blockers, d.Progress.Digest = found.Left, found.Blockers, found.Digest
	if found.Waiting && !d.woken {
		d.rest(ctx, pass)
	}
	return nil
}

// absorbHooks takes over how far the hooks have come.
func (d *drain) absorbHooks(ctx workflow.Context, pass *evictPass) error {
	var ran HookResult
	if err := pass.future.Get(ctx, &ran); err != nil {
		if isCanceled(err) || pass.stopping && temporal.IsTimeoutError(err) {
			return nil
		}
		return err
	}
	d.found = EvictResult{Again: ran.Again}
	d.Progress.Hooks.Over, d.Progress.Hooks.Done = ran.Finished, ran.Done
	d.Progress.Blockers, d.Progress.Digest = ran.Blockers, ran.Digest
	if len(ran.Blockers) > 0 {
		d.rest(ctx, pass)
	}
	return nil
}

// rest delays the next pass until the blockers may have changed. The last pass begins lastPass before the deadline.
func (d *drain) rest(ctx workflow.Context, last *evictPass) {
	now, wait := workflow.Now(ctx), lookAgain
	if again := d.found.Again; !again.IsZero() {
		wait = min(wait, again.Sub(now))
	}
	if !d.Deadline.IsZero() {
		wait = min(wait, d.Deadline.Add(-lastPass).Sub(now))
	}
	wait = max(wait, time.Second)
	timing, stop := workflow.WithCancel(ctx)
	d.pause = &drainPause{stop: stop, deadline: last.deadline, forced: last.forced,
		over: workflow.NewTimerWithOptions(timing, wait, workflow.TimerOptions{Summary: "look again at what blocks the drain"})}
}

// outcome returns how the drain ends, or "" while it continues.
func (d *drain) outcome(ctx workflow.Context) DrainOutcome {
	now := workflow.Now(ctx)
	switch {
	case d.found.Gone || d.gone:
		return NodeGone
	case d.canceled && d.pass == nil:
		return DrainCanceled
	case d.canceled:
		return ""
	case d.found.Done:
		return Drained
	case d.alarm.rings() && !now.Before(d.Deadline):
		return DeadlineReached
	case !d.Deadline.IsZero() && d.pass == nil && !now.Before(d.Deadline) && !d.Progress.Paused:
		return DeadlineReached
	}
	return ""
}

// finish does what the outcome requires, tells the waiters and ends the drain.
func (d *drain) finish(ctx workflow.Context, outcome DrainOutcome) (DrainResult, error) {
	d.ended = outcome
	if d.pass != nil {
		d.pass.stop()
	}
	if d.pause != nil {
		d.pause.stop()
	}
	if d.alarm.stop != nil {
		d.alarm.stop()
	}
	if err := d.show(ctx); err != nil {
		return DrainResult{}, err
	}
	if outcome == DrainCanceled {
		if _, err := UncordonActivity.Run(ctx, UncordonInput{Node: d.Node, NodeUID: d.NodeUID}, "make "+d.Node+" schedulable again"); err != nil {
			return DrainResult{}, err
		}
	}
	if d.Delete && (outcome == Drained || outcome == DeadlineReached) {
		if _, err := DeleteClaimActivity.Run(ctx, DeleteClaimInput{Claim: d.Claim, UID: d.ClaimUID, Reason: d.Reason}, "delete claim: "+d.Reason); err != nil {
			return DrainResult{}, err
		}
	}
	for {
		d.receive()
		d.tell(ctx)
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return d.result(), err
		}
		if d.receive(); d.told == len(d.Progress.Waiters) && len(d.strangers) == 0 {
			return d.result(), nil
		}
	}
}

// tell sends the outcome to the workflows that wait for the drain, and tells those that wait for another node's drain that
// theirs may begin. A waiter that is gone needs no answer.
func (d *drain) tell(ctx workflow.Context) {
	answer := func(waiter string, result DrainResult) {
		_ = workflow.SignalExternalWorkflow(ctx, waiter, "", SignalDrainFinished, result).Get(ctx, nil)
	}
	for ; d.told < len(d.Progress.Waiters); d.told++ {
		answer(d.Progress.Waiters[d.told], d.result())
	}
	for ; len(d.strangers) > 0; d.strangers = d.strangers[1:] {
		answer(d.strangers[0], DrainResult{Outcome: DrainCanceled})
	}
}

// stop ends a drain whose workflow was cancelled: it waits until no eviction is in flight, tells the waiters, and reverts
// nothing. The sweep reopens a node left closed, unless its claim is being removed.
func (d *drain) stop(ctx workflow.Context) DrainResult {
	d.ended = DrainCanceled
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	if d.pass != nil {
		_ = d.pass.future.Get(ctx, nil)
	}
	d.receive()
	d.tell(ctx)
	return d.result()
}

func (d *drain) result() DrainResult {
	result := DrainResult{Outcome: d.ended, Evicted: d.Progress.Evicted}
	if d.ended == DeadlineReached || d.ended == DrainCanceled {
		result.Blockers = d.Progress.Blockers
	}
	return result
}
