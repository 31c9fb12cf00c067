package starter

import (
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestSignalled checks when Disruption is signalled: at once for a new node, and ever less often for the same ones.
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
		{reason: "nobody was told", after: 0, found: due("a"), news: true, wait: 10 * time.Second},
		{reason: "the same a moment later", after: time.Second, found: due("a"), news: false, wait: 9 * time.Second},
		{reason: "another node", after: time.Second, found: due("a", "b"), news: true, wait: 10 * time.Second},
		{reason: "fewer nodes are no news", after: 5 * time.Second, found: due("b"), news: false, wait: 5 * time.Second},
		{reason: "the same after a while", after: 5 * time.Second, found: due("b"), news: true, wait: 20 * time.Second},
		{reason: "the same, but not as soon", after: 10 * time.Second, found: due("b"), news: false, wait: 10 * time.Second},
		{reason: "and once more", after: 10 * time.Second, found: due("b"), news: true, wait: 40 * time.Second},
		{reason: "a node that was not among the last", after: time.Second, found: due("a"), news: true, wait: 10 * time.Second},
	} {
		start = start.Add(step.after)
		if news, wait := last.news(start, step.found); news != step.news || wait != step.wait {
			t.Errorf("%s: news %t, look again after %s; want %t, %s", step.reason, news, wait, step.news, step.wait)
		}
	}
}

// TestGather checks when Disruption is signalled about nodes that come due one after the other.
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
		{reason: "nothing else comes due", due: karpv1.DisruptionReasonEmpty, looks: []look{{after: 0, next: 0, wait: 0}}},
		{reason: "what comes due much later is not waited for", due: karpv1.DisruptionReasonEmpty, looks: []look{{after: 0, next: 20 * time.Second, wait: 0}}},
		{reason: "what comes due in a moment is waited for, and then nothing is left to wait for", due: karpv1.DisruptionReasonEmpty, looks: []look{
			{after: 0, next: 2 * time.Second, wait: 2 * time.Second}, {after: 2 * time.Second, next: 0, wait: 0}}},
		{reason: "what should have come due already is waited for no longer than changes settle", due: karpv1.DisruptionReasonEmpty, looks: []look{
			{after: 0, next: -time.Second, wait: settle}, {after: time.Second, next: 0, wait: 0}}},
		{reason: "a row of nodes is not waited for endlessly", due: karpv1.DisruptionReasonEmpty, looks: []look{
			{after: 0, next: 3 * time.Second, wait: 3 * time.Second}, {after: 3 * time.Second, next: 3 * time.Second,
				wait: 3 * time.Second}, {after: 3 * time.Second, next: 3 * time.Second, wait: 0}}},
		{reason: "the next ones are waited for as long again", due: karpv1.DisruptionReasonEmpty, looks: []look{
			{after: 0, next: time.Second, wait: time.Second}, {after: 7 * time.Second, next: time.Second, wait: 0}, {after: time.Second,
				next: time.Second, wait: time.Second}}},
		{reason: "nodes with pods wait for nothing", due: karpv1.DisruptionReasonUnderutilized, looks: []look{{after: 0, next: 2 * time.Second, wait: 0}}},
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
