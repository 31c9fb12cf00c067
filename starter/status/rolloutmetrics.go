package status

import (
	"errors"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// RolloutMetrics show how far the rollouts of NodePools are. Nil ones show nothing.
type RolloutMetrics struct {
	step, stopped *prometheus.GaugeVec
	// shown are the NodePools that they show.
	shown map[string]bool
}

// NewRolloutMetrics registers the metrics. It fails if one of their names is taken.
func NewRolloutMetrics(registry prometheus.Registerer) (*RolloutMetrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "rollout", Name: name, Help: help}, []string{"nodepool"})
	}
	m := &RolloutMetrics{shown: map[string]bool{},
		step:    gauge("step", "The step, from 1, that the rollout of a NodePool is at; 0 while no node is being rolled out. Only the leader shows it."),
		stopped: gauge("stopped", "1 if the rollout of a NodePool is stopped, or held because something cannot be read. Only the leader shows it."),
	}
	return m, errors.Join(registered(registry, &m.step), registered(registry, &m.stopped))
}

// registered registers a metric, or takes the one that is registered already.
func registered(registry prometheus.Registerer, metric **prometheus.GaugeVec) error {
	err := registry.Register(*metric)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, same := already.ExistingCollector.(*prometheus.GaugeVec); same {
			*metric, err = existing, nil
		}
	}
	return err
}

// keep forgets all NodePools but some.
func (m *RolloutMetrics) keep(pools []*karpv1.NodePool) {
	if m == nil {
		return
	}
	for name := range m.shown {
		if !slices.ContainsFunc(pools, func(pool *karpv1.NodePool) bool { return pool.Name == name }) {
			m.step.DeleteLabelValues(name)
			m.stopped.DeleteLabelValues(name)
			delete(m.shown, name)
		}
	}
}

func (m *RolloutMetrics) show(pool string, judged plan.RolloutJudgement) {
	if m == nil {
		return
	}
	step, stopped := 0, 0
	switch judged.Reason {
	case karpv1.RolloutProgressing, karpv1.RolloutBaking:
		step = judged.State.Step + 1
	case karpv1.RolloutStopped, karpv1.RolloutInvalid:
		step, stopped = judged.State.Step+1, 1
	}
	m.shown[pool] = true
	m.step.WithLabelValues(pool).Set(float64(step))
	m.stopped.WithLabelValues(pool).Set(float64(stopped))
}
