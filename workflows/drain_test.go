package workflows

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// drainLab runs one Drain with fake activities.
type drainLab struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	// evict is one fake pass; the passes are numbered from 1.
	evict     func(ctx context.Context, pass int, in EvictInput) (EvictResult, error)
	passes    []EvictInput
	deleted   []DeleteClaimInput
	uncordons int
	told      map[string]DrainResult
	phases    []string
}

func newDrainLab(t *testing.T) *drainLab {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	lab := &drainLab{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, told: map[string]DrainResult{}}
	lab.RegisterWorkflowWithOptions(Drain, workflow.RegisterOptions{Name: DrainType})
	lab.RegisterActivityWithOptions(func(ctx context.Context, in EvictInput) (EvictResult, error) {
		lab.passes = append(lab.passes, in)
		return lab.evict(ctx, len(lab.passes), in)
	}, activity.RegisterOptions{Name: EvictActivity.Name})
	lab.RegisterActivityWithOptions(func(context.Context, UncordonInput) (struct{}, error) {
		lab.uncordons++
		return struct{}{}, nil
	}, activity.RegisterOptions{Name: UncordonActivity.Name})
	lab.RegisterActivityWithOptions(func(_ context.Context, in DeleteClaimInput) (Ending, error) {
		lab.deleted = append(lab.deleted, in)
		return Ending{}, nil
	}, activity.RegisterOptions{Name: DeleteClaimActivity.Name})
	lab.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&drainWitness{lab: lab}}})
	lab.evict = func(context.Context, int, EvictInput) (EvictResult, error) {
		return EvictResult{Done: true, Evicted: 2}, nil
	}
	return lab
}

// drainWitness records what the drain tells the outside world: signals to other workflows and search attributes.
type drainWitness struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
	lab *drainLab
}

func (w *drainWitness) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	w.WorkflowInboundInterceptorBase.Next = next
	return w
}

func (w *drainWitness) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	w.WorkflowOutboundInterceptorBase.Next = outbound
	return w.WorkflowInboundInterceptorBase.Init(w)
}

func (w *drainWitness) SignalExternalWorkflow(ctx workflow.Context, workflowID, _, _ string, arg any) workflow.Future {
	w.lab.told[workflowID] = arg.(DrainResult)
	future, settable := workflow.NewFuture(ctx)
	settable.SetValue(nil)
	return future
}

func (w *drainWitness) UpsertTypedSearchAttributes(_ workflow.Context, attributes ...temporal.SearchAttributeUpdate) error {
	phase, _ := temporal.NewSearchAttributes(attributes...).GetKeyword(AttrPhase)
	w.lab.phases = append(w.lab.phases, phase)
	return nil
}

func (l *drainLab) run(in DrainInput) DrainResult {
	l.t.Helper()
	l.ExecuteWorkflow(DrainType, in)
	if !l.IsWorkflowCompleted() {
		l.t.Fatal("the drain has not ended")
	}
	if err := l.GetWorkflowError(); err != nil {
		l.t.Fatal(err)
	}
	var result DrainResult
	if err := l.GetWorkflowResult(&result); err != nil {
		l.t.Fatal(err)
	}
	return result
}

// order sends an update after a while and returns its result.
func (l *drainLab) order(after time.Duration, update string, order DrainOrder) *orderResult {
	result := &orderResult{}
	l.RegisterDelayedCallback(func() {
		l.UpdateWorkflow(update, update+"-"+after.String(), &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { result.rejected = err },
			OnComplete: func(value any, err error) { result.status, _ = value.(DrainStatus); result.err = err },
		}, order)
	}, after)
	return result
}

type orderResult struct {
	rejected, err error
	status        DrainStatus
}

func (l *drainLab) status() DrainStatus {
	l.t.Helper()
	value, err := l.QueryWorkflow(QueryStatus)
	if err != nil {
		l.t.Fatal(err)
	}
	var status DrainStatus
	if err := value.Get(&status); err != nil {
		l.t.Fatal(err)
	}
	return status
}

// untilCanceled is a pass that runs until the workflow cancels it, without holding up the test's clock.
func untilCanceled(context.Context, int, EvictInput) (EvictResult, error) {
	return EvictResult{}, activity.ErrResultPending
}

func manualDrain() DrainInput {
	return DrainInput{Cluster: "c", Node: "n", NodeUID: "uid", Claim: "claim", ClaimUID: "claim-uid", NodePool: "pool", Reason: ReasonManualDrain, Delete: true}
}

