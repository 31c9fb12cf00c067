package worker

import (
	"context"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

// activityLog puts onto every line of an activity's work which activity of which workflow it is, and which node it is about
// if the workflow's id says so. The ids of workflows are readable on purpose.
type activityLog struct {
	interceptor.WorkerInterceptorBase
	cluster workflows.Cluster
	// claim returns a NodeClaim of the mirror; nil if there is none of that name.
	claim func(name string) *karpv1.NodeClaim
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (l *activityLog) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	inbound := &loggedActivity{log: l}
	inbound.Next = next
	return inbound
}

type loggedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	log *activityLog
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *loggedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	fields := []zap.Field{zap.String(logs.WorkflowID, info.WorkflowExecution.ID), zap.String(logs.RunID, info.WorkflowExecution.RunID),
		zap.String(logs.Activity, info.ActivityType.Name), zap.Int32(logs.Attempt, info.Attempt)}
	return a.Next.ExecuteActivity(logs.With(ctx, append(fields, a.log.about(info.WorkflowExecution.ID)...)...), in)
}

// about returns the claim, node and NodePool that a workflow is about, as far as they are known.
func (l *activityLog) about(workflow string) []zap.Field {
	if node, drain := strings.CutPrefix(workflow, l.cluster.DrainID("")); drain {
		return []zap.Field{zap.String("node", node)}
	}
	name, life := strings.CutPrefix(workflow, l.cluster.NodeClaimID(""))
	if !life {
		return nil
	}
	fields := []zap.Field{zap.String("claim", name)}
	if claim := l.claim(name); claim != nil {
		if pool := claim.Labels[karpv1.NodePoolLabelKey]; pool != "" {
			fields = append(fields, zap.String("pool", pool))
		}
		if claim.Status.NodeName != "" {
			fields = append(fields, zap.String("node", claim.Status.NodeName))
		}
	}
	return fields
}
