package starter

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/metrics"
)

// InterruptionMetrics counts interruption notices, under the names that Karpenter's dashboards use. A nil one counts
// nothing.
type InterruptionMetrics struct {
	messages  *prometheus.CounterVec
	deletions prometheus.Counter
	latency   prometheus.Histogram
	impaired  *prometheus.CounterVec
}

// NewInterruptionMetrics registers the metrics. Metrics that are already registered are reused.
func NewInterruptionMetrics(registry prometheus.Registerer) (*InterruptionMetrics, error) {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "karpenter", Subsystem: "interruption", Name: name, Help: help}
	}
	wait := name("message_queue_duration_seconds", "Time from an event of AWS to the end of its handling.")
	m := &InterruptionMetrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts(name("received_messages_total",
			"Messages received from the interruption queue; those of no concern are no_op, those nobody understands unparsable.")), []string{"message_type"}),
		deletions: prometheus.NewCounter(prometheus.CounterOpts(name("deleted_messages_total", "Messages deleted from the interruption queue."))),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: wait.Namespace, Subsystem: wait.Subsystem, Name: wait.Name, Help: wait.Help,
			Buckets: metrics.Buckets("karpenter_interruption_message_queue_duration_seconds")}),
		impaired: prometheus.NewCounterVec(prometheus.CounterOpts(name("instance_status_unhealthy_total",
			"Instances of the cluster that were found to fail EC2's status checks or to be worked on.")), []string{"category"}),
	}
	return m, errors.Join(register(registry, &m.messages), register(registry, &m.deletions), register(registry, &m.latency), register(registry, &m.impaired))
}

// register registers a collector, or replaces it by the one that is registered already.
func register[C prometheus.Collector](registry prometheus.Registerer, collector *C) error {
	err := registry.Register(*collector)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if existing, same := there.ExistingCollector.(C); same {
			*collector = existing
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("register interruption metrics: %w", err)
	}
	return nil
}

func (m *InterruptionMetrics) received(notice *cloud.Notice) {
	if m == nil {
		return
	}
	label := interruptionKinds[notice.Kind].label
	switch {
	case notice.Err != nil:
		label = "unparsable"
	case label == "":
		label = "no_op"
	}
	m.messages.WithLabelValues(label).Inc()
}

func (m *InterruptionMetrics) deleted(count int) {
	if m != nil {
		m.deletions.Add(float64(count))
	}
}

func (m *InterruptionMetrics) handled(after time.Duration) {
	if m != nil {
		m.latency.Observe(after.Seconds())
	}
}

// categories are Karpenter's names for the subjects of status checks.
var categories = map[cloud.InterruptionKind]string{
	cloud.InstanceImpaired: "InstanceStatus", cloud.SystemImpaired: "SystemStatus", cloud.ScheduledChange: "EventStatus",
}

func (m *InterruptionMetrics) unhealthy(kind cloud.InterruptionKind) {
	if m != nil {
		m.impaired.WithLabelValues(categories[kind]).Inc()
	}
}
