package tracing

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// Options say where traces go.
type Options struct {
	// Endpoint is the address of an OTLP receiver, such as http://collector:4318; /v1/traces is appended. Empty means
	// OpenTelemetry's own variables; without those there are no traces.
	Endpoint string
	// Share is the share of claims that are traced, from 0 to 1.
	Share float64
	// Cluster, Version and Instance describe who exports.
	Cluster, Version, Instance string
}

// Enabled reports whether anything says where traces go.
func (o Options) Enabled() bool {
	return o.Endpoint != "" || os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Validate returns an error about the first invalid option.
func (o Options) Validate() error {
	if o.Endpoint != "" {
		at, err := url.Parse(o.Endpoint)
		switch {
		case err != nil, at.Host == "", at.Scheme != "http" && at.Scheme != "https":
			return fmt.Errorf("--otlp-endpoint %q: must be an address such as http://collector:4318", o.Endpoint)
		case at.User != nil: // the flag's value is logged
			return fmt.Errorf("--otlp-endpoint %s: has a password, which belongs into OTEL_EXPORTER_OTLP_HEADERS", at.Redacted())
		}
	}
	if !(o.Share >= 0 && o.Share <= 1) {
		return fmt.Errorf("--trace-sampling %v: must be from 0 to 1", o.Share)
	}
	return nil
}

// exporter exports whole traces by OTLP over HTTP.
type exporter struct {
	to       sdktrace.SpanExporter
	resource *resource.Resource
	sampler  sdktrace.Sampler
}

// newExporter does not contact the receiver yet. Headers, certificates, timeouts and compression are those of OpenTelemetry's
// variables.
func newExporter(ctx context.Context, o Options) (*exporter, error) {
	var options []otlptracehttp.Option
	if o.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(strings.TrimSuffix(o.Endpoint, "/")+"/v1/traces"))
	}
	to, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w", o.Endpoint, err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "tenon"), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Instance), attribute.String("k8s.cluster.name", o.Cluster)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return &exporter{to: to, resource: about, sampler: sdktrace.TraceIDRatioBased(o.Share)}, nil
}

// sampled reports whether a claim is traced. It depends on nothing but the claim.
func (e *exporter) sampled(claim types.UID) bool {
	return e.sampler.ShouldSample(sdktrace.SamplingParameters{ParentContext: context.Background(), TraceID: traceID(claim)}).Decision == sdktrace.RecordAndSample
}

// export sends the trace of a claim, and returns when the receiver has it.
func (e *exporter) export(ctx context.Context, claim types.UID, spans []span) error {
	var ended collected
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(e.resource), sdktrace.WithIDGenerator(fixedIDs{}), sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithSpanProcessor(&ended))
	tracer := provider.Tracer("github.com/tenon-sh/tenon")
	for _, s := range spans {
		within := context.WithValue(ctx, idsKey{}, ids{traceID(claim), spanID(claim, s.key)})
		if s.parent != "" {
			within = trace.ContextWithSpanContext(within, trace.NewSpanContext(trace.SpanContextConfig{TraceID: traceID(claim), SpanID: spanID(claim, s.parent), TraceFlags: trace.FlagsSampled}))
		}
		_, one := tracer.Start(within, s.name, trace.WithTimestamp(s.start), trace.WithAttributes(s.attributes...))
		if s.failure != "" {
			one.SetStatus(codes.Error, s.failure)
		}
		one.End(trace.WithTimestamp(s.end))
	}
	if err := e.to.ExportSpans(ctx, ended.spans); err != nil {
		return fmt.Errorf("export the trace of a claim: %w", err)
	}
	return nil
}

func (e *exporter) close(ctx context.Context) error { return e.to.Shutdown(ctx) }

// collected keeps the spans that have ended. One goroutine makes them all.
type collected struct{ spans []sdktrace.ReadOnlySpan }

// OnStart implements sdktrace.SpanProcessor.
func (*collected) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (c *collected) OnEnd(s sdktrace.ReadOnlySpan) { c.spans = append(c.spans, s) }

// Shutdown implements sdktrace.SpanProcessor.
func (*collected) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (*collected) ForceFlush(context.Context) error { return nil }