var webBudget = Blocker{Pod: "team/web-1", Cause: "PodDisruptionBudget", By: "web", Message: "PodDisruptionBudget web needs 2 healthy pods and has 2"}

func TestDrainEmptiesAndDeletes(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	got := lab.run(manualDrain())
	if diff := cmp.Diff(DrainResult{Outcome: Drained, Evicted: 2}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]DeleteClaimInput{{Claim: "claim", UID: "claim-uid", Reason: ReasonManualDrain}}, lab.deleted); diff != "" {
		t.Errorf("deleted claims (-want +got):\n%s", diff)
	}
	if len(lab.passes) != 1 || len(lab.phases) != 0 || lab.uncordons != 0 {
		t.Errorf("%d passes, phases %v, %d uncordons; an uneventful drain is one pass and nothing else", len(lab.passes), lab.phases, lab.uncordons)
	}
	if status := lab.status(); status.Phase != PhaseFinished || status.Outcome != Drained {
		t.Errorf("afterwards the status is %+v", status)
	}
}

func TestDrainOfAnEndingClaimLeavesItAlone(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	in := manualDrain()
	in.Reason, in.Delete = ReasonEmpty, false
	if got := lab.run(in); got.Outcome != Drained {
		t.Errorf("outcome %s", got.Outcome)
	}
	if len(lab.deleted) != 0 {
		t.Errorf("deleted %v; the claim's own workflow does that", lab.deleted)
	}
}

