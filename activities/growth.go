package activities

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// basisOf returns a digest of the NodePools' UIDs and generations, which changes when the pools do.
func basisOf(pools []plan.Pool) string {
	var basis []string
	for i := range pools {
		basis = append(basis, fmt.Sprintf("%s/%d", pools[i].NodePool.UID, pools[i].NodePool.Generation))
	}
	slices.Sort(basis)
	sum := sha256.Sum256([]byte(fmt.Sprint(basis)))
	return hex.EncodeToString(sum[:4])
}

// growth returns how many nodes came up for each pending pod, from what Provisioning remembers and what the mirror has seen
// since.
func (i *inputs) growth(remembered []workflows.Grown, snapshot *plan.Snapshot, pools []plan.Pool) map[types.UID]plan.Growth {
	basis := basisOf(pools)
	known, nodes := map[types.UID]plan.Growth{}, map[types.UID]int{}
	for _, g := range remembered {
		nodes[types.UID(g.Pod)] = g.Nodes
		known[types.UID(g.Pod)] = plan.Growth{Nodes: g.Nodes, Until: g.Until, Pause: time.Duration(g.Seconds) * time.Second, At: g.At, Basis: g.Basis}
	}
	seen := i.catalogue.mirror.Grown(nodes)
	growth := map[types.UID]plan.Growth{}
	for _, pod := range snapshot.Pending {
		before, remembers := known[pod.UID]
		if pod.Virtual || !remembers && seen[pod.UID] == 0 {
			continue
		}
		growth[pod.UID] = before.Next(seen[pod.UID], basis, snapshot.Time)
	}
	return growth
}

// grown converts growth to what Provisioning is to remember.
func grown(growth map[types.UID]plan.Growth) []workflows.Grown {
	var all []workflows.Grown
	for uid, g := range growth {
		all = append(all, workflows.Grown{Pod: string(uid), Nodes: g.Nodes, Until: g.Until.UTC(), Seconds: int(g.Pause.Seconds()), At: g.At, Basis: g.Basis})
	}
	slices.SortFunc(all, func(x, y workflows.Grown) int {
		return cmp.Or(cmp.Compare(y.Nodes, x.Nodes), y.Until.Compare(x.Until), strings.Compare(x.Pod, y.Pod))
	})
	return all[:min(len(all), workflows.MostGrown)]
}

// GrowthMetrics counts pods for which launching further nodes is paused. A nil GrowthMetrics counts nothing.
type GrowthMetrics struct {
	paused prometheus.Gauge
	pauses prometheus.Counter
}

// NewGrowthMetrics registers the metrics, or returns the existing ones if they are registered already.
func NewGrowthMetrics(registry prometheus.Registerer) (*GrowthMetrics, error) {
	m := &GrowthMetrics{
		paused: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tenon", Subsystem: "growth", Name: "paused_pods",
			Help: "Pending pods that get no further node for now, because the kube-scheduler placed them on none of those that were launched for them."}),
		pauses: prometheus.NewCounter(prometheus.CounterOpts{Namespace: "tenon", Subsystem: "growth", Name: "pauses_total",
			Help: "How often launching further nodes for a pod was paused."}),
	}
	for _, collector := range []prometheus.Collector{m.paused, m.pauses} {
		err := registry.Register(collector)
		var there prometheus.AlreadyRegisteredError
		switch {
		case errors.As(err, &there):
			if gauge, ok := there.ExistingCollector.(prometheus.Gauge); ok && collector == m.paused {
				m.paused = gauge
			} else if counter, ok := there.ExistingCollector.(prometheus.Counter); ok {
				m.pauses = counter
			}
		case err != nil:
			return nil, fmt.Errorf("register growth metrics: %w", err)
		}
	}
	return m, nil
}

// planned counts the pods of a plan for which growth is paused, and those for which the pause is new.
func (m *GrowthMetrics) planned(growth map[types.UID]plan.Growth, remembered []workflows.Grown, now time.Time) {
	if m == nil {
		return
	}
	before := map[types.UID]time.Time{}
	for _, g := range remembered {
		before[types.UID(g.Pod)] = g.Until
	}
	paused := 0
	for uid, g := range growth {
		if !g.Paused(now) {
			continue
		}
		paused++
		if !g.Until.Equal(before[uid]) {
			m.pauses.Inc()
		}
	}
	m.paused.Set(float64(paused))
}
