package temporal

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.uber.org/zap"
)

// newMetrics returns a handler that counts the SDK's metrics in a registry, under Temporal's own names:
// temporal_workflow_task_..., and so on.
func newMetrics(registry prometheus.Registerer, log *zap.Logger) (client.MetricsHandler, error) {
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("export Temporal's metrics: %w", err)
	}
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{
		Meter:                metric.NewMeterProvider(metric.WithReader(reader)).Meter("temporal-sdk-go"),
		UseMonotonicCounters: true,
		OnError:              func(err error) { log.Warn("a metric of Temporal's could not be counted", zap.Error(err)) },
	}), nil
}
