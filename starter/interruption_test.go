package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

func TestInterruptionsBecomeEndings(t *testing.T) {
	t.Parallel()
	spot := []cloud.OfferingKey{{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}}
	tests := map[string]struct {
		reason  string
		notices []cloud.Notice
		arrange func(*edge)
		endings map[string][]workflows.Ending
		deleted []string
		shunned []cloud.OfferingKey
		events  []string
	}{
		"spot": {
			reason:  "the node goes, its offering is left alone, and both claim and Node say why",
			notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")}, deleted: []string{"1"}, shunned: spot,
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}},
			events:  []string{"SpotInterrupted", "SpotInterrupted", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"rebalance": {
			reason: "nothing has happened yet", notices: []cloud.Notice{notice("1", cloud.RebalanceRecommendation, "i-a")}, deleted: []string{"1"},
			events: []string{"SpotRebalanceRecommendation", "SpotRebalanceRecommendation"},
		},
		"rebalance, where that replaces": {
			reason:  "the node is replaced before EC2 wants it, and its offering is left alone",
			arrange: func(e *edge) { e.interruptions.replacesAtRisk = true },
			notices: []cloud.Notice{notice("1", cloud.RebalanceRecommendation, "i-a")}, deleted: []string{"1"}, shunned: spot,
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "RebalanceRecommended"}}},
			events:  []string{"SpotRebalanceRecommendation", "SpotRebalanceRecommendation", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"duplicates": {
			reason:  "SQS may deliver twice, EC2 may say the same again, and one removal has one signal",
			notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a"), notice("2", cloud.SpotInterruption, "i-a")},
			deleted: []string{"1", "2"}, shunned: slices.Repeat(spot, 2),
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}},
			events:  []string{"SpotInterrupted", "SpotInterrupted", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"a change of several": {
			reason: "AWS Health names all affected instances in one event", notices: []cloud.Notice{notice("1", cloud.ScheduledChange, "i-a", "i-b", "i-x")},
			arrange: func(e *edge) { e.mirror.nodes = nil },
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "ScheduledChange"}}, "c/nodeclaim/b": {{Reason: "ScheduledChange"}}},
			events:  []string{"InstanceUnhealthy", "InstanceUnhealthy", "TerminatingOnInterruption", "TerminatingOnInterruption"},
		},
		"stopped": {
			reason: "somebody stops the instance", notices: []cloud.Notice{notice("1", cloud.InstanceStopping, "i-b")}, deleted: []string{"1"},
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "InstanceStopping"}}}, events: []string{"InstanceStopping", "TerminatingOnInterruption"},
		},
		"terminated": {
			reason: "nothing is left to drain", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-b")}, deleted: []string{"1"},
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "InstanceTerminated", Lost: true}}},
			events:  []string{"InstanceTerminating", "TerminatingOnInterruption"},
		},
		"Tenon's own": {
			reason: "Tenon terminates the instances of claims that are being deleted, and need not be told",
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{Daemon: true}}}
			},
			notices: []cloud.Notice{notice("1", cloud.InstanceTerminating, "i-a"), notice("2", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1", "2"},
		},
		"killed while draining": {
			reason: "the drain waits for pods that run no longer", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "InstanceTerminated", Lost: true, Deleting: true}}},
		},
		"interrupted while draining": {
			reason: "it goes already; only its offering is left alone, and the Events say so", notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")},
			arrange: func(e *edge) { e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()} },
			deleted: []string{"1"}, shunned: spot, events: []string{"SpotInterrupted", "SpotInterrupted"},
		},
		"out of order": {
			reason: "SQS may deliver first what came last", notices: []cloud.Notice{notice("1", cloud.InstanceTerminated, "i-a")}, deleted: []string{"1", "2", "3"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
				for _, kind := range []cloud.InterruptionKind{cloud.InstanceTerminated, cloud.InstanceTerminating} {
					e.notices.handleAll(context.Background(), []cloud.Notice{notice(fmt.Sprint(len(e.cloud.deleted)+2), kind, "i-a")})
				}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "InstanceTerminated", Lost: true, Deleting: true}}},
		},
		"impaired while draining": {
			reason: "the drain waits for nothing any more", notices: []cloud.Notice{notice("1", cloud.SystemImpaired, "i-a")}, deleted: []string{"1"},
			arrange: func(e *edge) {
				e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
				e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{}}}
			},
			endings: map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SystemStatusImpaired", Forced: true, Deleting: true}}}, events: []string{"InstanceUnhealthy", "InstanceUnhealthy"},
		},
		"somebody else's": {
			reason: "most instances of an account are", notices: []cloud.Notice{notice("1", cloud.InstanceStopping, "i-x")}, deleted: []string{"1"},
		},
		"not known yet": {
			reason: "an instance launched a moment ago may be ours: the notice is to come again", notices: []cloud.Notice{notice("1", cloud.SpotInterruption, "i-x")},
		},
		"never known": {
			reason: "a minute later it would be known", deleted: []string{"1"},
			notices: []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-x"}, At: time.Now().Add(-2 * time.Minute)}}},
		},
		"not seen": {
			reason: "an old view of the cluster may lack a claim that is there", arrange: func(e *edge) { e.mirror.stale = errors.New("stale") },
			notices: []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: cloud.SpotInterruption, Instances: []string{"i-x"}, At: time.Now().Add(-2 * time.Minute)}}},
		},
		"junk": {
			reason: "it will never be understood", notices: []cloud.Notice{{Receipt: "1", Err: errors.New("not an event")}}, deleted: []string{"1"},
		},
		"of no concern": {reason: "the rule lets more through than is needed", notices: []cloud.Notice{{Receipt: "1"}}, deleted: []string{"1"}},
		"Temporal hiccups": {
			reason: "a signal that fails is sent again at once", notices: []cloud.Notice{notice("1", cloud.ScheduledChange, "i-b")}, deleted: []string{"1"},
			arrange: func(e *edge) { e.temporal.refuses = 2 },
			endings: map[string][]workflows.Ending{"c/nodeclaim/b": {{Reason: "ScheduledChange"}}}, events: []string{"InstanceUnhealthy", "TerminatingOnInterruption"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			if test.arrange != nil {
				test.arrange(e)
			}
			e.notices.handleAll(t.Context(), test.notices)
			if test.endings == nil {
				test.endings = map[string][]workflows.Ending{}
			}
			if diff := cmp.Diff(test.endings, e.temporal.endings()); diff != "" {
				t.Errorf("%s: endings (-want +got):\n%s", test.reason, diff)
			}
			slices.Sort(e.cloud.deleted)
			events := e.told()
			slices.Sort(events)
			for what, pair := range map[string][2]any{"deleted": {test.deleted, e.cloud.deleted}, "shunned": {test.shunned, e.cloud.shunned}, "events": {test.events, events}} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", test.reason, what, diff)
				}
			}
		})
	}
}

