package activities

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/tenon-sh/tenon/workflows"
)

// heartbeatEvery is the pause before each heartbeat, including the first: heartbeats are actions, and the drain of an empty
// node is over by then.
const heartbeatEvery = 4 * time.Second

// Evict cordons a node and evicts its pods in the order of plan.Drain. It returns when the node is drained or gone, at the
// deadline, when the blockers have changed and settled, after half an hour, or when it is cancelled; all but the first two
// leave Done and Gone false, and the workflow decides what to do. Errors of the API server are returned and retried;
// refused evictions are blockers, not errors.
func (d *Drains) Evict(ctx context.Context, in workflows.EvictInput) (workflows.EvictResult, error) {
	begun, local := activity.GetInfo(ctx).StartedTime, time.Now()
	progress := evictProgress{Started: begun}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &progress); err != nil {
			return workflows.EvictResult{}, fmt.Errorf("read progress of the last try: %w", err)
		}
	}
	node, err := d.objects().node(ctx, in.Node, in.NodeUID)
	if err != nil {
		return workflows.EvictResult{}, err
	}
	if node == nil {
		return workflows.EvictResult{Gone: true}, nil
	}
	if node, err = d.cordon(ctx, node, in.Claim != "", in.Reason == workflows.ReasonManualDrain); err != nil {
		return workflows.EvictResult{}, err
	}
	if in.HooksOf != "" && !in.Force && d.Hooked != nil && d.Hooked(in.HooksOf) {
		return workflows.EvictResult{HooksDue: true}, nil
	}
	p := newPass(d, in, node, begun, local, progress)
	defer p.close()
	stopped := make(chan struct{})
	defer close(stopped)
	go beat(ctx, stopped, progress.Started, &p.evicted)

	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	stopping := activity.GetWorkerStopChannel(ctx)
	go func() {
		select {
		case <-stopping:
			stop(errWorkerStopping)
		case <-stopped:
		}
	}()
	err = p.run(running)
	p.result.Evicted = int(p.evicted.Load())
	if cause := context.Cause(running); cause != nil {
		if temporal.IsCanceledError(cause) {
			return p.result, nil
		}
		return workflows.EvictResult{}, fmt.Errorf("evict the pods of %s: %w", in.Node, cause)
	}
	return p.result, err
}

// beat sends heartbeats until stopped is closed. A cancellation reaches the activity with the response to a heartbeat.
func beat(ctx context.Context, stopped <-chan struct{}, started time.Time, evicted *atomic.Int64) {
	ticker := time.NewTicker(heartbeatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			activity.RecordHeartbeat(ctx, evictProgress{Started: started, Evicted: int(evicted.Load())})
		case <-stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}
