package logs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.uber.org/zap/zapcore"
)

// Levels says from which level on lines are written.
type Levels struct {
	// usual is the level of components without one of their own.
	usual zapcore.Level
	own   map[string]zapcore.Level
	// lowest is the lowest of all.
	lowest zapcore.Level
}

// ParseLevels reads levels as people write them: info, or info,planner=debug,aws=warn. Without a level for the others, that
// is info. The error names every mistake.
func ParseLevels(text string) (Levels, error) {
	levels := Levels{usual: zapcore.InfoLevel, own: map[string]zapcore.Level{}}
	var wrong []error
	usual := false
	for part := range strings.SplitSeq(text, ",") {
		name, value, component := strings.Cut(strings.TrimSpace(part), "=")
		if !component {
			name, value = "", name
		}
		level, err := parseLevel(value)
		_, twice := levels.own[name]
		switch {
		case err != nil:
			wrong = append(wrong, err)
		case !component && usual:
			wrong = append(wrong, fmt.Errorf("%q: the level of all components is there twice", value))
		case !component:
			levels.usual, usual = level, true
		case !slices.ContainsFunc(Components(), func(c Component) bool { return c.Name == name }):
			wrong = append(wrong, fmt.Errorf("%q is no component; there are %s", name, ComponentNames()))
		case twice:
			wrong = append(wrong, fmt.Errorf("the level of %s is there twice", name))
		default:
			levels.own[name] = level
		}
	}
	levels.lowest = levels.usual
	for _, level := range levels.own {
		levels.lowest = min(levels.lowest, level)
	}
	return levels, errors.Join(wrong...)
}

// parseLevel reads one level.
func parseLevel(text string) (zapcore.Level, error) {
	names := map[string]zapcore.Level{"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "warn": zapcore.WarnLevel, "error": zapcore.ErrorLevel}
	level, known := names[strings.ToLower(text)]
	if !known {
		return level, fmt.Errorf("%q must be debug, info, warn or error, or a list such as info,planner=debug,aws=warn", text)
	}
	return level, nil
}

// of returns the level of a logger by its name.
func (l Levels) of(logger string) zapcore.Level {
	component, _, _ := strings.Cut(logger, ".")
	if level, own := l.own[component]; own {
		return level
	}
	return l.usual
}
