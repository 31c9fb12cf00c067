package plan_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

func TestWhenPodsOfLeavingNodesMove(t *testing.T) {
	t.Parallel()
	const never = -time.Hour
	for _, tc := range []struct {
		reason string
		pod    plan.Pod
		ends   time.Duration // from now; zero means never
		want   time.Duration // from now; at most zero if it is due
	}{
		{reason: "an ordinary pod is evicted at once", want: 0},
		{reason: "whatever the deadline", ends: time.Hour, want: 0},
		{reason: "a DaemonSet's pod has a place on every node", pod: plan.Pod{Daemon: true}, ends: time.Minute, want: never},
		{reason: "a drain without an end waits for a protected pod, for ever", pod: plan.Pod{DoNotDisrupt: true}, want: never},
		{reason: "it ends with a spot instance that is taken back in two minutes", pod: plan.Pod{DoNotDisrupt: true}, ends: 2 * time.Minute, want: 0},
		{reason: "a drain that takes a day loses it in a day: its place is bought so that it serves by then", pod: plan.Pod{DoNotDisrupt: true}, ends: 24 * time.Hour, want: 24*time.Hour - 2*time.Minute},
		{reason: "a pod that takes long to end is deleted before the deadline", pod: plan.Pod{DoNotDisrupt: true, GracePeriod: time.Hour}, ends: 24 * time.Hour, want: 23*time.Hour - 2*time.Minute},
		{reason: "protection for some time ends by itself", pod: plan.Pod{DoNotDisrupt: true, DoNotDisruptFor: time.Hour, Started: now.Add(-50 * time.Minute)}, want: 10 * time.Minute},
		{reason: "or with the node", pod: plan.Pod{DoNotDisrupt: true, DoNotDisruptFor: time.Hour, Started: now.Add(-50 * time.Minute)}, ends: 5 * time.Minute, want: 3 * time.Minute},
		{reason: "protection that is over protects nothing", pod: plan.Pod{DoNotDisrupt: true, DoNotDisruptFor: time.Hour, Started: now.Add(-2 * time.Hour)}, want: 0},
		{reason: "a pod that is being deleted needs no place", pod: plan.Pod{DoNotDisrupt: true, Deletion: now}, ends: time.Minute, want: never},
	} {
		var ends time.Time
		if tc.ends != 0 {
			ends = now.Add(tc.ends)
		}
		at, moves := tc.pod.MovesAt(ends, now)
		switch {
		case moves != (tc.want != never), tc.want > 0 && !at.Equal(now.Add(tc.want)), moves && tc.want == 0 && at.After(now):
			t.Errorf("%s: moves %v in %s, want %s", tc.reason, moves, at.Sub(now), tc.want)
		}
	}
}
