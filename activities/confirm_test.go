package activities

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestManyReplacementsShareOneQuestion has five hundred replacements ask whether their nodes may be removed while the
// planner is busy with the first of them.
func TestManyReplacementsShareOneQuestion(t *testing.T) {
	t.Parallel()
	const many = 500
	var c confirmer
	var asked atomic.Int32
	began, goOn := make(chan struct{}), make(chan struct{})
	ask := func(_ context.Context, leaves []*leave) []plan.Verdict {
		if asked.Add(1) == 1 {
			close(began)
			<-goOn
		}
		return nil
	}
	var waiting sync.WaitGroup
	confirm := func(i int) {
		waiting.Go(func() {
			if verdicts, err := c.confirm(t.Context(), "r", karpv1.DisruptionReasonDrifted, []string{fmt.Sprint(i)}, ask); err != nil || len(verdicts) > 0 {
				t.Errorf("replacement %d: %v, %v", i, verdicts, err)
			}
		})
	}
	confirm(0)
	<-began
	for i := range many {
		confirm(1 + i)
	}
	// A caller that gives up is left out of the question, and does not wait.
	over, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := c.confirm(over, "r", karpv1.DisruptionReasonDrifted, []string{"over"}, ask); err == nil {
		t.Error("an attempt that is over got an answer")
	}
	for { // until all wait
		c.mu.Lock()
		n := len(c.waiting)
		c.mu.Unlock()
		if n == many+1 {
			break
		}
	}
	close(goOn)
	waiting.Wait()
	if got, most := int(asked.Load()), 1+(many+confirmedAtOnce-1)/confirmedAtOnce; got > most {
		t.Errorf("the planner was asked %d times, want at most %d", got, most)
	}
}

// TestAPanicIsAnErrorOfWhoAsked has the planner panic on one of three leaves.
func TestAPanicIsAnErrorOfWhoAsked(t *testing.T) {
	t.Parallel()
	var leaves []*leave
	for _, claim := range []string{"fine", "poison", "fine too"} {
		leaves = append(leaves, &leave{claims: []string{claim}, answer: make(chan leaveAnswer, 1)})
	}
	answerSafely(leaves, func(leaves []*leave) []plan.Verdict {
		if slices.ContainsFunc(leaves, func(l *leave) bool { return l.claims[0] == "poison" }) {
			panic("poison")
		}
		return nil
	})
	for _, l := range leaves {
		if a := <-l.answer; (a.err != nil) != (l.claims[0] == "poison") {
			t.Errorf("%s: %v", l.claims[0], a.err)
		}
	}
}

// TestAnswerTogether asks about several leaves. The planner protects nodes named "protected", has room for a limited number
// of nodes at once, and has none for a node named "roomless".
func TestAnswerTogether(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		leaves [][]string
		room   int
		want   []string // what keeps each leave's nodes
		asked  []int    // how many nodes each question was about
	}{
		"all may go": {leaves: [][]string{{"a"}, {"b", "c"}}, room: 9, want: []string{"", ""}, asked: []int{3}},
		"a protected node keeps its own leave only":        {leaves: [][]string{{"a"}, {"protected", "c"}, {"d"}}, room: 9, want: []string{"", "protected", ""}, asked: []int{4, 2}},
		"all are protected":                                {leaves: [][]string{{"protected"}, {"protected2"}}, room: 9, want: []string{"protected", "protected2"}, asked: []int{2}},
		"who finds no place among many is asked for alone": {leaves: [][]string{{"a"}, {"b"}, {"c"}}, room: 2, want: []string{"", "", ""}, asked: []int{3, 1}},
		"who finds none alone either stays":                {leaves: [][]string{{"a"}, {"roomless"}}, room: 9, want: []string{"", "roomless"}, asked: []int{2, 1}},
		"one alone is asked for once":                      {leaves: [][]string{{"roomless"}}, room: 9, want: []string{"roomless"}, asked: []int{1}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var leaves []*leave
			for _, claims := range test.leaves {
				leaves = append(leaves, &leave{claims: claims, answer: make(chan leaveAnswer, 1)})
			}
			var asked []int
			answerTogether(slices.Clone(leaves), func(leaves []*leave) (verdicts []plan.Verdict) {
				var nodes []string
				for _, l := range leaves {
					nodes = append(nodes, l.claims...)
				}
				asked = append(asked, len(nodes))
				for _, node := range nodes {
					if node == "protected" || node == "protected2" {
						verdicts = append(verdicts, plan.Verdict{Node: node, Cause: plan.CauseNode})
					}
				}
				if len(verdicts) > 0 {
					return verdicts
				}
				for i, node := range nodes {
					if i >= test.room || node == "roomless" {
						verdicts = append(verdicts, plan.Verdict{Node: node, Cause: plan.CauseRoom})
					}
				}
				return verdicts
			})
			for i, l := range leaves {
				got := ""
				for _, v := range (<-l.answer).verdicts {
					got += v.Node
				}
				if got != test.want[i] {
					t.Errorf("%v is kept by %q, want %q", l.claims, got, test.want[i])
				}
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked about so many nodes (-want +got):\n%s", diff)
			}
		})
	}
}