func TestDrainShowsBlockersAndGoesOn(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	var shown DrainStatus
	lab.evict = func(_ context.Context, pass int, in EvictInput) (EvictResult, error) {
		switch pass {
		case 1:
			return EvictResult{Evicted: 1, Left: 3, Blockers: []Blocker{webBudget}, Digest: "d1"}, nil
		case 2:
			if in.Known != "d1" {
				t.Errorf("the second pass knows %q, want d1", in.Known)
			}
			shown = lab.status()
			return EvictResult{Left: 1}, nil
		}
		return EvictResult{Done: true, Evicted: 3}, nil
	}
	got := lab.run(manualDrain())
	if diff := cmp.Diff(DrainResult{Outcome: Drained, Evicted: 4}, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	want := DrainStatus{Node: "n", Claim: "claim", NodePool: "pool", Phase: PhaseBlocked, Reason: ReasonManualDrain, Delete: true, Evicted: 1, Left: 3, Blockers: []Blocker{webBudget}}
	if diff := cmp.Diff(want, shown, cmpopts.IgnoreFields(DrainStatus{}, "Started")); diff != "" {
		t.Errorf("status while blocked (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{PhaseBlocked, PhaseDraining}, lab.phases); diff != "" {
		t.Errorf("phases shown (-want +got):\n%s", diff)
	}
}

// TestABlockedDrainWaits blocks every pod of a node: no pass runs until the drain is signalled, half an hour is over, a
// blocker ends by itself, the deadline comes near, or a person orders something else.
func TestABlockedDrainWaits(t *testing.T) {
	t.Parallel()
	held := EvictResult{Left: 1, Blockers: []Blocker{{Pod: "team/web", Cause: "PodDisruptionBudget", By: "web"}}, Digest: "d", Waiting: true}
	for reason, test := range map[string]struct {
		again    time.Duration
		deadline time.Duration
		tell     func(*drainLab)
		want     time.Duration
	}{
		"nobody tells it anything": {want: lookAgain},
		"it is told that the budget may allow more": {want: 10 * time.Minute, tell: func(l *drainLab) {
			l.RegisterDelayedCallback(func() { l.SignalWorkflow(SignalDrainNotify, DrainWaiter{NodeUID: "uid", Wake: true}) }, 10*time.Minute)
		}},
		"an annotation ends by itself":    {again: 7 * time.Minute, want: 7 * time.Minute},
		"the deadline comes":              {deadline: 5 * time.Minute, want: 5*time.Minute - lastPass},
		"a person orders it to be forced": {want: 3 * time.Minute, tell: func(l *drainLab) { l.order(3*time.Minute, UpdateForce, DrainOrder{}) }},
		"a person moves the deadline": {want: 3 * time.Minute, tell: func(l *drainLab) {
			l.order(3*time.Minute, UpdateDeadline, DrainOrder{Deadline: l.Now().Add(time.Hour)})
		}},
		"it is paused and goes on": {want: 4 * time.Minute, tell: func(l *drainLab) {
			l.order(3*time.Minute, UpdatePause, DrainOrder{})
			l.order(4*time.Minute, UpdateResume, DrainOrder{})
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			l := newDrainLab(t)
			began := l.Now()
			in := DrainInput{Cluster: "c", Node: "n", NodeUID: "uid", Reason: ReasonManualDrain}
			if test.deadline > 0 {
				in.Deadline = began.Add(test.deadline)
			}
			var second time.Time
			l.evict = func(_ context.Context, pass int, in EvictInput) (EvictResult, error) {
				if !in.MayWait {
					t.Error("the pass does not know that the drain waits by itself")
				}
				if pass == 1 {
					first := held
					if test.again > 0 {
						first.Again = began.Add(test.again)
					}
					return first, nil
				}
				second = l.Now()
				return EvictResult{Done: true, Evicted: 1}, nil
			}
			if test.tell != nil {
				test.tell(l)
			}
			if result := l.run(in); result.Outcome != Drained {
				t.Errorf("result %+v", result)
			}
			if got := second.Sub(began).Round(time.Second); got != test.want {
				t.Errorf("looked again after %s, want %s", got, test.want)
			}
		})
	}
}

// TestABlockedDrainCostsLittle lets a budget block a node's pods for a day on which nothing changes, and counts what
// Temporal Cloud would bill: activities, timers, and upserts of search attributes.
func TestABlockedDrainCostsLittle(t *testing.T) {
	t.Parallel()
	const hours, most = 24, 6
	l := newDrainLab(t)
	began, timers := l.Now(), 0
	l.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
	l.evict = func(_ context.Context, _ int, in EvictInput) (EvictResult, error) {
		if l.Now().Sub(began) >= hours*time.Hour {
			return EvictResult{Done: true}, nil
		}
		return EvictResult{Left: 1, Blockers: []Blocker{webBudget}, Digest: "d", Waiting: true}, nil
	}
	l.run(DrainInput{Cluster: "c", Node: "n", NodeUID: "uid", Reason: ReasonManualDrain})
	if actions := len(l.passes) + timers + len(l.phases); timers < hours || actions > hours*most {
		t.Errorf("%d actions in %d hours (%d activities, %d timers, %d upserts), want at most %d an hour", actions, hours, len(l.passes), timers, len(l.phases), most)
	}
}

func TestDrainDetailsNameTheBlocker(t *testing.T) {
	t.Parallel()
	d := drain{DrainInput: manualDrain()}
	d.Progress.Blockers, d.Progress.Left, d.Note = []Blocker{webBudget}, 3, "kernel | fix"
	details := d.details()
	for _, want := range []string{"**Blocked**", "3 pods are left", "team/web-1", "PodDisruptionBudget web", "needs 2 healthy pods", `kernel \| fix`, "the node is terminated"} {
		if !strings.Contains(details, want) {
			t.Errorf("details do not say %q:\n%s", want, details)
		}
	}
}

func TestDrainOfAMissingNode(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	lab.evict = func(context.Context, int, EvictInput) (EvictResult, error) { return EvictResult{Gone: true}, nil }
	if got := lab.run(manualDrain()); got.Outcome != NodeGone {
		t.Errorf("outcome %s", got.Outcome)
	}
	if len(lab.deleted) != 0 {
		t.Error("a claim whose node is gone ends by itself")
	}
}

func TestDrainFailsWhereItCannotGoOn(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	lab.evict = func(context.Context, int, EvictInput) (EvictResult, error) {
		return EvictResult{}, temporal.NewNonRetryableApplicationError("no", "Broken", nil)
	}
	lab.ExecuteWorkflow(DrainType, manualDrain())
	if err := lab.GetWorkflowError(); FailureType(err) != "Broken" {
		t.Errorf("error %v", err)
	}
}

func TestDrainPauseAndResume(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	lab.evict = func(ctx context.Context, pass int, in EvictInput) (EvictResult, error) {
		if pass == 1 {
			return untilCanceled(ctx, pass, in)
		}
		return EvictResult{Done: true, Evicted: 4}, nil
	}
	early := lab.order(time.Minute, UpdateResume, DrainOrder{})
	paused := lab.order(2*time.Minute, UpdatePause, DrainOrder{Note: "incident"})
	var between DrainStatus
	lab.RegisterDelayedCallback(func() { between = lab.status() }, time.Hour)
	resumed := lab.order(2*time.Hour, UpdateResume, DrainOrder{})
	if got := lab.run(manualDrain()); got.Outcome != Drained || got.Evicted != 4 {
		t.Errorf("result %+v", got)
	}
	if early.rejected == nil || !strings.Contains(early.rejected.Error(), "not paused") {
		t.Errorf("resume of a running drain: %v", early.rejected)
	}
	if paused.rejected != nil || paused.status.Phase != PhasePaused || paused.status.Note != "pause: incident" {
		t.Errorf("pause: %v, %+v", paused.rejected, paused.status)
	}
	if between.Phase != PhasePaused {
		t.Errorf("an hour later: %+v", between)
	}
	if resumed.rejected != nil || len(lab.passes) != 2 {
		t.Errorf("resume: %v; %d passes, want 2", resumed.rejected, len(lab.passes))
	}
}

func TestDrainCancel(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	lab.evict = untilCanceled
	canceled := lab.order(time.Minute, UpdateCancel, DrainOrder{})
	if got := lab.run(manualDrain()); got.Outcome != DrainCanceled {
		t.Errorf("result %+v", got)
	}
	if canceled.rejected != nil || canceled.status.Phase != PhaseCanceling {
		t.Errorf("cancel: %v, %+v", canceled.rejected, canceled.status)
	}
	if lab.uncordons != 1 || len(lab.deleted) != 0 {
		t.Errorf("%d uncordons, deleted %v", lab.uncordons, lab.deleted)
	}
}

func TestDrainPassThatDiesWhileItIsStopped(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason   string
		stopping bool
		err      error
		fails    bool
	}{
		{reason: "Temporal does not try an activity again once its cancellation was asked for, so a dead worker is a timeout",
			stopping: true, err: temporal.NewHeartbeatTimeoutError(), fails: false},
		{reason: "a pass that ended as asked for", stopping: true, err: temporal.NewCanceledError(), fails: false},
		{reason: "a pass that nobody stopped must not end so", stopping: false, err: temporal.NewHeartbeatTimeoutError(), fails: true},
		{reason: "what Temporal gives up for another reason ends the drain", stopping: true, err: errors.New("no such activity"), fails: true},
	} {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestWorkflowEnvironment()
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			future, settable := workflow.NewFuture(ctx)
			settable.SetError(test.err)
			d := &drain{pass: &evictPass{future: future, stop: func() {}, stopping: test.stopping}}
			return d.absorb(ctx)
		})
		if err := env.GetWorkflowError(); err != nil != test.fails {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}

func TestDrainCancelIsRefusedWhenTheNodeGoesAnyway(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		notify bool
	}{
		"ClaimEnds":     {reason: ReasonExpired},
		"ClaimEndsThen": {reason: ReasonManualDrain, notify: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := newDrainLab(t)
			in := manualDrain()
			in.Reason = test.reason
			lab.evict = func(ctx context.Context, pass int, in EvictInput) (EvictResult, error) {
				if pass == 1 {
					return untilCanceled(ctx, pass, in)
				}
				return EvictResult{Done: true}, nil
			}
			if test.notify {
				lab.RegisterDelayedCallback(func() { lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Workflow: "c/nodeclaim/claim"}) }, time.Second)
			}
			canceled := lab.order(time.Minute, UpdateCancel, DrainOrder{})
			lab.order(2*time.Minute, UpdatePause, DrainOrder{})
			lab.order(3*time.Minute, UpdateResume, DrainOrder{})
			if got := lab.run(in); got.Outcome != Drained {
				t.Errorf("result %+v", got)
			}
			if canceled.rejected == nil || !strings.Contains(canceled.rejected.Error(), "NodeClaim claim is being deleted") {
				t.Errorf("cancel: %v", canceled.rejected)
			}
			if lab.uncordons != 0 {
				t.Error("made schedulable again")
			}
		})
	}
}

