package starter

import (
	"context"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/workflows"
)

// keepSchedule makes the sweep's Schedule exist, and has it run once now: whoever has just become the leader does not
// know what was missed before.
func (s *Starter) keepSchedule(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, time.Minute) {
		err := s.ensureSchedule(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.Log.Warn("could not set up the sweep's schedule", zap.Error(err))
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	for {
		if err := sleep(ctx, s.SweepEvery); err != nil {
			return err
		}
		s.forgetGone()
	}
}

func (s *Starter) ensureSchedule(ctx context.Context) error {
	schedules := s.Temporal.ScheduleClient()
	_, err := schedules.Create(ctx, client.ScheduleOptions{
		ID:      s.Cluster.SweepID(),
		Spec:    client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: s.SweepEvery}}},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		// A sweep that could not run is not worth making up for: the next one sees the same.
		CatchupWindow: s.SweepEvery,
		Action: &client.ScheduleWorkflowAction{
			ID: s.Cluster.SweepID(), Workflow: workflows.SweepType, TaskQueue: s.Cluster.TaskQueue(),
			Args: []any{workflows.SweepInput{Cluster: s.Cluster}}, StaticSummary: "compare cloud, cluster and workflows",
			TypedSearchAttributes: temporal.NewSearchAttributes(workflows.AttrCluster.ValueSet(string(s.Cluster))),
		},
		TriggerImmediately: true,
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return schedules.GetHandle(ctx, s.Cluster.SweepID()).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP})
	}
	return err
}

// forgetGone drops what was told about objects that no longer exist.
func (s *Starter) forgetGone() {
	alive := map[types.UID]bool{}
	for _, claim := range s.Mirror.Claims() {
		alive[claim.UID] = true
	}
	for _, node := range s.Mirror.Nodes() {
		alive[node.UID] = true
	}
	s.told.retain(alive)
	s.interruptions.retain(alive)
	s.repairs.retain(alive)
	s.expired.retain(alive)
	s.lost.retain(alive)
}

// sleep waits, unless the context ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
