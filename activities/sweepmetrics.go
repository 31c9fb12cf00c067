package activities

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/workflows"
)

// SweepMetrics holds the metrics of sweeps. A nil SweepMetrics records nothing.
type SweepMetrics struct {
	finished                 prometheus.Gauge
	stopped, withheld, stuck prometheus.Gauge
	failures                 prometheus.Counter
}

// NewSweepMetrics registers the metrics.
func NewSweepMetrics(registry prometheus.Registerer) (*SweepMetrics, error) {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "sweep", Name: name, Help: help})
	}
	m := &SweepMetrics{
		finished: gauge("last_finished_timestamp_seconds", "When this worker last finished a sweep; zero if it never did."),
		stopped:  gauge("stopped", "1 if the last sweep terminated no node because the claims of most workflows, or the owners of most instances, had vanished at once."),
		withheld: gauge("withheld_nodes", "Nodes that the last sweep left to the next one, since one sweep may end only so many."),
		stuck:    gauge("stuck_workflows", "Workflows that are stuck, at most 20: their code may not fit their history."),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tenon", Subsystem: "sweep", Name: "failures_total",
			Help: "Objects that a sweep could not put right."}),
	}
	for _, collector := range []prometheus.Collector{m.finished, m.stopped, m.withheld, m.stuck, m.failures} {
		if err := registry.Register(collector); err != nil {
			return nil, fmt.Errorf("register sweep metrics: %w", err)
		}
	}
	return m, nil
}

// swept records the result of a sweep.
func (m *SweepMetrics) swept(result workflows.SweepResult) {
	if m == nil {
		return
	}
	m.finished.SetToCurrentTime()
	m.stopped.Set(0)
	if result.Stopped != "" {
		m.stopped.Set(1)
	}
	m.withheld.Set(float64(result.Withheld))
	m.stuck.Set(float64(len(result.Stuck)))
	m.failures.Add(float64(result.Failures))
}
