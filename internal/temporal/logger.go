package temporal

import (
	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
)

// logger lets the SDK, and workflows and activities through it, log to zap.
type logger struct{ sugared *zap.SugaredLogger }

var (
	_ log.WithLogger      = logger{}
	_ log.WithSkipCallers = logger{}
)

// NewLogger adapts a zap logger to the SDK.
func NewLogger(to *zap.Logger) log.Logger {
	return logger{to.WithOptions(zap.AddCallerSkip(1)).Sugar()}
}

// Debug implements log.Logger.
func (l logger) Debug(message string, fields ...any) { l.sugared.Debugw(message, fields...) }

// Info implements log.Logger.
func (l logger) Info(message string, fields ...any) { l.sugared.Infow(message, fields...) }

// Warn implements log.Logger.
func (l logger) Warn(message string, fields ...any) { l.sugared.Warnw(message, fields...) }

// Error implements log.Logger.
func (l logger) Error(message string, fields ...any) { l.sugared.Errorw(message, fields...) }

// With implements log.WithLogger.
func (l logger) With(fields ...any) log.Logger { return logger{l.sugared.With(fields...)} }

// WithCallerSkip implements log.WithSkipCallers.
func (l logger) WithCallerSkip(depth int) log.Logger {
	return logger{l.sugared.WithOptions(zap.AddCallerSkip(depth))}
}
