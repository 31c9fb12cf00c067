package aws

import (
	"context"
	"errors"
	"strconv"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// callMetrics counts calls to AWS and batches of them, under Karpenter's names.
type callMetrics struct {
	calls, attempts                      *prometheus.CounterVec
	durations, attemptDurations, retries *prometheus.HistogramVec
	batchSize, batchTime                 *prometheus.HistogramVec
}

// newCallMetrics registers the metrics.
func newCallMetrics(registry prometheus.Registerer) (*callMetrics, error) {
	set := metrics.NewSet(registry, nil)
	return &callMetrics{
		calls:            set.Counter("aws_sdk_go_request_total"),
		attempts:         set.Counter("aws_sdk_go_request_attempt_total"),
		durations:        set.Histogram("aws_sdk_go_request_duration_seconds"),
		attemptDurations: set.Histogram("aws_sdk_go_request_attempt_duration_seconds"),
		retries:          set.Histogram("aws_sdk_go_request_retry_count"),
		batchSize:        set.Histogram("karpenter_cloudprovider_batcher_batch_size"),
		batchTime:        set.Histogram("karpenter_cloudprovider_batcher_batch_time_seconds"),
	}, set.Err()
}

// install counts the calls of every operation of a client, and their attempts.
func (m *callMetrics) install(stack *middleware.Stack) error {
	return errors.Join(
		stack.Initialize.Add(middleware.InitializeMiddlewareFunc("CountCalls", m.call), middleware.Before),
		stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("CountAttempts", m.attempt), "Retry", middleware.After))
}

// call counts a call with all its attempts.
func (m *callMetrics) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (
	out middleware.InitializeOutput, metadata middleware.Metadata, err error,
) {
	began := time.Now()
	out, metadata, err = next.HandleInitialize(ctx, in)
	labels := callLabels(ctx, metadata, err)
	m.calls.With(labels).Inc()
	m.durations.With(labels).Observe(time.Since(began).Seconds())
	if results, ok := retry.GetAttemptResults(metadata); ok {
		m.retries.With(labels).Observe(float64(max(0, len(results.Results)-1)))
	}
	return out, metadata, err
}

// attempt counts one attempt of a call.
func (m *callMetrics) attempt(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (
	out middleware.FinalizeOutput, metadata middleware.Metadata, err error,
) {
	began := time.Now()
	out, metadata, err = next.HandleFinalize(ctx, in)
	labels := callLabels(ctx, metadata, err)
	m.attempts.With(labels).Inc()
	m.attemptDurations.With(labels).Observe(time.Since(began).Seconds())
	return out, metadata, err
}

// callLabels name a call and the status of its reply, which is 0 if there was none.
func callLabels(ctx context.Context, metadata middleware.Metadata, err error) prometheus.Labels {
	code := 0
	var failed *awshttp.ResponseError
	if response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok && response != nil {
		code = response.StatusCode
	} else if errors.As(err, &failed) {
		code = failed.HTTPStatusCode()
	}
	return prometheus.Labels{"service": awsmiddleware.GetServiceID(ctx), "action": awsmiddleware.GetOperationName(ctx), "code": strconv.Itoa(code)}
}

// counting returns a function that measures the batches of a name.
func counting(m *callMetrics, name string) func(size int, open time.Duration) {
	return func(size int, open time.Duration) { m.batched(name, size, open) }
}

// batched measures a batch. A nil callMetrics measures nothing.
func (m *callMetrics) batched(name string, size int, open time.Duration) {
	if m != nil {
		m.batchSize.WithLabelValues(name).Observe(float64(size))
		m.batchTime.WithLabelValues(name).Observe(open.Seconds())
	}
}
