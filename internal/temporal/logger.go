package temporal

import (
	"slices"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/internal/logs"
)

// logger lets the SDK, and workflows and activities through it, log to zap.
type logger struct{ sugared *zap.SugaredLogger }

var (
	_ log.WithLogger      = logger{}
	_ log.WithSkipCallers = logger{}
)

// keys are the names on Tenon's own lines of what the SDK calls otherwise, so that one search finds both.
var keys = map[any]string{"WorkflowID": logs.WorkflowID, "RunID": logs.RunID, "WorkflowType": logs.WorkflowType, "ActivityType": logs.Activity, "Attempt": logs.Attempt}

// NewLogger adapts a zap logger to the SDK.
func NewLogger(to *zap.Logger) log.Logger {
	return logger{to.WithOptions(zap.AddCallerSkip(1)).Sugar()}
}

// Debug implements log.Logger.
func (l logger) Debug(message string, fields ...any) { l.sugared.Debugw(message, renamed(fields)...) }

// Info implements log.Logger.
func (l logger) Info(message string, fields ...any) { l.sugared.Infow(message, renamed(fields)...) }

// Warn implements log.Logger.
func (l logger) Warn(message string, fields ...any) { l.sugared.Warnw(message, renamed(fields)...) }

// Error implements log.Logger.
func (l logger) Error(message string, fields ...any) { l.sugared.Errorw(message, renamed(fields)...) }

// With implements log.WithLogger.
func (l logger) With(fields ...any) log.Logger { return logger{l.sugared.With(renamed(fields)...)} }

// WithCallerSkip implements log.WithSkipCallers.
func (l logger) WithCallerSkip(depth int) log.Logger {
	return logger{l.sugared.WithOptions(zap.AddCallerSkip(depth))}
}

// renamed returns fields, keys and values in turn, with the keys of Tenon's lines.
func renamed(fields []any) []any {
	fields = slices.Clone(fields)
	for i := 0; i+1 < len(fields); i += 2 {
		if ours, known := keys[fields[i]]; known {
			fields[i] = ours
		}
	}
	return fields
}
