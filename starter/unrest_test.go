package starter

import (
	"testing"
	"time"
)

// TestSweepsFollowChanges simulates hours of looks and counts the sweeps that they cause, without those of the
// Schedule.
func TestSweepsFollowChanges(t *testing.T) {
	t.Parallel()
	const every = 2 * time.Minute
	began := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// print returns the fingerprint after some time.
		print   func(after time.Duration) uint64
		unknown func(after time.Duration) bool
		want    int
	}{
		"nothing changes":        {print: func(time.Duration) uint64 { return 1 }, want: 3},
		"one thing changes":      {print: func(after time.Duration) uint64 { return 1 + uint64(after/(30*time.Minute)) }, want: 6},
		"something changes ever": {print: func(after time.Duration) uint64 { return 1 + uint64(after) }, want: 30},
		// Three sweeps at the start, five while nothing is known, and two after it.
		"EC2 does not answer for a while": {
			print:   func(time.Duration) uint64 { return 1 },
			unknown: func(after time.Duration) bool { return after >= 10*time.Minute && after < 20*time.Minute }, want: 10,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen unrest
			swept := 0
			for after := time.Duration(0); after < time.Hour; after += every {
				if seen.due(test.print(after), test.unknown == nil || !test.unknown(after), began.Add(after), every) {
					swept++
				}
			}
			if swept != test.want {
				t.Errorf("%d sweeps in an hour, want %d", swept, test.want)
			}
		})
	}
}
