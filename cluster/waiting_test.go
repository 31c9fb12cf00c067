package cluster

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
)

// feedable returns a mirror that is fed by hand and never run.
func feedable(t testing.TB, clock *clocktesting.FakeClock) *Mirror {
	t.Helper()
	m, err := NewMirror(&rest.Config{Host: "http://192.0.2.1"}, Options{Kind: nodeclass.Kind(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestBatchWindow(t *testing.T) {
	t.Parallel()
	const idle, most = time.Second, 10 * time.Second
	judgedAs := func(change func(*corev1.Pod)) func(*Mirror, string) {
		return func(m *Mirror, name string) { _ = m.pods.feed.Update(testPod(name, "", change)) }
	}
	come := func(m *Mirror, name string) { _ = m.pods.feed.Add(testPod(name, "")) }
	bind := func(m *Mirror, name string) { _ = m.pods.feed.Update(testPod(name, "n")) }
	web := ownedBy("ReplicaSet", "web")
	replica := func(m *Mirror, name string) { _ = m.pods.feed.Add(testPod(name, "", web)) }
	unschedulableReplica := func(pod *corev1.Pod) { web(pod); unschedulable(pod) }
	type step struct {
		at  time.Duration
		do  func(*Mirror, string)
		pod string
	}
	for _, test := range []struct {
		reason string
		steps  []step
		want   time.Duration
	}{
		{reason: "nothing comes and nothing waits", want: 0},
		{reason: "one pod, judged at once", steps: []step{{at: 0, do: judgedAs(unschedulable), pod: "a"}}, want: idle},
		{reason: "arrivals keep the window open", steps: []step{
			{at: 0, do: judgedAs(unschedulable), pod: "a"}, {at: 600 * time.Millisecond, do: judgedAs(unschedulable),
				pod: "b"}, {at: 1200 * time.Millisecond, do: judgedAs(unschedulable), pod: "c"},
		}, want: 1200*time.Millisecond + idle},
		{reason: "created pods that nobody has judged are waited for", steps: []step{
			{at: 0, do: come, pod: "a"}, {at: 0, do: come, pod: "b"}, {at: 3 * time.Second, do: judgedAs(unschedulable),
				pod: "a"}, {at: 4 * time.Second, do: judgedAs(unschedulable), pod: "b"},
		}, want: 4*time.Second + idle},
		{reason: "a pod that is bound is not waited for", steps: []step{
			{at: 0, do: judgedAs(unschedulable), pod: "a"}, {at: 0, do: come, pod: "b"}, {at: 3 * time.Second, do: bind, pod: "b"},
		}, want: 3 * time.Second},
		{reason: "siblings of a pod that needs a node need one too, and are not waited for", steps: []step{
			{at: 0, do: replica, pod: "a"}, {at: 0, do: replica, pod: "b"}, {at: 3 * time.Second, do: judgedAs(unschedulableReplica),
				pod: "a"}, {at: 9 * time.Second, do: judgedAs(unschedulableReplica), pod: "b"},
		}, want: 3*time.Second + idle},
		{reason: "what is found for the siblings is no news", steps: []step{
			{at: 0, do: judgedAs(unschedulableReplica), pod: "a"}, {at: 0, do: replica, pod: "b"}, {at: 500 * time.Millisecond,
				do: judgedAs(unschedulableReplica), pod: "b"},
		}, want: idle},
		{reason: "a pod of another owner is waited for", steps: []step{
			{at: 0, do: judgedAs(unschedulableReplica), pod: "a"}, {at: 0, do: come, pod: "b"}, {at: 3 * time.Second, do: judgedAs(unschedulable), pod: "b"},
		}, want: 3*time.Second + idle},
		{reason: "the window closes at the latest after most", steps: []step{{at: 0, do: come, pod: "a"}, {at: 9 * time.Second, do: come, pod: "b"}}, want: most},
		{reason: "daemons' pods, gated and ended pods are nobody's burst", steps: []step{
			{at: 0, do: judgedAs(ownedBy("DaemonSet", "agent")), pod: "d"},
			{at: 0, do: judgedAs(func(pod *corev1.Pod) { pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }), pod: "g"},
			{at: 0, do: judgedAs(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }), pod: "f"},
		}, want: 0},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			start := time.Unix(1_700_000_000, 0)
			clock := clocktesting.NewFakeClock(start)
			m := feedable(t, clock)
			steps := test.steps
			for len(steps) > 0 && steps[0].at == 0 {
				steps[0].do(m, steps[0].pod)
				steps = steps[1:]
			}
			for {
				due := m.quietAt(clock.Now(), idle)
				if limit := start.Add(most); due.After(limit) {
					due = limit
				}
				if !clock.Now().Before(due) {
					break
				}
				if len(steps) > 0 && start.Add(steps[0].at).Before(due) {
					clock.SetTime(start.Add(steps[0].at))
					steps[0].do(m, steps[0].pod)
					steps = steps[1:]
					continue
				}
				clock.SetTime(due)
			}
			if got := clock.Since(start); got != test.want {
				t.Errorf("the window closed after %s, want %s", got, test.want)
			}
		})
	}
}

func TestUnjudgedPodsAreNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m := feedable(t, clock)
	for i := range 3 {
		if err := m.pods.feed.Add(testPod(fmt.Sprintf("foreign-%d", i), "")); err != nil {
			t.Fatal(err)
		}
	}
	clock.Step(judging)
	if err := m.QuietPods(t.Context(), time.Second, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(m.waiting.arrivals) != 0 {
		t.Errorf("%d arrivals are still remembered", len(m.waiting.arrivals))
	}
}

func TestQuietPodsWakesWhenAllAreJudged(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m := feedable(t, clock)
	for _, name := range []string{"a", "b"} {
		if err := m.pods.feed.Add(testPod(name, "")); err != nil {
			t.Fatal(err)
		}
	}
	clock.Step(2 * time.Second)
	result := make(chan error, 1)
	go func() { result <- m.QuietPods(t.Context(), time.Second, time.Hour) }()
	eventually(t, "the window waits", clock.HasWaiters)
	for _, name := range []string{"a", "b"} {
		if err := m.pods.feed.Update(testPod(name, "n")); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-within(t).Done():
		t.Error("the window stays open although every pod has been judged")
	}
}