func TestClaimsSayWhenTheirInstanceEnds(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const atOnce, inTwo = "2026-01-02T03:04:05Z", "2026-01-02T03:06:05Z"
	going := func(e *edge) {
		e.mirror.claims["i-a"].DeletionTimestamp = &metav1.Time{Time: at.Add(-time.Hour)}
		e.mirror.pods["node-a"] = []*cluster.Pod{{Pod: &plan.Pod{DoNotDisrupt: true}}}
	}
	known := func(annotation, moment string) func(*edge) {
		return func(e *edge) {
			going(e)
			e.mirror.claims["i-a"].Annotations = map[string]string{annotation: moment}
		}
	}
	for _, test := range []struct {
		reason  string
		kind    cloud.InterruptionKind
		arrange func(*edge)
		want    string
	}{
		{reason: "a spot instance has two minutes", kind: cloud.SpotInterruption, want: inTwo},
		{reason: "as has one in a reservation that is taken back", kind: cloud.ReservationInterruption, want: inTwo},
		{reason: "one that is being stopped has none", kind: cloud.InstanceStopping, want: atOnce},
		{reason: "nor one that is being terminated", kind: cloud.InstanceTerminating, want: atOnce},
		{reason: "work on the machine begins nobody knows when", kind: cloud.ScheduledChange, want: ""},
		{reason: "nothing has happened yet", kind: cloud.RebalanceRecommendation, want: ""},
		{reason: "a drain that waits for a pod does not wait any more", kind: cloud.SpotInterruption, arrange: going, want: inTwo},
		{reason: "Tenon's own termination is no news", kind: cloud.InstanceTerminating, arrange: func(e *edge) {
			going(e)
			e.mirror.pods = nil
		}, want: ""},
		{reason: "the deadline of the drain may be sooner", kind: cloud.SpotInterruption,
			arrange: known(karpv1.NodeClaimTerminationTimestampAnnotationKey, atOnce), want: ""},
		{reason: "or later", kind: cloud.SpotInterruption, arrange: known(karpv1.NodeClaimTerminationTimestampAnnotationKey, "2026-01-02T09:00:00Z"), want: inTwo},
		{reason: "it was stopped before it could be taken back", kind: cloud.SpotInterruption, arrange: known(karpv1.InstanceEndsAnnotationKey, atOnce), want: ""},
	} {
		e := newEdge(t)
		if test.arrange != nil {
			test.arrange(e)
		}
		e.notices.handleAll(t.Context(), []cloud.Notice{{Receipt: "1", Interruption: cloud.Interruption{Kind: test.kind, Instances: []string{"i-a"}, At: at}}})
		if got := e.kube.notes["a"][karpv1.InstanceEndsAnnotationKey]; got != test.want {
			t.Errorf("%s: the claim says %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestANoticeIsNotLostWhileTemporalIsAway receives a spot notice while Temporal does not answer, for longer than the
// queue keeps it: the Node is closed at once, and the claim is notified when Temporal is back.
func TestANoticeIsNotLostWhileTemporalIsAway(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	claim := e.mirror.claims["i-a"]
	e.mirror.claimNamed = claim
	e.temporal.refuses = 1000
	e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a")})
	if diff := cmp.Diff([]string{"node-a"}, e.closed); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1"}, e.cloud.deleted); diff != "" {
		t.Errorf("what is noted need not come again (-want +got):\n%s", diff)
	}
	event, _ := e.changes.queue.Get()
	if want := (cluster.Event{Kind: cluster.ClaimChanged, Name: "a"}); event != want {
		t.Errorf("%+v is tried again, want %+v", event, want)
	}
	claim.Annotations = e.kube.notes["a"] // as the watch shows it
	if _, err := e.changes.claims.changed(t.Context(), "a"); err == nil {
		t.Error("the claim was told while Temporal is away")
	}
	e.temporal.refuses = 0
	for range 2 {
		if _, err := e.changes.claims.changed(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string][]workflows.Ending{"c/nodeclaim/a": {{Reason: "SpotInterrupted"}}}, e.temporal.endings()); diff != "" {
		t.Errorf("endings (-want +got):\n%s", diff)
	}
	// Another replica, which has signalled nothing yet, finds the note on the claim.
	other := newEdge(t)
	other.mirror.claimNamed = claim
	if _, err := other.changes.claims.changed(t.Context(), "a"); err != nil || len(other.temporal.endings()["c/nodeclaim/a"]) != 1 {
		t.Errorf("another replica told %v, error %v", other.temporal.endings(), err)
	}
}

func TestWaveOfInterruptionsShunsAnOfferingOnce(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for i := range 40 {
		instance := fmt.Sprintf("i-%d", i)
		e.mirror.claims[instance] = interruptedClaim(fmt.Sprint(i), instance)
		e.notices.handleAll(t.Context(), []cloud.Notice{notice(instance, cloud.SpotInterruption, instance)})
	}
	want := signal{"c/provisioning", workflows.SignalCapacityRefused, workflows.CapacityRefused{Refused: []cloud.OfferingKey{e.edges.notices.offerings.of(e.mirror.claims["i-0"])}, Quiet: true}}
	also := want
	also.Workflow = "c/disruption"
	var shuns []signal
	for i, sent := range e.temporal.all {
		if _, ok := sent.Fact.(workflows.CapacityRefused); ok {
			if shuns = append(shuns, sent); i > 1 {
				t.Errorf("signal %d, %+v, comes after a claim's", i, sent)
			}
		}
	}
	if diff := cmp.Diff([]signal{want, also}, shuns); diff != "" {
		t.Errorf("whoever plans is told once, and quietly (-want +got):\n%s", diff)
	}
	if got := len(e.temporal.endings()); got != 40 {
		t.Errorf("%d claims end, want 40", got)
	}
}

func TestInterruptionMetrics(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	e.notices.handleAll(t.Context(), []cloud.Notice{notice("1", cloud.SpotInterruption, "i-a"), {Receipt: "2", Err: errors.New("junk")}, {Receipt: "3"}})
	e.notices.unhealthy(t.Context(), cloud.SystemImpaired, "i-b")
	e.notices.unhealthy(t.Context(), cloud.SystemImpaired, "i-b")
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := strings.TrimPrefix(family.GetName(), "karpenter_interruption_")
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{"deleted_messages_total": 3, "instance_status_unhealthy_total SystemStatus": 1, "message_queue_duration_seconds": 1,
		"received_messages_total no_op": 1, "received_messages_total spot_interrupted": 1, "received_messages_total unparsable": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := NewInterruptionMetrics(e.registry); err != nil {
		t.Errorf("a second worker in one process: %v", err)
	}
}
