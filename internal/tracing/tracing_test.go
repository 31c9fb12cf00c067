package tracing

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// begin is the whole second in which the pods of the tests are created.
var begin = time.Date(2026, 11, 21, 5, 40, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return begin.Add(time.Duration(seconds * float64(time.Second)))
}

// receiver is an OTLP receiver made of OpenTelemetry's protocol alone.
type receiver struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	service map[string]string
	header  http.Header
	refuses bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var body io.Reader = request.Body
	if request.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	text, err := io.ReadAll(body)
	var export collector.ExportTraceServiceRequest
	switch {
	case r.refuses:
		http.Error(w, "full", http.StatusForbidden)
		return
	case err != nil, request.URL.Path != "/v1/traces", proto.Unmarshal(text, &export) != nil:
		http.Error(w, "no export of traces", http.StatusBadRequest)
		return
	}
	r.header = request.Header
	for _, of := range export.GetResourceSpans() {
		r.service = map[string]string{}
		for _, attribute := range of.GetResource().GetAttributes() {
			r.service[attribute.GetKey()] = attribute.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

// names returns the spans by their names, each with its parent's, and checks what holds for every trace: all have one trace
// id, every span lies within its parent, and there is one root.
func (r *receiver) names(t *testing.T) map[string]string {
	t.Helper()
	byID := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		byID[hex.EncodeToString(s.GetSpanId())] = s
		if string(s.GetTraceId()) != string(r.spans[0].GetTraceId()) {
			t.Errorf("span %s is of another trace", s.GetName())
		}
	}
	names := map[string]string{}
	for _, s := range r.spans {
		parent := byID[hex.EncodeToString(s.GetParentSpanId())]
		names[s.GetName()] = parent.GetName()
		if s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
			t.Errorf("span %s ends before it begins", s.GetName())
		}
		if len(s.GetParentSpanId()) == 0 {
			continue
		}
		if parent == nil {
			t.Errorf("span %s has a parent that was not exported", s.GetName())
		} else if s.GetStartTimeUnixNano() < parent.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > parent.GetEndTimeUnixNano() {
			t.Errorf("span %s (%d to %d) is not within %s (%d to %d)", s.GetName(), s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano(), parent.GetName(), parent.GetStartTimeUnixNano(), parent.GetEndTimeUnixNano())
		}
	}
	return names
}

func condition(kind string, at time.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}
}

// cluster is a mirror with one claim, whose node serves.
type cluster struct {
	claim *karpv1.NodeClaim
	node  *corev1.Node
	pods  []kube.Object
}

func (c cluster) Claims() []*karpv1.NodeClaim { return []*karpv1.NodeClaim{c.claim} }

func (c cluster) Node(name string) *corev1.Node {
	if name != c.node.Name {
		return nil
	}
	return c.node
}

func servingCluster() cluster {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: "4f6c", CreationTimestamp: metav1.NewTime(at(2)), Labels: map[string]string{karpv1.NodePoolLabelKey: "web"},
		Annotations: map[string]string{karpv1.LaunchGroupAnnotationKey: "g-1"}}}
	claim.Status.NodeName, claim.Status.ProviderID = "n-1", "aws:///us-east-1a/i-1"
	claim.Status.Conditions = []metav1.Condition{condition(karpv1.ConditionTypeLaunched, at(3)), condition(karpv1.ConditionTypeRegistered, at(30)), condition(karpv1.ConditionTypeInitialized, at(40))}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n-1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(38))}}
	pod := func(name string, created, bound float64, owner string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(at(created))}, Spec: corev1.PodSpec{NodeName: "n-1"}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(bound))}}
		if owner != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: owner, Name: "x", Controller: new(true)}}
		}
		return p
	}
	return cluster{claim: claim, node: node, pods: []kube.Object{pod("web", 0, 41, "ReplicaSet"), pod("agent", 0, 31, "DaemonSet"), pod("later", 50, 51, "ReplicaSet")}}
}

// written are histories by the ids of workflows.
type written map[string][]*historypb.HistoryEvent

func (w written) GetWorkflowHistory(_ context.Context, id, _ string, _ bool, _ enums.HistoryEventFilterType) client.HistoryEventIterator {
	return &iterator{of: w[id], missing: w[id] == nil}
}

type iterator struct {
	of      []*historypb.HistoryEvent
	missing bool
}

func (i *iterator) HasNext() bool { return len(i.of) > 0 || i.missing }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	if i.missing {
		i.missing = false
		return nil, serviceerror.NewNotFound("it is gone")
	}
	next := i.of[0]
	i.of = i.of[1:]
	return next, nil
}

