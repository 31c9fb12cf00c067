package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/internal/architecture"
)

// TestEventsAreFollowedToConstants follows reasons through fields, parameters, closures, results and variables.
func TestEventsAreFollowedToConstants(t *testing.T) {
	t.Parallel()
	f := flowOf(t, "./testdata/emits")
	events, err := f.events()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for reason, e := range events {
		got[reason] = list(e.types) + " about " + list(e.kinds)
	}
	want := map[string]string{
		"Direct": "Normal about Pod", "Field": "Warning about Node", "Passed": "Normal about Node", "Closure": "Normal about Pod",
		"Chosen": "Normal about Pod", "Local": "Normal about NodePool",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	if meaning := newWords(f.named).meaning(events["Chosen"].reason); meaning != "What a function returns." {
		t.Errorf("the meaning of Chosen is %q", meaning)
	}
}

// TestReasonsWithoutMeaningFail shows that no Event and no condition can have a reason that the documents do not explain.
func TestReasonsWithoutMeaningFail(t *testing.T) {
	t.Parallel()
	f := flowOf(t, "./testdata/emitswrong")
	_, err := f.events()
	if err == nil {
		t.Fatal("reasons that are no constants with a comment are accepted")
	}
	for _, want := range []string{"emitswrong.go:14: the reason of an Event is no declared constant", "the reason bare of an Event has no comment",
		"emitswrong.go:16: the reason of an Event is no declared constant"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say: %s", err, want)
		}
	}
	if _, _, err = f.conditionReasons(); err == nil || !strings.Contains(err.Error(), "a condition of what?") {
		t.Errorf("a condition of an unknown resource is accepted: %v", err)
	}
}

// TestConditionsAreFollowedToConstants looks at conditions that are literals and at reasons that are assigned.
func TestConditionsAreFollowedToConstants(t *testing.T) {
	t.Parallel()
	f := flowOf(t, "./testdata/emits")
	found := map[string]bool{}
	for _, p := range f.reasonsSet {
		reasons, open := f.constants(p)
		if len(open) > 0 {
			t.Errorf("%v cannot be followed", open)
		}
		for _, reason := range reasons {
			found[reason.Value] = true
		}
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"Local"}) {
		t.Errorf("assigned reasons are %v", got)
	}
}

func flowOf(t *testing.T, pattern string) *flow {
	t.Helper()
	sources, err := architecture.Sources(".", pattern)
	if err != nil {
		t.Fatal(err)
	}
	return newFlow(sources)
}
