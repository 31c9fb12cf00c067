package logs

import (
	"context"
	"slices"

	"go.uber.org/zap"
)

// The keys of what identifies the work that a line belongs to.
const (
	// WorkflowID, RunID and WorkflowType are of the workflow, or of the one whose activity it is.
	WorkflowID, RunID, WorkflowType = "workflow_id", "run_id", "workflow"
	// Activity is the type of the activity, and Attempt counts from 1.
	Activity, Attempt = "activity", "attempt"
)

type workKey struct{}

// With returns a context whose work has fields, in addition to those that it has already.
func With(ctx context.Context, fields ...zap.Field) context.Context {
	before, _ := ctx.Value(workKey{}).([]zap.Field)
	return context.WithValue(ctx, workKey{}, slices.Concat(before, fields))
}

// Of returns a logger with the fields of the context's work. Without any it is the same logger.
func Of(ctx context.Context, log *zap.Logger) *zap.Logger {
	fields, _ := ctx.Value(workKey{}).([]zap.Field)
	if len(fields) == 0 {
		return log
	}
	return log.With(fields...)
}