// planThenLaunch is a Provisioning with two plans, the second of which led to the launch of a group, and the end of the
// launch, which was told to try again once.
func planThenLaunch(t *testing.T) written {
	t.Helper()
	result, err := converter.GetDefaultDataConverter().ToPayloads(workflows.PlanResult{Looked: at(1.5)})
	if err != nil {
		t.Fatal(err)
	}
	scheduled := func(id int64, seconds float64, name string) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(at(seconds)), Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: name}}}}
	}
	completed := func(id, of int64, seconds float64, result *commonpb.Payloads) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{EventId: id, EventTime: timestamppb.New(at(seconds)), Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: of, Result: result}}}
	}
	launched := &historypb.HistoryEvent{EventId: 1, EventTime: timestamppb.New(at(2.3)), Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{ParentInitiatedEventId: 22,
			ParentWorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "blue/provisioning", RunId: "r"}, OriginalExecutionRunId: "l"}}}
	return written{
		"blue/provisioning": {scheduled(5, -60, "Plan"), completed(7, 5, -58, nil), scheduled(15, 0.4, "Plan"), completed(17, 15, 2.2, result), scheduled(30, 90, "Plan")},
		"blue/launch/g-1": {launched, scheduled(5, 2.4, "PrepareLaunch"), completed(7, 5, 2.5, nil), scheduled(11, 2.6, "CreateFleet"), completed(13, 11, 3.1, nil),
			scheduled(17, 3.2, "StartNodeClaims"), completed(19, 17, 3.4, nil)},
	}
}

func newTracer(t *testing.T, endpoint string, share float64, c cluster, histories Histories) *Tracer {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pods := fake.NewClientBuilder().WithScheme(scheme).WithObjects(c.pods...).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o kube.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	tracer, err := New(t.Context(), Options{Endpoint: endpoint, Share: share, Cluster: "blue", Version: "0.1.0", Instance: "tenon_1"}, c, pods, histories, func() bool { return true }, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func TestOneTraceFromThePodToItsNode(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue")
	got := &receiver{}
	server := httptest.NewServer(got)
	defer server.Close()
	tracer := newTracer(t, server.URL, 1, servingCluster(), planThenLaunch(t))
	tracer.look(t.Context(), at(45))
	if len(got.spans) > 0 {
		t.Fatalf("%d spans were exported before the pods are surely bound", len(got.spans))
	}
	tracer.look(t.Context(), at(60))
	want := map[string]string{"node": "", "plan": "node", "batch": "plan", "solve": "plan", "launch": "node", "PrepareLaunch": "launch", "CreateFleet": "launch",
		"registration": "node", "initialization": "node", "ready": "initialization", "pod": "node"}
	if diff := gocmp.Diff(want, got.names(t)); diff != "" {
		t.Errorf("spans and their parents: -want +got\n%s", diff)
	}
	if len(got.spans) != len(want) {
		t.Errorf("%d spans, want %d: neither a DaemonSet's pod nor a later one is what the node is for", len(got.spans), len(want))
	}
	for name, times := range map[string][2]float64{"node": {0, 41}, "pod": {0, 41}, "plan": {0.4, 2.2}, "batch": {0.4, 1.5}, "solve": {1.5, 2.2}, "launch": {2.3, 3.1}, "CreateFleet": {2.6, 3.1},
		"registration": {3.1, 30}, "initialization": {30, 40}, "ready": {30, 38}} {
		span := got.spans[slices.IndexFunc(got.spans, func(s *tracepb.Span) bool { return s.GetName() == name })]
		if begins, ends := time.Unix(0, int64(span.GetStartTimeUnixNano())), time.Unix(0, int64(span.GetEndTimeUnixNano())); !begins.Equal(at(times[0])) || !ends.Equal(at(times[1])) {
			t.Errorf("%s is from %s to %s, want %s to %s", name, begins.Sub(begin), ends.Sub(begin), at(times[0]).Sub(begin), at(times[1]).Sub(begin))
		}
	}
	if got.service["service.name"] != "tenon" || got.service["k8s.cluster.name"] != "blue" || got.header.Get("X-Tenant") != "blue" {
		t.Errorf("the resource is %v, the headers are %v", got.service, got.header)
	}

	first := len(got.spans)
	tracer.look(t.Context(), at(65))
	if len(got.spans) != first {
		t.Error("the trace was exported twice")
	}
	// A leader that takes over does not know what its predecessor has exported.
	newTracer(t, server.URL, 1, servingCluster(), planThenLaunch(t)).look(t.Context(), at(70))
	if len(got.spans) != 2*first {
		t.Fatalf("%d spans after a takeover, want %d", len(got.spans), 2*first)
	}
	byID := func(a, b *tracepb.Span) int { return cmp.Compare(string(a.GetSpanId()), string(b.GetSpanId())) }
	before, after := slices.SortedFunc(slices.Values(got.spans[:first]), byID), slices.SortedFunc(slices.Values(got.spans[first:]), byID)
	for i := range before {
		if !proto.Equal(before[i], after[i]) {
			t.Errorf("after a takeover, span %s is another one", before[i].GetName())
		}
	}
}

func TestWhatIsNotRecordedIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		edit   func(written, *cluster)
		want   []string
	}{
		"Gone": {reason: "histories may be gone, or Temporal new", edit: func(w written, _ *cluster) { clear(w) }, want: []string{"initialization", "node", "pod", "ready", "registration"}},
		"ByHand": {reason: "a claim that nobody planned", edit: func(w written, _ *cluster) {
			w["blue/launch/g-1"][0].GetWorkflowExecutionStartedEventAttributes().ParentWorkflowExecution = nil
		}, want: []string{"CreateFleet", "PrepareLaunch", "initialization", "launch", "node", "pod", "ready", "registration"}},
		"Adopted": {reason: "Karpenter's claims have no launch group", edit: func(_ written, c *cluster) { c.claim.Annotations = nil }, want: []string{"initialization", "node", "pod", "ready", "registration"}},
		"NoPod":   {reason: "a replacement is launched before its pods", edit: func(_ written, c *cluster) { c.pods = nil }, want: []string{"CreateFleet", "PrepareLaunch", "batch", "initialization", "launch", "node", "plan", "ready", "registration", "solve"}},
		"Cipher": {reason: "an encrypted result does not say when the wait was over", edit: func(w written, _ *cluster) {
			w["blue/provisioning"][3].GetActivityTaskCompletedEventAttributes().Result = &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("binary/encrypted")}}}}
		}, want: []string{"CreateFleet", "PrepareLaunch", "initialization", "launch", "node", "plan", "pod", "ready", "registration"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &receiver{}
			server := httptest.NewServer(got)
			defer server.Close()
			histories, c := planThenLaunch(t), servingCluster()
			test.edit(histories, &c)
			newTracer(t, server.URL, 1, c, histories).look(t.Context(), at(60))
			if diff := gocmp.Diff(test.want, slices.Sorted(maps.Keys(got.names(t)))); diff != "" {
				t.Errorf("%s: -want +got\n%s", test.reason, diff)
			}
		})
	}
}

