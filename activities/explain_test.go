package activities

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
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

// The messages are Karpenter's, and each is repeated once a minute at most.
func TestUnsellablePoolsAreTold(t *testing.T) {
	t.Parallel()
	const none = "Warning NoCompatibleInstanceTypes NodePool requirements filtered out all compatible available instance types"
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pools := []plan.Pool{{NodePool: &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "1"}}}, {NodePool: &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "batch", UID: "2"}}}}
	events := record.NewFakeRecorder(100)
	e := &explained{events: recorder{events}}
	for _, round := range []struct {
		reason     string
		after      time.Duration
		unsellable []plan.Unsellable
		want       []string
	}{
		{"both are told", 0, []plan.Unsellable{{NodePool: "web"}, {NodePool: "batch", MinValues: true}}, []string{none, none + " due to minValues incompatibility"}},
		{"the same is not repeated within a minute", 30 * time.Second, []plan.Unsellable{{NodePool: "web"}, {NodePool: "batch", MinValues: true}}, nil},
		{"another message is", 40 * time.Second, []plan.Unsellable{{NodePool: "web"}, {NodePool: "batch"}}, []string{none}},
		{"a NodePool that has gone has no Event", 50 * time.Second, []plan.Unsellable{{NodePool: "web"}, {NodePool: "gone"}}, nil},
		{"after a minute it is repeated", 70 * time.Second, []plan.Unsellable{{NodePool: "web"}}, []string{none}},
	} {
		e.tellUnsellable(round.unsellable, pools, now.Add(round.after))
		var got []string
		for len(events.Events) > 0 {
			got = append(got, <-events.Events)
		}
		if diff := cmp.Diff(round.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", round.reason, diff)
		}
	}
}
