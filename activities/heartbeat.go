package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
)

// heartbeat sends heartbeats for an activity until done is called. Cancellation of the activity arrives with the heartbeats,
// as cancellation of its context. The returned context also ends when the worker is told to stop, so that another worker
// can continue at once instead of after a heartbeat timeout.
func heartbeat(ctx context.Context) (beating context.Context, done func()) {
	beating, cancel := context.WithCancelCause(ctx)
	finished := make(chan struct{})
	go func() {
		ticker := time.NewTicker(max(activity.GetInfo(ctx).HeartbeatTimeout/2, time.Second))
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			case <-activity.GetWorkerStopChannel(ctx):
				cancel(errWorkerStopping)
				return
			case <-ctx.Done():
				return
			case <-finished:
				return
			}
		}
	}()
	return beating, func() {
		close(finished)
		cancel(nil)
	}
}

// errWorkerStopping makes another worker continue the activity.
var errWorkerStopping = errors.New("this worker is stopping; another one goes on")
