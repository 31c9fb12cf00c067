package main

import (
	"context"
	"fmt"
)

// verdict is the result of a step.
type verdict string

const (
	// passed and failed are verdicts on steps that a promise of Tenon's rests on.
	passed verdict = "passed"
	failed verdict = "FAILED"
	// observed is for steps that show how EC2 behaves where its documentation is silent. Tenon is right either way.
	observed verdict = "observed"
	// notRun is for steps that lack something.
	notRun verdict = "not run"
)

// outcome is a verdict and what was seen.
type outcome struct {
	verdict verdict
	text    string
}

func pass(format string, args ...any) outcome { return outcome{passed, fmt.Sprintf(format, args...)} }

func fail(format string, args ...any) outcome { return outcome{failed, fmt.Sprintf(format, args...)} }

func observe(format string, args ...any) outcome {
	return outcome{observed, fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) outcome { return outcome{notRun, fmt.Sprintf(format, args...)} }

// step is one action and its check.
type step struct {
	name  string
	shows string
	// instances is how many it launches at most, as if a replayed token launched anew.
	instances int
	// reserved is how many instances it reserves, and actionMinutes how many minutes FIS works.
	reserved, actionMinutes int
	run                     func(ctx context.Context, l *live) outcome
}

// result is the outcome of a step.
type result struct {
	step string
	outcome
}

// The steps that other steps refer to.
const (
	stepOnDemand    = "on-demand node"
	stepInFlight    = "replay in flight"
	stepPartial     = "partial launch"
	stepNoCapacity  = "no capacity"
	stepReserved    = "reserved node"
	stepSpot        = "spot node"
	stepReservation = "reservation"
)
