package metrics

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Set makes and registers metrics of the list by their names. Its methods never fail: Err returns what went wrong, once, when
// all are made.
type Set struct {
	registry prometheus.Registerer
	exports  func(By) bool
	err      error
}

// NewSet returns a set that registers with a registry. exports says whether this process exports metrics of a kind now; nil means
// that it exports all.
func NewSet(registry prometheus.Registerer, exports func(By) bool) *Set {
	if exports == nil {
		exports = func(By) bool { return true }
	}
	return &Set{registry: registry, exports: exports}
}

// Err returns why metrics could not be made or registered; nil if all could.
func (s *Set) Err() error { return s.err }

// Counter makes a counter.
func (s *Set) Counter(name string) *prometheus.CounterVec {
	metric := s.find(name, Counter)
	made := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: metric.Help}, metric.Labels)
	s.register(metric, made)
	return made
}

// Gauge makes a gauge.
func (s *Set) Gauge(name string) *prometheus.GaugeVec {
	metric := s.find(name, Gauge)
	made := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: metric.Help}, metric.Labels)
	s.register(metric, made)
	return made
}

// Histogram makes a histogram.
func (s *Set) Histogram(name string) *prometheus.HistogramVec {
	metric := s.find(name, Histogram)
	made := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: metric.Help, Buckets: metric.Buckets}, metric.Labels)
	s.register(metric, made)
	return made
}

// Summary makes a summary with Karpenter's quantiles.
func (s *Set) Summary(name string) *prometheus.SummaryVec {
	metric := s.find(name, Summary)
	const within = 0.01
	made := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: metric.Help,
		Objectives: map[float64]float64{0: within, 0.5: within, 0.9: within, 0.99: within, 1: within}}, metric.Labels)
	s.register(metric, made)
	return made
}

// Collect registers a collector of metrics of the list that are all exported by the same workers.
func (s *Set) Collect(by By, collector prometheus.Collector) {
	if err := s.registry.Register(gate{Collector: collector, open: func() bool { return s.exports(by) }}); err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("register metrics: %w", err))
	}
}

func (s *Set) find(name string, kind Kind) Metric {
	metric := catalogue().byName[name]
	if metric == nil || metric.Kind != kind || metric.By == Nobody {
		s.err = errors.Join(s.err, fmt.Errorf("the list of metrics has no %s %s to export", kind, name))
		return Metric{Name: name, Kind: kind}
	}
	return *metric
}

func (s *Set) register(metric Metric, collector prometheus.Collector) {
	if err := s.registry.Register(gate{Collector: collector, open: func() bool { return s.exports(metric.By) }}); err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("register %s: %w", metric.Name, err))
	}
}

// gate collects only while it is open.
type gate struct {
	prometheus.Collector
	open func() bool
}

// Collect implements prometheus.Collector.
func (g gate) Collect(to chan<- prometheus.Metric) {
	if g.open() {
		g.Collector.Collect(to)
	}
}

// Desc describes a metric of the list, with its labels in the order of the list.
func Desc(name string) *prometheus.Desc {
	metric := catalogue().byName[name]
	if metric == nil || metric.By == Nobody {
		return prometheus.NewInvalidDesc(fmt.Errorf("the list of metrics has no %s to export", name))
	}
	return prometheus.NewDesc(name, metric.Help, metric.Labels, nil)
}

// Buckets returns the upper bounds of a histogram of the list.
func Buckets(name string) []float64 {
	if metric := catalogue().byName[name]; metric != nil {
		return metric.Buckets
	}
	return nil
}
