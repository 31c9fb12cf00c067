package v1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

var pauseNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestStopOf(t *testing.T) {
	t.Parallel()
	pause := func(scope v1.PauseScope, lasts time.Duration, reason string) v1.Pause {
		p := v1.Pause{What: scope, Reason: reason, By: "alice", Since: pauseNow.Add(-time.Hour)}
		if lasts != 0 {
			p.Until = pauseNow.Add(lasts)
		}
		return p
	}
	for name, test := range map[string]struct {
		reason      string
		everywhere  []v1.Pause
		annotations map[string]string
		noPool      bool
		want        string
	}{
		"Nothing":     {reason: "nobody has paused anything"},
		"Whole":       {reason: "the whole cluster is paused", everywhere: []v1.Pause{pause(v1.PauseDisruption, 0, "peak")}, want: "disruption is paused in the whole cluster by alice: peak"},
		"NoPool":      {reason: "a claim without a NodePool obeys the cluster's pause", everywhere: []v1.Pause{pause(v1.PauseDisruption, 0, "peak")}, noPool: true, want: "disruption is paused in the whole cluster by alice: peak"},
		"Other":       {reason: "another kind of work is paused", everywhere: []v1.Pause{pause(v1.PauseProvisioning, 0, "peak")}},
		"Over":        {reason: "a pause ends at its end, not after it", everywhere: []v1.Pause{{What: v1.PauseDisruption, Until: pauseNow}}},
		"Almost":      {reason: "it holds until then", everywhere: []v1.Pause{pause(v1.PauseDisruption, time.Second, "peak")}, want: "disruption is paused in the whole cluster until 2026-01-02T03:04:06Z by alice: peak"},
		"Longest":     {reason: "of two the longer one is named", everywhere: []v1.Pause{pause(v1.PauseDisruption, time.Second, "short"), pause(v1.PauseDisruption, time.Hour, "long")}, want: "disruption is paused in the whole cluster until 2026-01-02T04:04:05Z by alice: long"},
		"PoolByHand":  {reason: "the annotation may be written by hand", annotations: map[string]string{v1.PauseAnnotationKey: "provisioning, disruption"}, want: "disruption is paused for NodePool p: written by hand"},
		"PoolAll":     {reason: "all includes disruption", annotations: map[string]string{v1.PauseAnnotationKey: "all"}, want: "disruption is paused for NodePool p: written by hand"},
		"PoolWrong":   {reason: "what cannot be read stops everything", annotations: map[string]string{v1.PauseAnnotationKey: "disruptoin"}, want: `disruption is paused for NodePool p: what is paused cannot be read: "disruptoin" must be provisioning, disruption, interruption or all`},
		"PoolBroken":  {reason: "broken JSON stops everything", annotations: map[string]string{v1.PauseAnnotationKey: "[{"}, want: "disruption is paused for NodePool p: what is paused cannot be read: unexpected end of JSON input"},
		"PoolUnknown": {reason: "so does a scope that a later version may know", annotations: map[string]string{v1.PauseAnnotationKey: `[{"what":"upgrades"}]`}, want: `disruption is paused for NodePool p: what is paused cannot be read: what: "upgrades" must be provisioning, disruption or interruption`},
		"Observed":    {reason: "an observed pool is left alone for ever", annotations: map[string]string{v1.ObserveAnnotationKey: "true"}, want: "NodePool p is only observed (tenon.sh/observe)"},
		"ObservedNot": {reason: "false is no", annotations: map[string]string{v1.ObserveAnnotationKey: "false"}},
		"ObservedOdd": {reason: "who wrote something else wanted Tenon to keep away", annotations: map[string]string{v1.ObserveAnnotationKey: "yes"}, want: "NodePool p is only observed (tenon.sh/observe)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: test.annotations}}
			if test.noPool {
				pool = nil
			}
			got := ""
			if stop := v1.StopOf(v1.PauseDisruption, test.everywhere, pool, pauseNow); stop != nil {
				got = stop.String()
			}
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.reason, got, test.want)
			}
		})
	}
}

// TestPausesReadBack checks that pauses are read as they were written, and that what is set and lifted holds and does not.
func TestPausesReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var pauses []v1.Pause
		now := pauseNow
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "passes")) * time.Second)
			scope := rapid.SampledFrom(v1.PauseScopes()).Draw(t, "scope")
			if rapid.Bool().Draw(t, "pause") {
				pause := v1.Pause{What: scope, Reason: rapid.StringMatching(`[a-z",\[ ]{0,12}`).Draw(t, "reason"), By: "alice", Since: now}
				if rapid.Bool().Draw(t, "ends") {
					pause.Until = now.Add(time.Duration(rapid.IntRange(1, 3600).Draw(t, "lasts")) * time.Second)
				}
				pauses = v1.SetPause(pauses, pause, now)
				if v1.StopOf(scope, pauses, nil, now) == nil {
					t.Fatalf("%s was paused and is not: %v", scope, pauses)
				}
			} else {
				pauses = v1.LiftPauses(pauses, []v1.PauseScope{scope}, now)
				if stop := v1.StopOf(scope, pauses, nil, now); stop != nil {
					t.Fatalf("%s was resumed: %v", scope, stop)
				}
			}
			text := v1.FormatPauses(pauses)
			if (text == "") != (len(pauses) == 0) || strings.Contains(text, "\n") {
				t.Fatalf("%v is written as %q", pauses, text)
			}
			if diff := cmp.Diff(pauses, v1.ReadPauses(text)); len(pauses) > 0 && diff != "" {
				t.Fatalf("pauses (-written +read):\n%s", diff)
			}
		}
	})
}
