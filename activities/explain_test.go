package activities

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

func TestExplainedChooses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	left := func(first, last int, why string) []plan.Unplaced {
		var all []plan.Unplaced
		for n := first; n <= last; n++ {
			pod := &plan.Pod{UID: types.UID(fmt.Sprintf("%04d", n)), Namespace: "a", Name: fmt.Sprintf("p%d", n)}
			all = append(all, plan.Unplaced{Pod: pod, Reasons: []plan.Reason{{NodePool: "x", Message: why}}})
		}
		return all
	}
	virtual := left(1, 1, "small")
	virtual[0].Pod.Virtual = true
	type round struct {
		after time.Duration
		left  []plan.Unplaced
		want  int
		has   string
	}
	for name, test := range map[string]struct {
		reason string
		rounds []round
	}{
		"Repeated": {"the same is not said again for five minutes", []round{{after: 0, left: left(1, 3, "small"), want: 3, has: "p1"}, {after: 4 * time.Minute, left: left(1, 3, "small"), want: 0, has: ""}, {after: 6 * time.Minute, left: left(1, 3, "small"), want: 3, has: "p2"}}},
		"Changed":  {"something new is said at once", []round{{after: 0, left: left(1, 3, "small"), want: 3, has: ""}, {after: time.Second, left: left(1, 3, "limit"), want: 3, has: ""}}},
		"Many":     {"a plan says no more than fifty things, and the next one goes on", []round{{after: 0, left: left(1, 70, "small"), want: 50, has: ""}, {after: time.Second, left: left(1, 70, "small"), want: 20, has: "p70"}}},
		"Rare":     {"a rare reason is not lost among thousands of another", []round{{after: 0, left: append(left(1, 5000, "small"), left(6000, 6000, "taint")...), want: 50, has: "p6000"}}},
		"Virtual":  {"nobody can look at a pod that is none", []round{{after: 0, left: virtual, want: 0, has: ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e explained
			for i, r := range test.rounds {
				var names []string
				for _, told := range e.choose(r.left, now.Add(r.after)) {
					names = append(names, told.pod.Name)
				}
				if len(names) != r.want {
					t.Errorf("%s: round %d: %d things said, want %d", test.reason, i, len(names), r.want)
				}
				if r.has != "" && !strings.Contains(" "+strings.Join(names, " ")+" ", " "+r.has+" ") {
					t.Errorf("%s: round %d: nothing is said of %s", test.reason, i, r.has)
				}
			}
		})
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, sentence, suffix string
	}{
		"Short": {reason: "what fits stays", sentence: "a sentence", suffix: "a sentence"},
		"Long":  {reason: "what does not says where the rest is", sentence: strings.Repeat("é", 900), suffix: "é... (tenon why pod says the rest)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := shortened(test.sentence)
			if !strings.HasSuffix(got, test.suffix) || len(got) > maxExplanation {
				t.Errorf("%s: %d bytes: %s", test.reason, len(got), got)
			}
			if diff := cmp.Diff(got, strings.ToValidUTF8(got, "?")); diff != "" {
				t.Errorf("%s: characters are broken: %s", test.reason, diff)
			}
		})
	}
}
