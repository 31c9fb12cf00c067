package starter

import (
	"context"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestWhatIsForSaleAgainIsSeen checks that an offering that becomes available again is seen, though no object of the
// cluster changes.
func TestWhatIsForSaleAgainIsSeen(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	var found plan.Disruption
	e.disruption.find = func(context.Context, *plan.Snapshot) plan.Disruption { return found }
	for _, step := range []struct {
		reason  string
		found   plan.Disruption
		signals int
	}{
		{reason: "nothing can be replaced, and nothing says when", found: plan.Disruption{}, signals: 0},
		{reason: "the next look is an hour away", found: plan.Disruption{NextLook: time.Now().Add(time.Hour)}, signals: 0},
		{reason: "a replacement is for sale",
			found: plan.Disruption{Commands: []plan.Command{{Reason: karpv1.DisruptionReasonDrifted, Nodes: []string{"a"}}}}, signals: 1},
	} {
		found = step.found
		if wait := e.disruption.look(t.Context()); wait <= 0 || wait > idleLookEvery {
			t.Errorf("%s: the next look is in %s, want one within %s", step.reason, wait, idleLookEvery)
		}
		if got := len(e.temporal.all); got != step.signals {
			t.Errorf("%s: %d signals, want %d", step.reason, got, step.signals)
		}
	}
}
