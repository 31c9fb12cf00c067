package tracing

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// traceID is the id of a claim's trace. It follows from the claim's UID, so that whoever exports it again, after a crash or
// elsewhere, exports the same trace.
func traceID(claim types.UID) trace.TraceID {
	sum := sha256.Sum256([]byte("tenon trace\n" + string(claim)))
	return trace.TraceID(sum[:len(trace.TraceID{})])
}

// spanID is the id of a span of a claim's trace.
func spanID(claim types.UID, key string) trace.SpanID {
	sum := sha256.Sum256([]byte("tenon span\n" + string(claim) + "\n" + key))
	return trace.SpanID(sum[:len(trace.SpanID{})])
}

type idsKey struct{}

type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

// fixedIDs gives spans the ids that are in their context.
type fixedIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (fixedIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	fixed, _ := ctx.Value(idsKey{}).(ids)
	return fixed.trace, fixed.span
}

// NewSpanID implements sdktrace.IDGenerator.
func (fixedIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	fixed, _ := ctx.Value(idsKey{}).(ids)
	return fixed.span
}
