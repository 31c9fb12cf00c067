// Package logs is how Tenon logs: lines of JSON or for people, with a level for each component, and with the ids of the
// workflow and the activity on every line of their work.
//
// A component is the name of a logger up to the first dot. A line's context is what the worker has put into the context of an
// activity: its code logs by Of(ctx, log). No key is twice on a line: the field nearest to the message wins.
//
// Reading order: components, levels, core, work, logs.
package logs

import (
	"fmt"
	"io"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// The values of Options.Format.
const (
	JSON    = "json"
	Console = "console"
)

// Options say what a process logs.
type Options struct {
	// Format is JSON or Console.
	Format string
	// Levels is a level, or a list of levels by component, as ParseLevels reads it.
	Levels string
}

// Validate returns an error about the first invalid option.
func (o Options) Validate() error {
	if formats := []string{JSON, Console}; !slices.Contains(formats, o.Format) {
		return fmt.Errorf("--log-format %q: must be %s or %s", o.Format, JSON, Console)
	}
	if _, err := ParseLevels(o.Levels); err != nil {
		return fmt.Errorf("--log-level %q: %w", o.Levels, err)
	}
	return nil
}

// New returns a logger that writes lines. Its Named loggers are those of components.
func New(options Options, to io.Writer) (*zap.Logger, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	levels, err := ParseLevels(options.Levels)
	if err != nil {
		return nil, err
	}
	sink := zapcore.Lock(zapcore.AddSync(to))
	return zap.New(&core{levels: levels, to: zapcore.NewCore(encoder(options.Format), sink, zapcore.DebugLevel)}, zap.AddCaller(), zap.AddStacktrace(zap.ErrorLevel), zap.ErrorOutput(sink)), nil
}

// encoder writes JSON as zap's production configuration does, and for people with times that they can read.
func encoder(format string) zapcore.Encoder {
	keys := zap.NewProductionEncoderConfig()
	if format == JSON {
		return zapcore.NewJSONEncoder(keys)
	}
	keys.EncodeTime = zapcore.ISO8601TimeEncoder
	keys.EncodeLevel = zapcore.CapitalLevelEncoder
	keys.EncodeDuration = zapcore.StringDurationEncoder
	return zapcore.NewConsoleEncoder(keys)
}
