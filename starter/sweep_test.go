package starter

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
)

// scheduled is a Temporal server with one Schedule, which counts how often that is written. All other methods panic.
type scheduled struct {
	client.Client
	schedule schedule
}

func (s *scheduled) ScheduleClient() client.ScheduleClient { return schedules{schedule: &s.schedule} }

type schedules struct {
	client.ScheduleClient
	schedule *schedule
}

func (s schedules) Create(_ context.Context, options client.ScheduleOptions) (client.ScheduleHandle, error) {
	if s.schedule.there != nil {
		return nil, temporal.ErrScheduleAlreadyRunning
	}
	s.schedule.there = &client.Schedule{Action: options.Action, Spec: &options.Spec}
	s.schedule.written++
	return s.schedule, nil
}

func (s schedules) GetHandle(context.Context, string) client.ScheduleHandle { return s.schedule }

type schedule struct {
	client.ScheduleHandle
	there   *client.Schedule
	written int
}

func (s *schedule) Describe(context.Context) (*client.ScheduleDescription, error) {
	return &client.ScheduleDescription{Schedule: *s.there}, nil
}

func (s *schedule) Update(_ context.Context, options client.ScheduleUpdateOptions) error {
	update, err := options.DoUpdate(client.ScheduleUpdateInput{Description: client.ScheduleDescription{Schedule: *s.there}})
	if err == nil {
		s.there = update.Schedule
		s.written++
	}
	return err
}

// TestANewLeaderWritesTheSchedule shows that a new leader writes the sweep's Schedule, which is how its input becomes encrypted
// with the key of the day, and later only if it differs.
func TestANewLeaderWritesTheSchedule(t *testing.T) {
	t.Parallel()
	server := &scheduled{}
	for _, step := range []struct {
		reason  string
		every   time.Duration
		anew    bool
		written int
	}{
		{reason: "there is none", every: time.Minute, anew: true, written: 1},
		{reason: "it is as it should be", every: time.Minute, written: 1},
		{reason: "another interval", every: 2 * time.Minute, written: 2},
		{reason: "it is as it should be, and the leader is new", every: 2 * time.Minute, anew: true, written: 3},
	} {
		s := &sweep{temporal: server, cluster: "blue", every: step.every, log: zap.NewNop()}
		if err := s.ensure(t.Context(), false, step.anew); err != nil {
			t.Fatal(err)
		}
		if server.schedule.written != step.written {
			t.Errorf("%s: written %d times, want %d", step.reason, server.schedule.written, step.written)
		}
	}
}
