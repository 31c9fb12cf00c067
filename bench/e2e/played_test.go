package e2e_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/bench/e2e"
	"github.com/tenon-sh/tenon/bench/tenon"
)

// TestPlayedContestEndsWell checks that the decisions of plan.Disrupt alone bring the work's bill close to the cheapest
// packing of the remaining pods.
func TestPlayedContestEndsWell(t *testing.T) {
	machines, err := e2e.Machines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	options := day.Options{Step: time.Minute, ConsolidateAfter: 30 * time.Second, Catalogue: machines, Waves: 3}
	settled, err := day.Settle(t.Context(), options, e2e.Groups(), nil, tenon.Consolidate)
	if err != nil {
		t.Fatal(err)
	}
	left := e2e.Groups()
	for i := range left {
		left[i].Before = left[i].After
	}
	options.Waves = 1
	best, err := day.Settle(t.Context(), options, left, nil, tenon.Consolidate)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("from $%.2f to $%.2f an hour in %d steps, %d pods moved; all pods anew would cost $%.2f",
		settled.Before, settled.After, settled.Steps, settled.PodsMoved, best.Before)
	if settled.After > 1.05*best.Before {
		t.Errorf("the bill ends at $%.2f, want at most 1.05 times the $%.2f that all pods would cost anew", settled.After, best.Before)
	}
}