func TestAReceiverThatIsAwayIsAskedAgain(t *testing.T) {
	t.Parallel()
	got := &receiver{refuses: true}
	server := httptest.NewServer(got)
	defer server.Close()
	tracer := newTracer(t, server.URL, 1, servingCluster(), planThenLaunch(t))
	tracer.look(t.Context(), at(60))
	got.refuses = false
	tracer.look(t.Context(), at(65))
	if len(got.spans) == 0 {
		t.Error("the trace was not exported after the receiver had come back")
	}
	late := newTracer(t, server.URL, 1, servingCluster(), planThenLaunch(t))
	exported := len(got.spans)
	if late.look(t.Context(), at(40).Add(tracedFor+time.Second)); len(got.spans) != exported {
		t.Error("a node that has served for long was traced")
	}
}

func TestSamplingFollowsFromTheClaim(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		share       float64
		least, most int
	}{{0, 0, 0}, {0.1, 120, 280}, {1, 2000, 2000}} {
		exporter, err := newExporter(t.Context(), Options{Endpoint: "http://localhost:1", Share: row.share})
		if err != nil {
			t.Fatal(err)
		}
		sampled := 0
		for i := range 2000 {
			if exporter.sampled(types.UID(hex.EncodeToString([]byte{byte(i), byte(i >> 8)}))) {
				sampled++
			}
		}
		if sampled < row.least || sampled > row.most {
			t.Errorf("with a share of %v, %d of 2000 claims are sampled, want %d to %d", row.share, sampled, row.least, row.most)
		}
	}
}

func TestTracesAreOffByDefault(t *testing.T) {
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	if (Options{Share: 1}).Enabled() {
		t.Error("traces are on although nothing says where they go")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
	if !(Options{Share: 1}).Enabled() {
		t.Error("OpenTelemetry's own variable does not turn traces on")
	}
}

// TestRecordedLaunches reads the steps of launches that real servers have recorded.
func TestRecordedLaunches(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		why, file string
		check     func([]step) error
	}{
		{why: "an uneventful launch is prepared and sent", file: "launch-together", check: func(s []step) error {
			if len(s) != 2 || s[0].activity != "PrepareLaunch" || s[1].activity != "CreateFleet" || s[1].failure != "" || !s[0].ended.After(s[0].asked) || s[1].asked.Before(s[0].ended) {
				return errors.New("want PrepareLaunch and then CreateFleet")
			}
			return nil
		}},
		{why: "a throttled one fails before it succeeds", file: "launch-throttled", check: func(s []step) error {
			failed := slices.ContainsFunc(s, func(one step) bool { return one.activity == "CreateFleet" && one.failure != "" })
			if !failed || s[len(s)-1].failure != "" {
				return errors.New("want a CreateFleet that fails, and an end that does not")
			}
			return nil
		}},
	} {
		file, err := os.Open("../../workflows/testdata/histories/" + row.file + ".json.gz")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		uncompressed, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		history, err := client.HistoryFromJSON(uncompressed, client.HistoryJSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := untilLaunched(steps(history.GetEvents(), "blue/launch/g-1", "r"))
		if err := row.check(got); err != nil {
			var names []string
			for _, s := range got {
				names = append(names, strings.TrimSpace(s.activity+" "+s.failure))
			}
			t.Errorf("%s: %v, got %v", row.why, err, names)
		}
	}
}
