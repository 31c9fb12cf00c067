package starter

import (
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestSignalled says when Disruption hears of what is due: at once of a node that is new, and ever less often of the
// same ones.
func TestSignalled(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	due := func(nodes ...string) plan.Disruption {
		return plan.Disruption{Commands: []plan.Command{{Nodes: nodes}}}
	}
	var last signalled
	for _, step := range []struct {
		reason string
		after  time.Duration
		found  plan.Disruption
		news   bool
		wait   time.Duration
	}{
		{"nobody was told", 0, due("a"), true, 10 * time.Second},
		{"the same a moment later", time.Second, due("a"), false, 9 * time.Second},
		{"another node", time.Second, due("a", "b"), true, 10 * time.Second},
		{"fewer nodes are no news", 5 * time.Second, due("b"), false, 5 * time.Second},
		{"the same after a while", 5 * time.Second, due("b"), true, 20 * time.Second},
		{"the same, but not as soon", 10 * time.Second, due("b"), false, 10 * time.Second},
		{"and once more", 10 * time.Second, due("b"), true, 40 * time.Second},
		{"a node that was not among the last", time.Second, due("a"), true, 10 * time.Second},
	} {
		start = start.Add(step.after)
		if news, wait := last.news(start, step.found); news != step.news || wait != step.wait {
			t.Errorf("%s: news %t, look again after %s; want %t, %s", step.reason, news, wait, step.news, step.wait)
		}
	}
}

// TestGather says when Disruption hears of nodes that come due one after the other.
func TestGather(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	type look struct {
		after, next time.Duration
		wait        time.Duration
	}
	for _, test := range []struct {
		reason string
		due    karpv1.DisruptionReason
		looks  []look
	}{
		{"nothing else comes due", karpv1.DisruptionReasonEmpty, []look{{0, 0, 0}}},
		{"what comes due much later is not waited for", karpv1.DisruptionReasonEmpty, []look{{0, 20 * time.Second, 0}}},
		{"what comes due in a moment is waited for, and then nothing is left to wait for", karpv1.DisruptionReasonEmpty, []look{
			{0, 2 * time.Second, 2 * time.Second}, {2 * time.Second, 0, 0}}},
		{"what should have come due already is waited for no longer than changes settle", karpv1.DisruptionReasonEmpty, []look{
			{0, -time.Second, settle}, {time.Second, 0, 0}}},
		{"a row of nodes is not waited for endlessly", karpv1.DisruptionReasonEmpty, []look{
			{0, 3 * time.Second, 3 * time.Second}, {3 * time.Second, 3 * time.Second, 3 * time.Second}, {3 * time.Second, 3 * time.Second, 0}}},
		{"the next ones are waited for as long again", karpv1.DisruptionReasonEmpty, []look{
			{0, time.Second, time.Second}, {7 * time.Second, time.Second, 0}, {time.Second, time.Second, time.Second}}},
		{"nodes with pods wait for nothing", karpv1.DisruptionReasonUnderutilized, []look{{0, 2 * time.Second, 0}}},
	} {
		var last signalled
		now := start
		for i, look := range test.looks {
			now = now.Add(look.after)
			found := plan.Disruption{Commands: []plan.Command{{Reason: test.due, Nodes: []string{"a"}}}}
			if look.next != 0 {
				found.NextLook = now.Add(look.next)
			}
			if wait := last.gather(now, found); wait != look.wait {
				t.Errorf("%s: look %d waits %s, want %s", test.reason, i, wait, look.wait)
			}
		}
	}
}