func TestDrainForce(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	began := lab.Now()
	lab.evict = func(ctx context.Context, pass int, in EvictInput) (EvictResult, error) {
		if pass == 1 {
			return untilCanceled(ctx, pass, in)
		}
		if !in.Force {
			t.Error("the second pass is not forced")
		}
		if want := began.Add(time.Hour + forceWithin); in.Deadline.Sub(want).Abs() > time.Second {
			t.Errorf("deadline %s, want %s", in.Deadline, want)
		}
		return untilCanceled(ctx, pass, in)
	}
	forced := lab.order(time.Hour, UpdateForce, DrainOrder{})
	again := lab.order(time.Hour+time.Second, UpdateForce, DrainOrder{Note: "again"})
	if got := lab.run(manualDrain()); got.Outcome != DeadlineReached {
		t.Errorf("result %+v; what does not even go by force does not hold up the end", got)
	}
	if forced.rejected != nil || !forced.status.Forced {
		t.Errorf("force: %v, %+v", forced.rejected, forced.status)
	}
	if again.rejected == nil || !strings.Contains(again.rejected.Error(), "forced already") {
		t.Errorf("forced twice: %v", again.rejected)
	}
}

func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		reason   string
		deadline time.Duration
		order    time.Duration
		pause    bool
		want     time.Duration
	}{
		"Kept":           {reason: "the drain ends soon after its deadline though no worker reports", deadline: time.Hour, want: time.Hour + deadlineSlack},
		"Earlier":        {reason: "an earlier deadline counts", deadline: time.Hour, order: 30 * time.Minute, want: 30*time.Minute + deadlineSlack},
		"Later":          {reason: "a later deadline counts", deadline: time.Hour, order: 3 * time.Hour, want: 3*time.Hour + deadlineSlack},
		"New":            {reason: "a drain without a deadline is given one", order: time.Hour, want: time.Hour + deadlineSlack},
		"PausedIsNoStop": {reason: "the deadline keeps running while paused", deadline: time.Hour, pause: true, want: time.Hour + deadlineSlack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lab := newDrainLab(t)
			lab.SetStartTime(start)
			lab.evict = untilCanceled
			in := manualDrain()
			if test.deadline > 0 {
				in.Deadline = start.Add(test.deadline)
			}
			if test.order > 0 {
				if moved := lab.order(time.Minute, UpdateDeadline, DrainOrder{Deadline: start.Add(test.order)}); moved.rejected != nil {
					t.Error(moved.rejected)
				}
			}
			if test.pause {
				lab.order(time.Minute, UpdatePause, DrainOrder{})
			}
			past := lab.order(2*time.Minute, UpdateDeadline, DrainOrder{Deadline: start.Add(time.Minute)})
			got := lab.run(in)
			if got.Outcome != DeadlineReached {
				t.Errorf("%s: result %+v", test.reason, got)
			}
			if took := lab.Now().Sub(start); took < test.want || took > test.want+time.Second {
				t.Errorf("%s: took %s, want %s", test.reason, took, test.want)
			}
			if len(lab.deleted) != 1 {
				t.Errorf("deleted %v; the node goes at the deadline", lab.deleted)
			}
			if past.rejected == nil || !strings.Contains(past.rejected.Error(), "is past") {
				t.Errorf("a deadline in the past: %v", past.rejected)
			}
		})
	}
}

