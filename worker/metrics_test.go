package worker

import (
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/kwok"
	"github.com/tenon-sh/tenon/internal/metrics"
)

// described collects the names of what is registered.
type described struct {
	prometheus.Registerer
	names map[string]bool
}

func (d described) Register(collector prometheus.Collector) error {
	to := make(chan *prometheus.Desc, 1000)
	collector.Describe(to)
	close(to)
	for desc := range to {
		// Desc{fqName: "name", ...
		_, rest, _ := strings.Cut(desc.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		d.names[name] = true
	}
	return d.Registerer.Register(collector)
}

// kindOnly is a provider that only describes its node classes.
type kindOnly struct {
	cloud.Provider
	kind cloud.Kind
}

func (k kindOnly) Kind() cloud.Kind { return k.kind }

// TestEveryMetricOfTheListIsRegistered compares the list that docs/reference/metrics.md is made from with what the parts of a
// worker register. The calls to AWS and the actions of Temporal have tests of their own.
func TestEveryMetricOfTheListIsRegistered(t *testing.T) {
	t.Parallel()
	registry := described{prometheus.NewRegistry(), map[string]bool{}}
	kind := kwok.Kind()
	e := newExported(registry, kind, "1", "0a5e7e")
	acts := e.activities()
	if acts == nil {
		t.Fatal("no metrics of activities")
	}
	newCountedCloud(kindOnly{kind: kind}, "aws", e.set, nil, nil)
	if err := e.describe(nil, kind, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, register := range []func() error{
		func() error { _, err := newPartMetrics(registry); return err },
		func() error { _, err := newFence(nil, registry, zap.NewNop()); return err },
		func() error { _, err := newReach(nil, registry, zap.NewNop()); return err },
		func() error { _, err := newVersions(nil, route{}, registry, zap.NewNop()); return err },
	} {
		if err := register(); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := []string{"aws_sdk_go_", "karpenter_cloudprovider_batcher_", "tenon_temporal_actions_total"}
	listed := map[string]bool{}
	for _, metric := range metrics.All() {
		listed[metric.Name] = metric.By != metrics.Nobody
		tested := slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(metric.Name, prefix) })
		if listed[metric.Name] && !tested && !registry.names[metric.Name] {
			t.Errorf("%s is in the list, and nothing exports it", metric.Name)
		}
	}
	for name := range registry.names {
		if !listed[name] {
			t.Errorf("%s is exported, and is not in the list", name)
		}
	}
}
