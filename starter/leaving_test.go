package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestPodsThatAreLostAreAnnouncedWhenTheyNeedAPlace(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := newEdge(t)
	claim := e.mirror.claims["i-a"]
	claim.DeletionTimestamp = &metav1.Time{Time: at}
	e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}, {Pod: &plan.Pod{DoNotDisrupt: true}}, {Pod: &plan.Pod{DoNotDisrupt: true, GracePeriod: 10 * time.Minute}}}
	// loss is whether more pods are lost than were announced, and when the next look is due.
	type loss struct {
		more bool
		next time.Duration
	}
	step := func(why string, after time.Duration, want loss) {
		t.Helper()
		more, next := e.leaving.losesMore(claim, at.Add(after))
		if got := (loss{more, next}); got != want {
			t.Errorf("%s: %+v, want %+v", why, got, want)
		}
	}
	step("a drain without an end loses none", 0, loss{})
	claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
	step("two are lost in an hour", 0, loss{next: 48 * time.Minute})
	step("one has to begin to end early", 48*time.Minute, loss{more: true, next: 10 * time.Minute})
	step("and was announced", 49*time.Minute, loss{next: 9 * time.Minute})
	step("then the other", 58*time.Minute, loss{more: true})
	step("and nothing more", 59*time.Minute, loss{})
	e.mirror.nodes["node-a"].Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "c/replacement/1"}
	e.mirror.nodes["node-a"].Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	e.leaving.lost.forget(claim.UID)
	step("the pods of a node that is replaced have their places", time.Hour, loss{})
}

func TestClaimsThatLeavePodsAreAnnounced(t *testing.T) {
	t.Parallel()
	pod := func(change func(*plan.Pod)) []*cluster.Pod {
		p := &plan.Pod{UID: "p"}
		change(p)
		return []*cluster.Pod{{Pod: p}}
	}
	running := pod(func(*plan.Pod) {})
	replaced := func(e *edge) {
		e.mirror.nodes["node-a"].Annotations = map[string]string{karpv1.ReplacementAnnotationKey: "c/replacement/1"}
		e.mirror.nodes["node-a"].Spec.Taints = []corev1.Taint{karpv1.DisruptedNoScheduleTaint()}
	}
	tests := map[string]struct {
		reason  string
		pods    []*cluster.Pod
		arrange func(*edge)
		want    bool
	}{
		"running":     {reason: "its pods need another node", pods: running, want: true},
		"empty":       {reason: "nobody needs one", want: false},
		"daemons":     {reason: "they go with the node", pods: pod(func(p *plan.Pod) { p.Daemon = true }), want: false},
		"terminating": {reason: "their successors are on their way", pods: pod(func(p *plan.Pod) { p.Deletion = time.Now() }), want: false},
		"undisturbed": {reason: "they stay until they are done", pods: pod(func(p *plan.Pod) { p.DoNotDisrupt = true }), want: false},
		"undisturbed, and lost": {reason: "they are lost with their instance", pods: pod(func(p *plan.Pod) { p.DoNotDisrupt = true }), arrange: func(e *edge) {
			e.mirror.claims["i-a"].Annotations = map[string]string{karpv1.InstanceEndsAnnotationKey: time.Now().Add(2 * time.Minute).Format(time.RFC3339)}
		}, want: true},
		"expected": {reason: "what was planned for it will not find it",
			arrange: func(e *edge) { e.mirror.promised = map[string][]*cluster.Pod{"a": running} }, want: true},
		"replaced": {reason: "the replacement has a place for each of its pods", pods: running, arrange: replaced, want: false},
		"a replacement": {reason: "it is not replaced itself, whatever it was launched for", pods: running, arrange: func(e *edge) {
			replaced(e)
			e.mirror.nodes["node-a"].Spec.Taints = nil
		}, want: true},
		"interrupted while replaced": {reason: "its replacement may not be there in time", pods: running, arrange: func(e *edge) {
			replaced(e)
			e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")})
		}, want: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			e.mirror.pods["node-a"] = test.pods
			if test.arrange != nil {
				test.arrange(e)
			}
			if got := e.leaving.leavesPods(e.mirror.claims["i-a"], time.Now()); got != test.want {
				t.Errorf("%s: %v, want %v", test.reason, got, test.want)
			}
		})
	}
}

func TestLeavingClaimsAreAnnouncedTogether(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.temporal.refuses, e.temporal.came = 1, make(chan signal, 10)
	for _, version := range []string{"7", "12", "9"} {
		e.leaving.add(version)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error)
	go func() { done <- e.leaving.announce(ctx) }()
	select {
	case sent := <-e.temporal.came:
		announced, ok := sent.Fact.(workflows.PodsPending)
		if !ok || sent.Workflow != "c/provisioning" || announced.SeenVersion != "12" || announced.Seen.IsZero() {
			t.Errorf("sent %+v, want Provisioning told of the newest version, also after a failure", sent)
		}
	case <-time.After(time.Minute):
		t.Error("Provisioning was never told")
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}