func TestDrainReportsWhatWasLeftAtTheDeadline(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	in := manualDrain()
	in.Deadline = lab.Now().Add(-time.Second)
	lab.evict = func(context.Context, int, EvictInput) (EvictResult, error) {
		return EvictResult{Left: 1, Blockers: []Blocker{webBudget}, Digest: "d"}, nil
	}
	if diff := cmp.Diff(DrainResult{Outcome: DeadlineReached, Blockers: []Blocker{webBudget}}, lab.run(in)); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestDrainTellsWaiters(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	in := manualDrain()
	in.Delete = false
	lab.evict = func(ctx context.Context, pass int, in EvictInput) (EvictResult, error) {
		if pass == 1 {
			return untilCanceled(ctx, pass, in)
		}
		if in.Deadline.IsZero() {
			t.Error("the waiter's deadline does not count")
		}
		return EvictResult{Done: true, Evicted: 1}, nil
	}
	lab.RegisterDelayedCallback(func() {
		lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Workflow: "c/nodeclaim/claim", Deadline: lab.Now().Add(time.Hour)})
	}, time.Minute)
	got := lab.run(in)
	if diff := cmp.Diff(map[string]DrainResult{"c/nodeclaim/claim": got}, lab.told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestDrainWorkflowCanceledUndoesNothing(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		in    func(*drainLab) DrainInput
		evict func(context.Context, int, EvictInput) (EvictResult, error)
	}{
		"while pods are evicted": {in: func(*drainLab) DrainInput { return manualDrain() }, evict: untilCanceled},
		"with a deadline to come": {in: func(l *drainLab) DrainInput {
			in := manualDrain()
			in.Deadline = l.Now().Add(time.Hour)
			return in
		}, evict: untilCanceled},
		"while it waits": {in: func(*drainLab) DrainInput { return manualDrain() }, evict: func(context.Context, int, EvictInput) (EvictResult, error) {
			return EvictResult{Left: 1, Blockers: []Blocker{{Pod: "team/web"}}, Digest: "d", Waiting: true}, nil
		}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			lab := newDrainLab(t)
			lab.evict = test.evict
			lab.RegisterDelayedCallback(lab.CancelWorkflow, time.Minute)
			if got := lab.run(test.in(lab)); got.Outcome != DrainCanceled {
				t.Errorf("result %+v", got)
			}
			if lab.uncordons != 0 || len(lab.deleted) != 0 || len(lab.passes) != 1 {
				t.Errorf("%d uncordons, deleted %v, %d passes", lab.uncordons, lab.deleted, len(lab.passes))
			}
		})
	}
}

