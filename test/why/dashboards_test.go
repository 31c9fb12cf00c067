package why_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/test/world"
)

// nodesAre selects the nodes that the variables of Karpenter's capacity dashboard select when nothing is chosen.
const nodesAre = `arch=~".*",capacity_type=~".*",instance_type=~".*",nodepool=~".*",zone=~".*"`

// panel is an expression of one of the two dashboards in Karpenter's documentation (capacity and performance), with its
// variables filled in.
type panel struct {
	query string
	// gone says that a node has to have gone for it.
	gone bool
	// empty says why it has no series here; empty if it has some.
	empty string
}

// used is the expression for how much of a resource the pods of a node request.
func used(resource string) string {
	of := fmt.Sprintf(`{resource_type="%s",%s}`, resource, nodesAre)
	return `((karpenter_nodes_total_daemon_requests` + of + ` or karpenter_nodes_allocatable*0) + (karpenter_nodes_total_pod_requests` + of +
		` or karpenter_nodes_allocatable*0)) / karpenter_nodes_allocatable` + of
}

// dashboards returns the expressions of both dashboards.
func dashboards() []panel {
	const loops, exporter = "Tenon has no reconcile loops", "it is a metric of the node exporter"
	panels := []panel{
		{query: `sum(rate(karpenter_nodes_created_total{nodepool=~".*"}[1m])) by(cluster,nodepool)`},
		{query: `sum by(cluster,nodepool) (karpenter_nodes_created_total{nodepool=~".*"})`},
		{query: `sum(rate(karpenter_nodes_terminated_total{nodepool=~".*"}[1m])) by(cluster,nodepool)`, gone: true},
		{query: `sum by(cluster,nodepool) (karpenter_nodes_terminated_total{nodepool=~".*"})`, gone: true},
		{query: `sum by(reason)(karpenter_voluntary_disruption_eligible_nodes)`},
		{query: `sum(rate(karpenter_nodeclaims_disrupted_total{nodepool=~".*"}[1m])) by(cluster,nodepool)`, gone: true},
		{query: `sum by(cluster,nodepool)(karpenter_nodeclaims_disrupted_total{nodepool=~".*"})`, gone: true},
		{query: `sum(rate(karpenter_voluntary_disruption_decisions_total[1m])) by(cluster,nodepool,consolidation_type,decision)`, gone: true},
		{query: `sum by(consolidation_type,decision)(karpenter_voluntary_disruption_decisions_total)`, gone: true},
		{query: `sum by(phase)(karpenter_pods_state)`},
		{query: `karpenter_nodepools_usage{resource_type="cpu"} / karpenter_nodepools_limit{resource_type="cpu"}`},
		{query: `karpenter_nodepools_usage{resource_type="memory"} / karpenter_nodepools_limit{resource_type="memory"}`},
		{query: `count by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="cpu"})`},
		{query: `sum by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="cpu"})`},
		{query: `sum by (nodepool)(karpenter_nodes_allocatable{nodepool!="N/A",resource_type="memory"})`},
		{query: `(count(karpenter_nodes_allocatable{arch=~".*",capacity_type="spot",instance_type=~".*",nodepool=~".*",zone=~".*"}) or vector(0)) / ` +
			`count(karpenter_nodes_allocatable{arch=~".*",instance_type=~".*",nodepool=~".*",zone=~".*"})`},
		{query: used("cpu")},
		{query: used("memory")},
		{query: `karpenter_nodes_total_daemon_requests{resource_type="pods",` + nodesAre + `} + karpenter_nodes_total_pod_requests{resource_type="pods",` + nodesAre + `}`},
		{query: `label_replace(sum by (node)(node_time_seconds) - sum by (node)(node_boot_time_seconds), "node_name", "$1", "node", "(.+)")`, empty: exporter},
		{query: `sum(rate(controller_runtime_reconcile_total{job="karpenter"}[10m])) by (controller)`, empty: loops},
	}
	for _, filter := range []string{"arch", "capacity_type", "instance_type", "namespace", "node", "nodepool", "zone"} {
		panels = append(panels, panel{query: `sum by (` + filter + `)(karpenter_pods_state{arch=~".*", capacity_type=~".*", instance_type=~".*", nodepool=~".*"})`})
	}
	for _, variable := range []string{"nodepool", "zone", "arch", "capacity_type", "instance_type"} {
		panels = append(panels, panel{query: `group by (` + variable + `)(karpenter_nodes_allocatable{` + variable + `!=""})`})
	}
	for _, quantile := range []string{"0", "0.5", "0.9", "0.99", "1"} {
		panels = append(panels,
			panel{query: `karpenter_nodes_termination_duration_seconds{quantile="` + quantile + `"}`, gone: true},
			panel{query: `max(karpenter_pods_startup_duration_seconds{quantile="` + quantile + `"})`},
			panel{query: `histogram_quantile(` + quantile + `, rate(controller_runtime_reconcile_time_seconds_bucket{controller="disruption"}[10m]))`, empty: loops})
	}
	return panels
}

