package cluster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// TestNobodyWaitsForAMachineThatDoesNotCome launches machines, some of which never serve.
func TestNobodyWaitsForAMachineThatDoesNotCome(t *testing.T) {
	t.Parallel()
	ten := []time.Duration{10 * time.Second}
	for reason, test := range map[string]struct {
		boots   []time.Duration // of earlier nodes
		pool    string          // of the earlier nodes; empty for the same one
		serving int             // further nodes of the NodePool that serve
		silent  int             // machines that never serve
		passed  bool            // a machine launched after the silent ones serves
		coming  int             // machines that were launched five seconds before the look
		after   time.Duration
		want    int // overdue machines
	}{
		"nothing is known, and it is early":              {silent: 1, after: 89 * time.Second},
		"nothing is known, and it is late":               {silent: 1, after: 90 * time.Second, want: 1},
		"what other NodePools do says nothing":           {boots: slices.Repeat(ten, 5), pool: "other", silent: 1, after: 60 * time.Second},
		"four may have been quick by chance":             {boots: slices.Repeat(ten, 4), silent: 1, after: 89 * time.Second},
		"five took ten seconds":                          {boots: slices.Repeat(ten, 5), silent: 1, after: 30 * time.Second, want: 1},
		"it may take a little longer":                    {boots: slices.Repeat(ten, 5), silent: 1, after: 29 * time.Second},
		"one that took a minute is a measure":            {boots: append(slices.Repeat(ten, 5), time.Minute), silent: 1, after: 89 * time.Second},
		"one took five minutes":                          {boots: []time.Duration{5 * time.Minute}, silent: 1, after: 5*time.Minute + 44*time.Second},
		"five minutes and what it may take longer":       {boots: []time.Duration{5 * time.Minute}, silent: 1, after: 5*time.Minute + 45*time.Second, want: 1},
		"where none comes, the next would not either":    {silent: 25, after: 2 * time.Minute, want: 1},
		"two of many are not all":                        {serving: 17, silent: 2, after: time.Minute, want: 2},
		"a fifth of the NodePool is as much as counts":   {serving: 15, silent: 5, after: time.Minute, want: 4},
		"a few that come in time change nothing":         {serving: 17, silent: 2, coming: 4, after: time.Minute, want: 2},
		"while most are on their way, nobody knows":      {serving: 17, silent: 2, coming: 5, after: time.Minute},
		"three that a later one has passed":              {silent: 3, passed: true, after: 2 * time.Minute, want: 3},
		"no more than three":                             {silent: 4, passed: true, after: 2 * time.Minute, want: 3},
		"two that no later one has passed":               {boots: slices.Repeat(ten, 5), silent: 2, after: 2 * time.Minute, want: 1},
		"a NodePool of two: while one comes, that is it": {boots: slices.Repeat(ten, 5), silent: 1, coming: 1, after: time.Minute, want: 1},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
			m := feedable(t, clock)
			launch := func(name, pool string, boot time.Duration) {
				t.Helper()
				claim := testClaim(name, "aws:///"+name)
				claim.Labels = map[string]string{karpv1.NodePoolLabelKey: pool}
				claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now())})
				if err := m.claims.feed.Update(claim); err != nil {
					t.Fatal(err)
				}
				if boot == 0 {
					return
				}
				claim = claim.DeepCopy()
				claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now().Add(boot))})
				if err := m.claims.feed.Update(claim); err != nil {
					t.Fatal(err)
				}
			}
			pool := test.pool
			if pool == "" {
				pool = "web"
			}
			for i, boot := range test.boots {
				launch(fmt.Sprint("before-", i), pool, boot)
			}
			for i := range test.serving {
				launch(fmt.Sprint("serving-", i), "web", 10*time.Second)
			}
			for i := range test.silent {
				launch(fmt.Sprint("silent-", i), "web", 0)
			}
			if test.passed {
				clock.Step(time.Second)
				launch("passed", "web", 10*time.Second)
			}
			if err := m.pods.feed.Update(testPod("a", "", unschedulable)); err != nil {
				t.Fatal(err)
			}
			m.Promise("silent-0", []types.UID{"uid-a"}, clock.Now().Add(time.Hour))
			m.Snapshot()
			clock.Step(test.after - 5*time.Second)
			for i := range test.coming {
				launch(fmt.Sprint("coming-", i), "web", 0)
			}
			clock.Step(5 * time.Second)
			closed, promised := inFlight(m.Snapshot())
			if closed != test.want || len(m.Overdue()) != test.want {
				t.Errorf("%d machines have no room and %d are overdue, want %d", closed, len(m.Overdue()), test.want)
			}
			if promised == (test.want > 0) {
				t.Errorf("the pod is promised to a machine: %t", promised)
			}
		})
	}
}

// TestAMachineThatComesLateIsANodeLikeAnyOther lets an overdue machine serve after all.
func TestAMachineThatComesLateIsANodeLikeAnyOther(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m := feedable(t, clock)
	claim := testClaim("late", "aws:///late")
	claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now())})
	if err := m.claims.feed.Update(claim); err != nil {
		t.Fatal(err)
	}
	clock.Step(2 * time.Minute)
	if closed, _ := inFlight(m.Snapshot()); closed != 1 {
		t.Fatalf("%d machines are overdue, want 1", closed)
	}
	claim = claim.DeepCopy()
	claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInitialized, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Now())})
	if err := m.claims.feed.Update(claim); err != nil {
		t.Fatal(err)
	}
	if closed, _ := inFlight(m.Snapshot()); closed != 0 || len(m.Overdue()) != 0 {
		t.Errorf("a node that serves has no room (%d), or is overdue (%d)", closed, len(m.Overdue()))
	}
}

// inFlight counts the nodes that take no pods, and says whether any node has promised pods.
func inFlight(snapshot *plan.Snapshot) (closed int, promised bool) {
	for _, n := range snapshot.Nodes {
		if n.Cordoned {
			closed++
		}
		promised = promised || len(n.Promised) > 0
	}
	return closed, promised
}