func TestDrainContinuesAsNew(t *testing.T) {
	t.Parallel()
	lab := newDrainLab(t)
	lab.SetContinueAsNewSuggested(true)
	lab.RegisterDelayedCallback(func() { lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Workflow: "w"}) }, 0)
	lab.evict = func(context.Context, int, EvictInput) (EvictResult, error) {
		return EvictResult{Evicted: 1, Left: 3, Blockers: []Blocker{webBudget}, Digest: "d1"}, nil
	}
	in := manualDrain()
	in.Progress.Started = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) // by an earlier run
	lab.ExecuteWorkflow(DrainType, in)
	var next *workflow.ContinueAsNewError
	if err := lab.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatalf("error %v, want to continue as new", err)
	}
	var carried DrainInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &carried); err != nil {
		t.Fatal(err)
	}
	want := manualDrain()
	want.Progress = DrainProgress{Started: in.Progress.Started, Evicted: 1, Left: 3, Blockers: []Blocker{webBudget}, Digest: "d1", Waiters: []string{"w"}}
	if diff := cmp.Diff(want, carried); diff != "" {
		t.Errorf("carried over (-want +got):\n%s", diff)
	}
}

// TestDrainTellsItsWaitersHoweverItEnds makes a claim wait for a drain that somebody ordered, and ends the drain by the
// buttons of Temporal's UI or by its node: a claim that was not told would wait for ever.
func TestDrainTellsItsWaitersHoweverItEnds(t *testing.T) {
	t.Parallel()
	const claim, stranger = "c/nodeclaim/a", "c/nodeclaim/b"
	for reason, test := range map[string]struct {
		then func(*drainLab)
		want DrainOutcome
		told map[string]DrainOutcome
	}{
		"cancelled in the UI": {then: func(lab *drainLab) { lab.CancelWorkflow() }, want: DrainCanceled, told: map[string]DrainOutcome{claim: DrainCanceled}},
		"paused, and its node gone": {then: func(lab *drainLab) {
			lab.UpdateWorkflow(UpdatePause, "pause", &testsuite.TestUpdateCallback{OnAccept: func() {}, OnReject: func(err error) { t.Error(err) }, OnComplete: func(any, error) {}}, DrainOrder{})
			lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Gone: true})
		}, want: NodeGone, told: map[string]DrainOutcome{claim: NodeGone}},
		"a later node has the name": {then: func(lab *drainLab) {
			lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Workflow: stranger, NodeUID: "uid-2", Deadline: time.Unix(1, 0)})
		}, want: NodeGone, told: map[string]DrainOutcome{claim: NodeGone, stranger: DrainCanceled}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			lab := newDrainLab(t)
			lab.evict = untilCanceled
			lab.RegisterDelayedCallback(func() { lab.SignalWorkflow(SignalDrainNotify, DrainWaiter{Workflow: claim, NodeUID: "uid-1"}) }, time.Second)
			lab.RegisterDelayedCallback(func() { test.then(lab) }, time.Minute)
			if got := lab.run(DrainInput{Cluster: "c", Node: "n", NodeUID: "uid-1", Claim: "a", Reason: ReasonManualDrain}); got.Outcome != test.want {
				t.Errorf("the drain ended as %q, want %q", got.Outcome, test.want)
			}
			told := map[string]DrainOutcome{}
			for id, result := range lab.told {
				told[id] = result.Outcome
			}
			if diff := cmp.Diff(test.told, told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if lab.uncordons > 0 {
				t.Error("a node whose claim may be going was opened")
			}
		})
	}
}
