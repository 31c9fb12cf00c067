package failpoint

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// Interceptor puts a point between the end of an activity and Temporal's hearing of it, and bounds heartbeat timeouts.
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
	inbound := &hurried{most: w.points.heartbeat}
	inbound.Next = next
	return inbound
}

type hurried struct {
	interceptor.WorkflowInboundInterceptorBase
	most time.Duration
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (h *hurried) Init(outbound interceptor.WorkflowOutboundInterceptor) error {
	scheduling := &heartbeats{most: h.most}
	scheduling.Next = outbound
	return h.Next.Init(scheduling)
}

type heartbeats struct {
	interceptor.WorkflowOutboundInterceptorBase
	most time.Duration
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor. A replay does not compare timeouts, so histories
// written with and without this fit each other.
func (h *heartbeats) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	if h.most > 0 && workflow.GetActivityOptions(ctx).HeartbeatTimeout > h.most {
		ctx = workflow.WithHeartbeatTimeout(ctx, h.most)
	}
	return h.Next.ExecuteActivity(ctx, activityType, args...)
}
