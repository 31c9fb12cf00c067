package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// eventObserved says what Tenon would do now for a NodePool that it only observes.
const eventObserved = "Observed"

// observeEvery is the minimum interval between two looks at what would be done. Each costs as much as a plan and an
// evaluation.
const observeEvery = 10 * time.Second

// ObservationMetrics show what would be done for NodePools that are only observed. Nil ones show nothing.
type ObservationMetrics struct{ launches, removals, saves *prometheus.GaugeVec }

// NewObservationMetrics registers the metrics. Metrics that are already registered are reused.
func NewObservationMetrics(registry prometheus.Registerer) (*ObservationMetrics, error) {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "observed", Name: name, Help: help}, []string{"nodepool"})
	}
	m := &ObservationMetrics{
		launches: gauge("launches", "Nodes that would be launched now, if the NodePool were not only observed."),
		removals: gauge("removals", "Removals of nodes that would be carried out now, if the NodePool were not only observed."),
		saves:    gauge("savings_per_hour", "How much cheaper the cluster would be per hour after these removals, in US dollars (yuan in China)."),
	}
	return m, errors.Join(register(registry, &m.launches), register(registry, &m.removals), register(registry, &m.saves))
}

func (m *ObservationMetrics) show(pool string, o plan.Observation) {
	if m == nil {
		return
	}
	m.launches.WithLabelValues(pool).Set(float64(len(o.Launches)))
	m.removals.WithLabelValues(pool).Set(float64(len(o.Removals)))
	m.saves.WithLabelValues(pool).Set(o.SavesPerHour)
}

// Observations say what Tenon would do, and do nothing.
type Observations struct {
	Mirror Mirror
	// Look says what would be done now, by NodePool.
	Look func(ctx context.Context, snapshot *plan.Snapshot) map[string]plan.Observation
	// Everything has all NodePools observed, and not only those with the annotation.
	Everything bool
	// Events records Events on NodePools; nil records none.
	Events  record.EventRecorder
	Metrics *ObservationMetrics
	Log     *zap.Logger
	// said is what was said of each NodePool last.
	said map[string]string
}

// Run says after every change what would be done, until ctx ends.
func (o *Observations) Run(ctx context.Context) error {
	if err := o.Mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("observe: wait for the mirror: %w", err)
	}
	events := o.Mirror.Subscribe(cluster.PodsPending, cluster.PoolChanged, cluster.ClassChanged, cluster.NodeChanged, cluster.ClaimChanged, cluster.PodsChanged)
	defer events.Close()
	for {
		o.look(ctx)
		if err := smithytime.SleepWithContext(ctx, observeEvery); err != nil {
			return err
		}
		awaitEvents(ctx, events, idleLookEvery)
	}
}

// look says of each observed NodePool what would be done, unless that was said before.
func (o *Observations) look(ctx context.Context) {
	snapshot := o.Mirror.Snapshot()
	var pools []*karpv1.NodePool
	for _, pool := range snapshot.NodePools {
		if o.Everything || pool.Observed() {
			pools = append(pools, pool)
		}
	}
	if len(pools) == 0 || o.Mirror.Fresh(freshEnough) != nil {
		return
	}
	found, said := o.Look(ctx, snapshot), map[string]string{}
	for _, pool := range pools {
		what := found[pool.Name]
		o.Metrics.show(pool.Name, what)
		text := plan.Describe(what)
		said[pool.Name] = text
		before, known := o.said[pool.Name]
		if text == before && (known || text == "") {
			continue
		}
		if text == "" {
			text = "would do nothing"
		}
		o.Log.Info("observed", zap.String("pool", pool.Name), zap.String("decision", text), zap.Int("launches", len(what.Launches)),
			zap.Int("removals", len(what.Removals)), zap.Float64("savesPerHour", what.SavesPerHour))
		if o.Events != nil {
			o.Events.Event(&corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID},
				corev1.EventTypeNormal, eventObserved, text)
		}
	}
	o.said = said
}
