package starter

import (
	"time"

	"github.com/tenon-sh/tenon/workflows"
)

// A sweep costs four actions of Temporal, and if nothing has changed since the last one it finds the same again. So the
// Schedule sweeps rarely, as a safety net. The leader looks at what a sweep compares once every sweep interval, which
// costs no action, and triggers a sweep when that has changed: at once, and again for as long as what has just begun
// may still fail.

const (
	// netEvery is the number of intervals between two sweeps of the Schedule (workflows.SweepNet).
	netEvery = int(workflows.SweepNet / workflows.SweepInterval)
	// restlessFor is how long sweeps continue after a change: an instance without a NodeClaim, a NodeClaim without a
	// workflow and an instance that is gone are believed only after some time. At least two sweeps follow a change.
	restlessFor = 2 * time.Minute
)

// unrest records when what a sweep compares last changed.
type unrest struct {
	fingerprint uint64
	changed     time.Time
}

// due records the current fingerprint, if it is known, and says whether to run a sweep. An unknown fingerprint counts
// as a change: what has changed meanwhile was not seen.
func (u *unrest) due(fingerprint uint64, known bool, now time.Time, every time.Duration) bool {
	switch {
	case !known:
		u.changed = now
	case fingerprint != u.fingerprint:
		u.fingerprint, u.changed = fingerprint, now
	}
	return now.Sub(u.changed) <= max(restlessFor, 2*every)
}
