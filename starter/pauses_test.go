package starter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

func pausing(scope karpv1.PauseScope) []karpv1.Pause {
	return []karpv1.Pause{{What: scope, Reason: "peak", By: "alice"}}
}

// TestInterruptionsWaitForTheEndOfAPause receives notices during a pause: their messages are deleted from the queue, which
// would drop them after minutes, and wait on the claim.
func TestInterruptionsWaitForTheEndOfAPause(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.mirror.pauses = pausing(karpv1.PauseInterruption)
	claim := e.mirror.claims["i-a"]
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e.notices.handleAll(t.Context(), []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-a"}, At: at}}})
	const held = "SpotInterruption@2026-01-02T03:04:05Z"
	if got := e.kube.notes["a"][karpv1.HeldInterruptionsAnnotationKey]; got != held {
		t.Fatalf("the claim holds %q, want %q", got, held)
	}
	if len(e.temporal.endings()) != 0 || len(e.closed) != 0 || !cmp.Equal(e.cloud.deleted, []string{"1"}) {
		t.Errorf("signalled %v, closed %v, deleted messages %v", e.temporal.endings(), e.closed, e.cloud.deleted)
	}
	if diff := cmp.Diff([]string{"SpotInterrupted"}, e.told()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	claim.Annotations = map[string]string{karpv1.HeldInterruptionsAnnotationKey: held}
	e.notices.handleAll(t.Context(), []cloud.Notice{{Receipt: "2", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-a"}, At: at}}})
	if got := e.told(); got != nil {
		t.Errorf("the same announcement is told twice: %v", got)
	}
	e.mirror.claimNamed = claim
	if _, err := e.changes.claims.changed(t.Context(), "a"); err != nil || len(e.temporal.endings()) != 0 {
		t.Errorf("during the pause, %d were signalled: %v", len(e.temporal.endings()), err)
	}
	// Another process takes over, which has received nothing itself, and then the pause ends.
	next := newEdge(t)
	next.mirror.claims["i-a"], next.mirror.claimNamed = claim, claim
	if _, err := next.changes.claims.changed(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if len(next.temporal.all) != 1 || len(next.closed) != 1 {
		t.Errorf("after the pause, %d were signalled and %v closed", len(next.temporal.all), next.closed)
	}
	if got, some := next.kube.notes["a"][karpv1.HeldInterruptionsAnnotationKey]; some {
		t.Errorf("the claim still holds %q", got)
	}
}

func TestHeldInterruptionsReadBack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	text := holding("", "ScheduledChange", at.Add(time.Minute))
	text = holding(text, "SpotInterruption", at)
	text = holding(text, "SpotInterruption", at.Add(time.Hour))
	held, err := readHeld(text)
	if err != nil || len(held) != 2 || held[0].kind != "SpotInterruption" || !held[0].at.Equal(at) {
		t.Errorf("%q is read as %v, %v", text, held, err)
	}
	if got := holding("nonsense", "SpotInterruption", at); got != "SpotInterruption@2026-01-02T03:04:05Z" {
		t.Errorf("what cannot be read becomes %q", got)
	}
}

// TestNothingEndsWhileDisruptionIsPaused has a node that will not recover and one that has expired, during a pause and after it.
func TestNothingEndsWhileDisruptionIsPaused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f, temporal, events := newFleet(6, now.Add(-2*time.Hour)), &signals{}, record.NewFakeRecorder(10)
	f.fall(now.Add(-time.Hour), "n0")
	f.claims["n1"].Spec.ExpireAfter = karpv1.NillableDuration{Duration: new(time.Hour)}
	e := newEdges(Config{Cluster: "c", Mirror: f, Temporal: temporal, Events: events, Log: zaptest.NewLogger(t),
		RepairPolicies: []cloud.RepairPolicy{{Condition: corev1.NodeReady, Status: corev1.ConditionUnknown, Tolerated: 30 * time.Minute}}})
	look := func() {
		e.repairs.repair(t.Context(), now)
		e.expirations.expire(t.Context(), now)
	}
	f.pauses = pausing(karpv1.PauseDisruption)
	look()
	look()
	if len(temporal.all) != 0 || len(events.Events) != 1 {
		t.Errorf("during the pause, %d were ended, with %d Events; want none, and one Event", len(temporal.all), len(events.Events))
	}
	f.pauses = nil
	look()
	if len(temporal.all) != 2 {
		t.Errorf("after the pause, %d were ended, want both", len(temporal.all))
	}
	f.pauses = pausing(karpv1.PauseDisruption)
	look()
	f.pauses = nil
	look()
	if len(temporal.all) != 4 {
		t.Errorf("after a pause that came before the lives had ended, they were told %d times, want twice each", len(temporal.all))
	}
}

// TestPeopleAreToldOfPauses checks Events and metrics, once for each change.
func TestPeopleAreToldOfPauses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	registry := prometheus.NewRegistry()
	metrics, err := NewPauseMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	f, events := newFleet(0, now), record.NewFakeRecorder(10)
	p := &pauses{mirror: f, events: events, metrics: metrics}
	shown := func() int {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		series := 0
		for _, family := range families {
			series += len(family.GetMetric())
		}
		return series
	}
	p.tell(now)
	f.pauses = []karpv1.Pause{{What: karpv1.PauseDisruption, Reason: "peak", By: "alice", Until: now.Add(time.Hour)}}
	p.tell(now)
	if got := shown(); got != 1 {
		t.Errorf("the metric shows %v during the pause", got)
	}
	p.tell(now.Add(time.Minute))
	p.tell(now.Add(time.Hour))
	if got := shown(); got != 0 {
		t.Errorf("the metric shows %v after the pause", got)
	}
	var told []string
	for len(events.Events) > 0 {
		told = append(told, <-events.Events)
	}
	want := []string{"Normal Paused disruption is paused in the whole cluster until 2026-01-02T04:04:05Z by alice: peak", "Normal Resumed nothing is paused any more"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// TestClaimsMadeByHandWaitForTheEndOfAPause checks that a claim that a person has made is launched after a pause, and not lost.
func TestClaimsMadeByHandWaitForTheEndOfAPause(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine", UID: "mine", CreationTimestamp: metav1.Now()}}
	e.mirror.pauses = pausing(karpv1.PauseProvisioning)
	if _, err := e.changes.claims.launches.want(t.Context(), claim); err != nil || len(e.temporal.all) != 0 {
		t.Errorf("during the pause, %d launches are asked for: %v", len(e.temporal.all), err)
	}
	e.mirror.pauses = nil
	if _, err := e.changes.claims.launches.want(t.Context(), claim); err != nil || len(e.temporal.all) != 1 {
		t.Errorf("after the pause, %d launches are asked for: %v", len(e.temporal.all), err)
	}
}
