package starter

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func verdictsFor(node string, of ...plan.Verdict) []plan.Verdict {
	for i := range of {
		of[i].Node = node
	}
	return of
}

// TestSentences checks which Event is recorded for a node with given verdicts.
func TestSentences(t *testing.T) {
	t.Parallel()
	verdict := func(reason karpv1.DisruptionReason, cause plan.Cause, message string) plan.Verdict {
		return plan.Verdict{Reason: reason, Cause: cause, Message: message}
	}
	none := verdict(karpv1.DisruptionReasonEmpty, plan.CauseNone, "it runs pod a")
	for _, tc := range []struct {
		reason string
		of     []plan.Verdict
		want   []string
	}{
		{reason: "what does not apply is not worth a word",
			of: verdictsFor("n", none, verdict(karpv1.DisruptionReasonDrifted, plan.CauseNone, "it has not drifted"))},
		{reason: "nor what is on its way",
			of: verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CauseLeaving, "it is going"), verdict(karpv1.DisruptionReasonEmpty, plan.CauseNominated, "pods come"))},
		{reason: "one sentence for one thing that blocks every reason", of: verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CausePod, "pod a is protected"), verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePod, "pod a is protected")),
			want: []string{"DisruptionBlocked it has drifted, but pod a is protected"}},
		{reason: "a block of consolidation is no statement about the node", of: verdictsFor("n", none, verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePDB, "PodDisruptionBudget a/b allows nothing")),
			want: []string{"DisruptionBlocked PodDisruptionBudget a/b allows nothing"}},
		{reason: "price, room and policy are Unconsolidatable",
			of:   verdictsFor("n", none, verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePrice, "it saves nothing")),
			want: []string{"Unconsolidatable it saves nothing"}},
		{reason: "but not where the node has drifted",
			of:   verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CauseRoom, "pod a finds no room")),
			want: []string{"DisruptionBlocked it has drifted, but pod a finds no room"}},
		{reason: "the buffer keeps an empty node",
			of:   verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CauseBuffer, "it keeps room free for b")),
			want: []string{"Unconsolidatable it is empty, but it keeps room free for b"}},
		{reason: "static pools are no news for empty nodes", of: verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CausePolicy, "its NodePool is static"), verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePolicy, "its NodePool is static")),
			want: []string{"Unconsolidatable its NodePool is static"}},
		{reason: "what lasts comes before what passes", of: verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CauseQuiet, "it is too young"), verdict(karpv1.DisruptionReasonDrifted, plan.CauseBudget, "budgets allow 0")),
			want: []string{"DisruptionBlocked it has drifted, but budgets allow 0"}},
		{reason: "what time will tell is said where nothing else is, and time does not tell",
			of:   verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CauseQuiet, "it is too young")),
			want: []string{"DisruptionBlocked it is empty, but it is too young"}},
	} {
		var v eventLimiter
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		if early, _ := v.choose(plan.Disruption{Verdicts: tc.of}, nil, at); len(early) > 0 {
			t.Errorf("%s: %v is said before it has lasted", tc.reason, early)
		}
		pending, next := v.choose(plan.Disruption{Verdicts: tc.of}, nil, at.Add(lasting))
		if passes := at.Add(unending); next.Equal(passes) {
			pending, _ = v.choose(plan.Disruption{Verdicts: tc.of}, nil, passes)
		}
		var got []string
		for _, told := range pending {
			got = append(got, told.reason+" "+told.message)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestToldOnce checks that every kind of message is recorded once for a node, and only when it has lasted; that one
// look records a limited number and the next looks the rest; and that nothing is remembered of nodes that are gone.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var v eventLimiter
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		since, last, told := map[string]time.Time{}, map[string]plan.Cause{}, map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			at = at.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "seconds")) * time.Second)
			var found plan.Disruption
			now := map[string]plan.Cause{}
			for i := range rapid.IntRange(0, 120).Draw(t, "nodes") {
				node := fmt.Sprintf("n%03d", i)
				cause := rapid.SampledFrom([]plan.Cause{plan.CauseNone, plan.CausePod, plan.CausePod, plan.CausePDB}).Draw(t, "cause")
				now[node] = cause
				found.Verdicts = append(found.Verdicts, plan.Verdict{Node: node, Reason: karpv1.DisruptionReasonUnderutilized, Cause: cause, Message: fmt.Sprintf("%s keeps it, %d", cause, i)})
			}
			for node := range last {
				if _, is := now[node]; !is {
					for _, cause := range []plan.Cause{plan.CausePod, plan.CausePDB} {
						delete(told, node+string(cause))
					}
					delete(since, node)
					delete(last, node)
				}
			}
			for node, cause := range now {
				if cause != last[node] {
					since[node], last[node] = at, cause
				}
			}
			pending, next := v.choose(found, nil, at)
			for _, said := range pending {
				key := said.node + string(now[said.node])
				if told[key] || at.Sub(since[said.node]) < lasting {
					t.Fatalf("%s is told %q again, or after %v", said.node, said.message, at.Sub(since[said.node]))
				}
				told[key] = true
			}
			untold := 0
			for node, cause := range now {
				if cause != plan.CauseNone && !told[node+string(cause)] {
					untold++
				}
			}
			if len(pending) > maxEvents || next.IsZero() != (untold == 0) {
				t.Fatalf("%d said at once, %d to be said, next %v", len(pending), untold, next)
			}
			if len(v.nodes) > len(now) {
				t.Fatalf("%d nodes are remembered of %d", len(v.nodes), len(now))
			}
		}
	})
}

// No Events are recorded for young nodes, and the time while they are young does not count.
func TestYoungNodesAreNoNews(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	found := plan.Disruption{Verdicts: []plan.Verdict{{Node: "n", Reason: karpv1.DisruptionReasonUnderutilized, Cause: plan.CausePod, Message: "x"}}}
	var v eventLimiter
	for _, step := range []struct {
		after time.Duration
		young bool
		said  int
	}{{after: 0, young: true, said: 0}, {after: time.Hour, young: true, said: 0}, {after: time.Hour, young: false, said: 0}, {after: lasting, young: false, said: 1}, {after: time.Hour, young: false, said: 0}} {
		at = at.Add(step.after)
		if pending, _ := v.choose(found, map[string]bool{"n": step.young}, at); len(pending) != step.said {
			t.Errorf("%+v: %v", step, pending)
		}
	}
}

// TestKindsOfVerdicts: every reason and every cause have a number of their own, for which there is a bit.
func TestKindsOfVerdicts(t *testing.T) {
	t.Parallel()
	seen := map[int]plan.Verdict{}
	for _, reason := range plan.DisruptionReasons() {
		for _, cause := range []plan.Cause{plan.CauseNode, plan.CausePod, plan.CausePDB, plan.CauseBudget, plan.CausePrice, plan.CauseRoom, plan.CausePolicy, plan.CauseBuffer,
			plan.CauseQuiet, plan.CausePaused, plan.CauseRollout, plan.CauseApproval, plan.CauseWindow} {
			v := plan.Verdict{Reason: reason, Cause: cause}
			kind := kindOf(v)
			if other, taken := seen[kind]; taken || kind < 0 || kind >= 64*len(saidOf{}.told) {
				t.Errorf("%s %s has the number %d, which is out of bounds or that of %s %s", reason, cause, kind, other.Reason, other.Cause)
			}
			seen[kind] = v
		}
	}
}
