package why_test

import (
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tenon-sh/tenon/test/world"
)

// receiver takes traces as an OpenTelemetry collector does.
type receiver struct {
	address string
	mu      sync.Mutex
	spans   []*tracepb.Span
}

// newReceiver listens until the test ends.
func newReceiver(t *testing.T) *receiver {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{address: "http://" + listener.Addr().String()}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return r
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var export collector.ExportTraceServiceRequest
	text, err := io.ReadAll(request.Body)
	if err != nil || request.URL.Path != "/v1/traces" || proto.Unmarshal(text, &export) != nil {
		http.Error(w, "no export of traces", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range export.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			r.spans = append(r.spans, scope.GetSpans()...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// attribute returns an attribute of a span; empty if it has none of that name.
func attribute(s *tracepb.Span, key string) string {
	for _, attribute := range s.GetAttributes() {
		if attribute.GetKey() == key {
			return attribute.GetValue().GetStringValue()
		}
	}
	return ""
}

// traced waits for the trace of the node that serves. It has one root, and in it, one after the other, the plan, the launch,
// the registration and the initialization, and the pod from its creation until it was bound.
func traced(t *testing.T, w *world.World, r *receiver, served story) {
	t.Helper()
	var root *tracepb.Span
	w.Await("the node's trace is exported", time.Minute, func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		at := slices.IndexFunc(r.spans, func(s *tracepb.Span) bool {
			return s.GetName() == "node" && attribute(s, "k8s.node.name") == served.Node
		})
		if at < 0 {
			return false, "no root span of the node"
		}
		root = r.spans[at]
		return true, ""
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := map[string]*tracepb.Span{}
	for _, s := range r.spans {
		if string(s.GetTraceId()) != string(root.GetTraceId()) {
			continue
		}
		spans[s.GetName()] = s
		if s.GetStartTimeUnixNano() < root.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > root.GetEndTimeUnixNano() {
			t.Errorf("span %s is not within the root", s.GetName())
		}
	}
	before := root.GetStartTimeUnixNano()
	for _, name := range []string{"plan", "launch", "registration", "initialization"} {
		s := spans[name]
		if s == nil || string(s.GetParentSpanId()) != string(root.GetSpanId()) || s.GetStartTimeUnixNano() < before {
			t.Fatalf("span %s is missing, is no child of the root, or begins before the stage that it follows: %v", name, s)
		}
		before = s.GetStartTimeUnixNano()
	}
	for child, parent := range map[string]string{"batch": "plan", "solve": "plan", "CreateFleet": "launch"} {
		if s := spans[child]; s == nil || string(s.GetParentSpanId()) != string(spans[parent].GetSpanId()) {
			t.Errorf("span %s is missing, or no child of %s: %v", child, parent, s)
		}
	}
	if pod := spans["pod"]; pod == nil || attribute(pod, "k8s.pod.name") != "served" || pod.GetStartTimeUnixNano() != root.GetStartTimeUnixNano() {
		t.Errorf("the trace does not begin with the pod that the node was launched for: %v", pod)
	}
}
