package starter

import (
	"fmt"
	"strings"
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

// What is said of a node whose verdicts are these?
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
		{"what does not apply is not worth a word", verdictsFor("n", none, verdict(karpv1.DisruptionReasonDrifted, plan.CauseNone, "it has not drifted")), nil},
		{"nor what is on its way", verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CauseLeaving, "it is going"), verdict(karpv1.DisruptionReasonEmpty, plan.CauseNominated, "pods come")), nil},
		{"one sentence for one thing that blocks every reason", verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CausePod, "pod a is protected"), verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePod, "pod a is protected")),
			[]string{"DisruptionBlocked it has drifted, but pod a is protected"}},
		{"a block of consolidation is no statement about the node", verdictsFor("n", none, verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePDB, "PodDisruptionBudget a/b allows nothing")),
			[]string{"DisruptionBlocked PodDisruptionBudget a/b allows nothing"}},
		{"price, room and policy are Unconsolidatable", verdictsFor("n", none, verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePrice, "it saves nothing")), []string{"Unconsolidatable it saves nothing"}},
		{"but not where the node has drifted", verdictsFor("n", verdict(karpv1.DisruptionReasonDrifted, plan.CauseRoom, "pod a finds no room")), []string{"DisruptionBlocked it has drifted, but pod a finds no room"}},
		{"the buffer keeps an empty node", verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CauseBuffer, "it keeps room free for b")), []string{"Unconsolidatable it keeps room free for b"}},
		{"static pools are no news for empty nodes", verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CausePolicy, "its NodePool is static"), verdict(karpv1.DisruptionReasonUnderutilized, plan.CausePolicy, "its NodePool is static")),
			[]string{"Unconsolidatable its NodePool is static"}},
		{"time is told apart", verdictsFor("n", verdict(karpv1.DisruptionReasonEmpty, plan.CauseQuiet, "it is too young"), verdict(karpv1.DisruptionReasonDrifted, plan.CauseBudget, "budgets allow 0")),
			[]string{"DisruptionBlocked it has drifted, but budgets allow 0", "DisruptionBlocked it is empty, but it is too young"}},
	} {
		var v verdicts
		tellings, _ := v.choose(plan.Disruption{Verdicts: tc.of})
		var got []string
		for _, told := range tellings {
			got = append(got, told.reason+" "+told.message)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// TestToldOnce holds that a sentence is said when it changes, numbers aside, and never twice in a row; that one look says
// a bounded number of things and the next ones the rest; and that nothing is remembered of nodes that are gone.
func TestToldOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var v verdicts
		last := map[string]string{}
		for range rapid.IntRange(1, 30).Draw(t, "looks") {
			var found plan.Disruption
			now := map[string]string{}
			for i := range rapid.IntRange(0, 120).Draw(t, "nodes") {
				node := fmt.Sprintf("n%03d", i)
				word := rapid.SampledFrom([]string{"", "pod a", "pod b"}).Draw(t, "word")
				if word == "" {
					continue
				}
				now[node] = word
				found.Verdicts = append(found.Verdicts, plan.Verdict{Node: node, Reason: karpv1.DisruptionReasonUnderutilized, Cause: plan.CausePod, Message: fmt.Sprintf("%s keeps it, %d", word, rapid.IntRange(0, 9).Draw(t, "number"))})
			}
			tellings, more := v.choose(found)
			for _, told := range tellings {
				if strings.HasPrefix(told.message, last[told.node]) && last[told.node] != "" {
					t.Fatalf("%s is told %q again", told.node, told.message)
				}
				last[told.node] = now[told.node]
			}
			if len(tellings) > verdictsMost || more && len(tellings) < verdictsMost {
				t.Fatalf("%d said at once, more %v", len(tellings), more)
			}
			untold := 0
			for node, word := range now {
				if last[node] != word {
					untold++
				}
			}
			if more != (untold > 0) {
				t.Fatalf("%d nodes are still to be told of, more %v", untold, more)
			}
			for node := range last {
				if _, is := now[node]; !is {
					delete(last, node)
				}
			}
			if len(v.nodes) > len(now) {
				t.Fatalf("%d nodes are remembered of %d", len(v.nodes), len(now))
			}
		}
	})
}

// Disruption writes down new kinds of reason, at most now and then, and nothing that time will take away.
func TestKindsChanged(t *testing.T) {
	t.Parallel()
	of := func(causes ...plan.Cause) plan.Disruption {
		var d plan.Disruption
		for i, cause := range causes {
			d.Verdicts = append(d.Verdicts, plan.Verdict{Node: fmt.Sprint(i), Reason: karpv1.DisruptionReasonUnderutilized, Cause: cause, Message: "x"})
		}
		return d
	}
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var v verdicts
	for _, step := range []struct {
		reason string
		after  time.Duration
		causes []plan.Cause
		want   bool
	}{
		{"nothing keeps anything", 0, nil, false},
		{"what passes is no news", 0, []plan.Cause{plan.CauseQuiet, plan.CauseLeaving}, false},
		{"the first", 0, []plan.Cause{plan.CausePDB}, true},
		{"more of the same", time.Hour, []plan.Cause{plan.CausePDB, plan.CausePDB}, false},
		{"another kind", 0, []plan.Cause{plan.CausePDB, plan.CausePrice}, true},
		{"too soon", time.Minute, []plan.Cause{plan.CausePrice}, false},
		{"later", kindsEvery, []plan.Cause{plan.CausePrice}, true},
	} {
		at = at.Add(step.after)
		if got := v.kindsChanged(of(step.causes...), at); got != step.want {
			t.Errorf("%s: %v", step.reason, got)
		}
	}
}
