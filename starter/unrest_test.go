package starter

import (
	"testing"
	"time"
)

// TestSweepsFollowChanges plays hours of looks and counts the sweeps that they lead to, beside those of the Schedule.
func TestSweepsFollowChanges(t *testing.T) {
	t.Parallel()
	const every = 2 * time.Minute
	began := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		// print is what there is after some time.
		print func(after time.Duration) uint64
		want  int
	}{
		"nothing changes":        {func(time.Duration) uint64 { return 1 }, 3},
		"one thing changes":      {func(after time.Duration) uint64 { return 1 + uint64(after/(30*time.Minute)) }, 6},
		"something changes ever": {func(after time.Duration) uint64 { return 1 + uint64(after) }, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen unrest
			swept := 0
			for after := time.Duration(0); after < time.Hour; after += every {
				if seen.due(test.print(after), began.Add(after), every) {
					swept++
				}
			}
			if swept != test.want {
				t.Errorf("%d sweeps in an hour, want %d", swept, test.want)
			}
		})
	}
}
