package logs

import (
	"slices"

	"go.uber.org/zap/zapcore"
)

// core writes the lines that their component's level lets through, with each key once. It keeps fields as they are until a
// line is written, since only then it is known which of them win.
type core struct {
	levels Levels
	to     zapcore.Core
	fields []zapcore.Field
}

// Enabled implements zapcore.Core. The component is not known yet, so it is true for whatever some component logs.
func (c *core) Enabled(level zapcore.Level) bool { return level >= c.levels.lowest }

// With implements zapcore.Core.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{levels: c.levels, to: c.to, fields: slices.Concat(c.fields, fields)}
}

// Check implements zapcore.Core.
func (c *core) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level < c.levels.of(entry.LoggerName) {
		return checked
	}
	return checked.AddCore(entry, c)
}

// Write implements zapcore.Core.
func (c *core) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	return c.to.Write(entry, once(slices.Concat(c.fields, fields)))
}

// Sync implements zapcore.Core.
func (c *core) Sync() error { return c.to.Sync() }

// once returns fields without those whose key comes again later. What follows a namespace is inside an object of its own.
func once(fields []zapcore.Field) []zapcore.Field {
	end := slices.IndexFunc(fields, func(f zapcore.Field) bool { return f.Type == zapcore.NamespaceType })
	if end < 0 {
		end = len(fields)
	}
	kept := make([]zapcore.Field, 0, len(fields))
	for i, field := range fields {
		again := i < end && slices.ContainsFunc(fields[i+1:end], func(f zapcore.Field) bool { return f.Key == field.Key && f.Type != zapcore.SkipType })
		if !again || field.Type == zapcore.InlineMarshalerType {
			kept = append(kept, field)
		}
	}
	return kept
}
