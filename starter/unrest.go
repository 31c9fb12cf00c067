package starter

import (
	"time"

	"github.com/tenon-sh/tenon/workflows"
)

// A sweep costs four actions of Temporal, and where nothing has changed since the last one it finds the same again. So the
// Schedule sweeps rarely, as a net, and whoever leads looks at what a sweep compares as often as the sweep is to run, which
// costs no action, and has it run when that has changed: at once, and again for as long as what has just begun may still
// come to nothing.

const (
	// netEvery is how many intervals lie between two sweeps of the Schedule (workflows.SweepNet).
	netEvery = int(workflows.SweepNet / workflows.SweepInterval)
	// restlessFor is how long after a change sweeps go on: an instance without a NodeClaim, a NodeClaim without a workflow and
	// an instance that is gone are believed only after some time. At least two follow a change.
	restlessFor = 2 * time.Minute
)

// unrest knows when what a sweep compares has changed last.
type unrest struct {
	fingerprint uint64
	changed     time.Time
}

// due takes in what there is now, where that is known, and says whether a sweep is to run. Where it is not known, it is: who
// could not look now has not seen what changed meanwhile either.
func (u *unrest) due(fingerprint uint64, known bool, now time.Time, every time.Duration) bool {
	switch {
	case !known:
		u.changed = now
	case fingerprint != u.fingerprint:
		u.fingerprint, u.changed = fingerprint, now
	}
	return now.Sub(u.changed) <= max(restlessFor, 2*every)
}
