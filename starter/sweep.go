package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/workflows"
)

// sweepTimeout ends a sweep that no worker finishes: while it runs, the Schedule starts no other.
const sweepTimeout = 10 * time.Minute

// sweep maintains the Schedule that runs the sweep.
type sweep struct {
	temporal client.Client
	cluster  workflows.Cluster
	// every is the sweep interval while anything that the sweep compares changes.
	every    time.Duration
	compared *compared
	log      *zap.Logger
}

// keep makes sure that the sweep's Schedule exists as this worker is configured and is not paused, and runs it once
// now: a new leader does not know what was missed before. It does so for as long as the worker leads, since the sweep
// is the safety net under everything else, and runs the sweep more often while things change (unrest.go).
func (s *sweep) keep(ctx context.Context) error {
	var seen unrest
	for pause, first := time.Second, true; ; {
		fingerprint, unknown := s.compared.fingerprint(ctx)
		if unknown != nil && ctx.Err() == nil {
			s.log.Warn("whether there is anything to sweep is not known", zap.Error(unknown))
		}
		err := s.ensure(ctx, seen.due(fingerprint, unknown == nil, time.Now(), s.every) || first, first)
		wait := s.every
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			s.log.Warn("could not set up the sweep's schedule", zap.Error(err))
			wait, pause, first = pause, min(2*pause, maxRetryPause), true
		default:
			pause, first = time.Second, false
		}
		if err := smithytime.SleepWithContext(ctx, wait); err != nil {
			return err
		}
	}
}

// ensure creates the Schedule, or updates the existing one. With trigger, it runs the sweep at once. With anew, it writes the
// Schedule in any case: a Schedule outlives every workflow, and would keep what it was written with encrypted with an old key.
func (s *sweep) ensure(ctx context.Context, trigger, anew bool) error {
	schedules := s.temporal.ScheduleClient()
	options := s.options()
	_, err := schedules.Create(ctx, options)
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err
	}
	handle := schedules.GetHandle(ctx, options.ID)
	there, err := handle.Describe(ctx)
	if err != nil {
		return fmt.Errorf("read the sweep's schedule: %w", err)
	}
	if state := there.Schedule.State; state != nil && state.Paused {
		s.log.Warn("the sweep's schedule was paused; it goes on", zap.String("note", state.Note))
		if err := handle.Unpause(ctx, client.ScheduleUnpauseOptions{Note: "the sweep is the safety net under every node; a longer --sweep-interval makes it rarer"}); err != nil {
			return fmt.Errorf("unpause the sweep's schedule: %w", err)
		}
	}
	if anew || !upToDate(&there.Schedule, options) {
		if err := handle.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(now client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			now.Description.Schedule.Spec, now.Description.Schedule.Action = &options.Spec, options.Action
			return &client.ScheduleUpdate{Schedule: &now.Description.Schedule}, nil
		}}); err != nil {
			return fmt.Errorf("update the sweep's schedule: %w", err)
		}
	}
	if !trigger {
		return nil
	}
	return handle.Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP})
}

// upToDate says whether a Schedule has the wanted interval and the timeout of its sweeps.
func upToDate(there *client.Schedule, want client.ScheduleOptions) bool {
	action, ok := there.Action.(*client.ScheduleWorkflowAction)
	return ok && action.WorkflowRunTimeout == sweepTimeout && there.Spec != nil && len(there.Spec.Intervals) == 1 && there.Spec.Intervals[0] == want.Spec.Intervals[0]
}

func (s *sweep) options() client.ScheduleOptions {
	return client.ScheduleOptions{
		ID:      s.cluster.SweepID(),
		Spec:    client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: time.Duration(netEvery) * s.every}}},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		// A missed sweep is not worth catching up on: the next one sees the same.
		CatchupWindow: s.every,
		Action: &client.ScheduleWorkflowAction{
			ID: s.cluster.SweepID(), Workflow: workflows.SweepType, TaskQueue: s.cluster.TaskQueue(), WorkflowRunTimeout: sweepTimeout,
			Args: []any{workflows.SweepInput{Cluster: s.cluster}}, StaticSummary: "compare cloud, cluster and workflows",
			TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrCluster.ValueSet(string(s.cluster))),
		},
		TriggerImmediately: true,
	}
}
