package activities

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// grownMirror is a mirror that has seen nodes come up.
type grownMirror struct {
	Mirror
	seen map[types.UID]int
}

func (m grownMirror) Grown(before map[types.UID]int) map[types.UID]int {
	for uid, nodes := range before {
		m.seen[uid] = max(m.seen[uid], nodes)
	}
	return m.seen
}

// TestGrowthIsRemembered passes growth from plan to plan, across a restart of the worker.
func TestGrowthIsRemembered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pod := &plan.Pod{UID: "uid-a", Namespace: "default", Name: "a", Class: &plan.Class{}}
	snapshot := &plan.Snapshot{Time: at, Pending: []*plan.Pod{pod, {UID: "uid-new", Class: &plan.Class{}}}}
	registry := prometheus.NewRegistry()
	metrics, err := NewGrowthMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	events := record.NewFakeRecorder(10)
	worker := func(seen int) *Activities {
		return New(Config{Mirror: grownMirror{seen: map[types.UID]int{"uid-a": seen, "uid-gone": 5}}, Growth: metrics, Events: events})
	}
	look := func(a *Activities, remembered []workflows.Grown) []workflows.Grown {
		growth := a.planner.inputs.growth(remembered, snapshot, nil)
		a.planner.metrics.planned(growth, remembered, snapshot.Time)
		return grown(growth)
	}
	remembered := look(worker(2), nil)
	want := []workflows.Grown{{Pod: "uid-a", Nodes: 2, Until: at.Add(5 * time.Minute), Seconds: 300, At: 2, Basis: remembered[0].Basis}}
	if diff := cmp.Diff(want, remembered); diff != "" {
		t.Errorf("what is remembered (-want +got):\n%s", diff)
	}
	restarted := worker(0)
	if diff := cmp.Diff(want, look(restarted, remembered)); diff != "" {
		t.Errorf("what is remembered by a worker that has seen nothing (-want +got):\n%s", diff)
	}
	if got := values(t, registry); got != "tenon_growth_paused_pods 1, tenon_growth_pauses_total 1" {
		t.Errorf("metrics are %s", got)
	}
	restarted.planner.explained.explain([]plan.Unplaced{{Pod: pod, Reasons: []plan.Reason{{Message: "growing is paused"}}}}, restarted.planner.inputs.growth(remembered, snapshot, nil), at)
	if got := <-events.Events; got != "Warning GrowthPaused Failed to schedule pod, growing is paused" {
		t.Errorf("the Event is %q", got)
	}
	snapshot.Pending = nil
	if left := look(restarted, remembered); len(left) > 0 {
		t.Errorf("pods that no longer wait are remembered: %v", left)
	}
}

func TestGrowthIsBounded(t *testing.T) {
	t.Parallel()
	growth := map[types.UID]plan.Growth{"most": {Nodes: 3}}
	for i := range 2 * workflows.MostGrown {
		growth[types.UID(fmt.Sprint(i))] = plan.Growth{Nodes: 1}
	}
	if kept := grown(growth); len(kept) != workflows.MostGrown || kept[0].Pod != "most" {
		t.Errorf("%d are remembered, the first is %s: want %d, and those with the most nodes", len(kept), kept[0].Pod, workflows.MostGrown)
	}
}

// values returns the registry's metrics in one line.
func values(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, family := range families {
		if text != "" {
			text += ", "
		}
		metric := family.GetMetric()[0]
		value := metric.GetGauge().GetValue()
		if family.GetType().String() == "COUNTER" {
			value = metric.GetCounter().GetValue()
		}
		text += fmt.Sprintf("%s %g", family.GetName(), value)
	}
	return text
}