// metricsAreShown has a real Prometheus scrape the worker: the panels of Karpenter's dashboards about what is there have series
// while its node serves, those about what is gone have them once it is, and what the worker exports is what the reference says.
func metricsAreShown(t *testing.T, w *world.World, prometheus *world.Prometheus) {
	t.Helper()
	shown := func(what string, of func(panel) bool) {
		w.Await(what, 3*time.Minute, func() (bool, string) {
			var missing []string
			for _, p := range dashboards() {
				if !of(p) {
					continue
				}
				series, err := prometheus.Query(p.query)
				if err != nil {
					return false, err.Error()
				}
				if len(series) == 0 {
					missing = append(missing, p.query)
				}
			}
			return len(missing) == 0, strings.Join(missing, "\n")
		})
	}
	// The dashboard compares memory with its limit as well.
	if out, err := w.Kubectl("patch", "nodepool", "default", "--type=merge", "--patch", `{"spec":{"limits":{"memory":"1000Gi"}}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown("the panels about what is there have series", func(p panel) bool { return !p.gone && p.empty == "" })
	served(t, w)
	if out, err := w.Kubectl("patch", "nodepool", "default", "--type=merge", "--patch", `{"spec":{"disruption":{"consolidateAfter":"0s"}}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := w.Kubectl("delete", "pod", "served", "unjudged", "--wait=false"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shown("the panels about what is gone have series, after an empty node has left", func(p panel) bool { return p.gone })
	for _, p := range dashboards() {
		if series, err := prometheus.Query(p.query); p.empty != "" && (err != nil || len(series) > 0) {
			t.Errorf("%s has series (%v, %v), although %s", p.query, series, err, p.empty)
		}
	}
	ownDashboardWorks(t, prometheus)
}

// served reads what the worker exports, has promtool check it, and compares it with the list of metrics.
func served(t *testing.T, w *world.World) {
	t.Helper()
	response, err := http.Get(w.Lab.WorkerMetricsURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]metrics.Metric{}
	for _, metric := range metrics.All() {
		known[metric.Name] = metric
	}
	promtool := exec.CommandContext(t.Context(), "../../bin/promtool", "check", "metrics")
	promtool.Stdin = bytes.NewReader(text)
	said, err := promtool.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) { // 3 is for style
		t.Errorf("promtool cannot read what the worker exports: %v\n%s", err, said)
	}
	for line := range strings.Lines(string(said)) {
		// Names of Karpenter's, of Temporal's SDK and of Go are not ours to choose.
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "tenon_") {
			t.Errorf("promtool: %s", line)
		}
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 4 || fields[1] != "TYPE" {
			continue
		}
		name, kind := fields[2], fields[3]
		names[name] = true
		metric, listed := known[name]
		ours := strings.HasPrefix(name, "tenon_") || strings.HasPrefix(name, "karpenter_") || strings.HasPrefix(name, "operator_")
		switch {
		case listed && string(metric.Kind) != kind:
			t.Errorf("%s is a %s, and the reference says %s", name, kind, metric.Kind)
		case !listed && ours:
			t.Errorf("%s is exported, and the reference does not have it", name)
		}
	}
	var lacks []string
	for name, metric := range known {
		if !names[name] && metric.By != metrics.Nobody {
			lacks = append(lacks, name)
		}
	}
	slices.Sort(lacks)
	t.Logf("%d names are exported; without a value now: %s", len(names), strings.Join(lacks, " "))
}

// ownDashboardWorks has Prometheus evaluate the expressions of the dashboard in the chart.
func ownDashboardWorks(t *testing.T, prometheus *world.Prometheus) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/chart/dashboards/tenon.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if _, err := prometheus.Query(target.Expr); err != nil {
				t.Errorf("%s: %v", panel.Title, err)
			}
		}
	}
}
