package failpoint

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/tenon-sh/tenon/workflows"
)

// Interceptor puts a point between the end of an activity and its report to Temporal, and limits what workflows wait for.
func (p *Points) Interceptor() interceptor.WorkerInterceptor { return &workers{points: p} }

type workers struct {
	interceptor.WorkerInterceptorBase
	points *Points
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *workers) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	inbound := &acknowledged{points: w.points}
	inbound.Next = next
	return inbound
}

type acknowledged struct {
	interceptor.ActivityInboundInterceptorBase
	points *Points
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *acknowledged) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := a.Next.ExecuteActivity(ctx, in)
	if err == nil {
		a.points.hit(side{effect: activity.GetInfo(ctx).ActivityType.Name}, "ack")
	}
	return result, err
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (w *workers) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	inbound := &hurried{bounds: w.points.bounds}
	inbound.Next = next
	return inbound
}

type hurried struct {
	interceptor.WorkflowInboundInterceptorBase
	bounds bounds
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (h *hurried) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	bounded := &bounded{bounds: h.bounds}
	bounded.Next = outbound
	return h.Next.Init(bounded)
}

// bounded limits timeouts, timers and inputs. A replay compares none of them, so histories recorded with and without bounds
// are compatible.
type bounded struct {
	interceptor.WorkflowOutboundInterceptorBase
	bounds bounds
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (b *bounded) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if most := b.bounds.heartbeat; most > 0 && workflow.GetActivityOptions(ctx).HeartbeatTimeout > most {
		ctx = workflow.WithHeartbeatTimeout(ctx, most)
	}
	for i := range args {
		in, awaits := args[i].(workflows.AwaitReplacementsInput)
		if until := workflow.Now(ctx).Add(b.bounds.serve); awaits && b.bounds.serve > 0 && in.Until.After(until) {
			in.Until = until
			args[i] = in
		}
	}
	return b.Next.ExecuteActivity(ctx, activityType, args...)
}

// NewTimerWithOptions implements interceptor.WorkflowOutboundInterceptor. It shortens the timer for which replacements have
// to serve. It recognises that timer by its length, which no other timer of a Replacement has.
func (b *bounded) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	if b.bounds.stable > 0 && d == workflows.StableFor && workflow.GetInfo(ctx).WorkflowType.Name == workflows.ReplacementType {
		d = min(d, b.bounds.stable)
	}
	return b.Next.NewTimerWithOptions(ctx, d, options)
}
