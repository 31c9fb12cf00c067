package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"
)

// steps returns the steps of a first run.
func steps() []step {
	return []step{
		{name: "preflight", shows: "who we are, what the node class means here, what it will cost", run: preflight},
		{name: stepOnDemand, shows: "our launch path: template, instant fleet, tags; the instance runs", instances: 1, run: onDemandNode},
		{name: "on-demand node joins", shows: "the user data is right; the node is drained by evictions", run: joins(stepOnDemand)},
		{name: "replay after success", shows: "the same token brings the same instances", instances: 1, run: replayAfterSuccess},
		{name: "token with another request", shows: "EC2 refuses it and launches nothing", instances: 2, run: mismatch},
		{name: stepInFlight, shows: "two equal requests at once launch once", instances: 3, run: inFlight},
		{name: "replay after the end", shows: "what a token brings whose instances were terminated", instances: 1, run: replayAfterEnd},
		{name: stepReservation, shows: "a targeted reservation of two, which ends by itself", reserved: 2, run: reserve},
		{name: stepPartial, shows: "three are asked for where two are reserved", instances: 3, run: partial},
		{name: "replay after a partial launch", shows: "the same token brings the same two and no third", instances: 3, run: replayOf(stepPartial)},
		{name: stepNoCapacity, shows: "a launch that only lacks capacity", instances: 1, run: noCapacity},
		{name: "replay after no capacity", shows: "the answer again", instances: 1, run: replayOf(stepNoCapacity)},
		{name: "replay when there is room", shows: "whether an answer without instances has spent the token", instances: 1, run: replayWithRoom},
		{name: stepReserved, shows: "our launch path into a reservation", instances: 1, run: reservedNode},
		{name: stepSpot, shows: "our launch path for spot capacity", instances: 1, run: spotNode},
		{name: "spot node joins", shows: "the user data is right; the node is drained by evictions", run: joins(stepSpot)},
		{name: "interruption by FIS", shows: "EC2's notice reaches the queue as Tenon reads it, and the instance ends", actionMinutes: experimentMinutes, run: interrupted},
	}
}

// laterSteps returns the steps of a resumed run.
func laterSteps() []step {
	return []step{
		{name: "preflight", shows: "who we are, what it will cost", run: resume},
		{name: "later: replay after success", shows: "what a token brings 25 hours later", instances: 1, run: later(stepOnDemand)},
		{name: "later: replay in flight", shows: "the same of the token that was sent twice", instances: 1, run: later(stepInFlight)},
		{name: "later: replay of a partial launch", shows: "the same, the reservation gone", instances: 3, run: later(stepPartial)},
		{name: "later: replay of no capacity", shows: "the same, the reservation gone", instances: 1, run: later(stepNoCapacity)},
	}
}

// cleanupPatience is how long the cleanup may take, in addition to the time of the run.
const cleanupPatience = 20 * time.Minute

// play runs the steps one after the other and always cleans up. It fails if a step did, or if anything is left.
func (l *live) play(ctx context.Context, steps []step) error {
	deadline := l.now().Add(longest)
	running, stop := context.WithTimeout(ctx, longest)
	defer stop()
	l.mayKeep = l.state.file != "" && l.resume == "" && !l.cleanupOnly
	fmt.Fprintf(l.out, "run %s=%s in %s, cluster %s\n", tagKey, l.run, l.region, l.cluster)
	for _, s := range steps {
		switch {
		case running.Err() != nil:
			l.report(s.name, skip("the run was broken off"))
			continue
		case l.now().After(deadline):
			l.report(s.name, fail("the run has taken longer than %v", longest))
			continue
		}
		l.recorder.enter(s.name)
		l.report(s.name, s.run(running, l))
		if len(l.results) == 1 && l.results[0].verdict == failed {
			break // nothing has been launched, and no later result could be trusted
		}
	}
	// An interrupt ends the run, not the cleanup.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupPatience)
	defer cancel()
	l.recorder.enter("cleanup")
	l.report("cleanup", l.cleanup(ctx))
	return l.conclude()
}

// conclude prints the summary.
func (l *live) conclude() error {
	counts := map[verdict]int{}
	for _, r := range l.results {
		counts[r.verdict]++
	}
	instances, together, cost := l.ledger.sum()
	w := tabwriter.NewWriter(l.out, 0, 0, 1, ' ', 0)
	fmt.Fprintf(w, "\n%d passed,\t%d observed,\t%d not run,\t%d failed\n", counts[passed], counts[observed], counts[notRun], counts[failed])
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the summary: %w", err)
	}
	fmt.Fprintf(l.out, "%d instances ran for %v together, at most $%.2f at on-demand prices, reservation and FIS not counted\n",
		instances, together.Round(time.Second), cost)
	if l.mayKeep && len(l.state.Spent) > 0 {
		fmt.Fprintf(l.out, "--resume %s is due at %s; launch templates and instance profile stay until then, and cost nothing\n",
			l.state.file, l.state.due().UTC().Format(time.RFC3339))
	}
	err := l.recorder.close()
	if counts[failed] > 0 {
		err = errors.Join(fmt.Errorf("%d steps failed", counts[failed]), err)
	}
	return err
}
