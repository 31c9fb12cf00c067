package deploy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// watched has the chart bring all that watches Tenon.
const watched = `
settings: {clusterName: blue}
serviceMonitor: {enabled: true}
prometheusRule: {enabled: true, additionalLabels: {release: prometheus}}
dashboards: {enabled: true}
`

// promtool runs Debian's promtool.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	program, err := filepath.Abs("../bin/promtool")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("promtool is missing: run tools/prometheus.sh: %v", err)
	}
	if said, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, said)
	}
}

// TestEveryAlertFires has promtool cause every alert, and none in a quiet cluster.
func TestEveryAlertFires(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", "chart/alerts/rules.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
	var tests struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string `json:"alertname"`
				ExpAlerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	readYAML(t, "alerts_test.yaml", &tests)
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, test := range tests.Tests {
		for _, rule := range test.AlertRuleTest {
			if len(rule.ExpAlerts) > 0 {
				fires[rule.Alertname] = true
			} else {
				quiet[rule.Alertname] = true
			}
		}
	}
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	readYAML(t, "chart/alerts/rules.yaml", &rules)
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			if !fires[rule.Alert] || !quiet[rule.Alert] {
				t.Errorf("alerts_test.yaml has no cause of %s, or no quiet cluster for it", rule.Alert)
			}
		}
	}
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestChartBringsRulesAndDashboards renders both, and has promtool read the rules as the chart writes them.
func TestChartBringsRulesAndDashboards(t *testing.T) {
	t.Parallel()
	found := map[string]*unstructured.Unstructured{}
	for _, object := range render(t, watched) {
		found[object.GetKind()] = object
	}
	for _, kind := range []string{"ServiceMonitor", "PrometheusRule", "ConfigMap"} {
		if found[kind] == nil {
			t.Fatalf("the chart has no %s", kind)
		}
	}
	if label := found["PrometheusRule"].GetLabels()["release"]; label != "prometheus" {
		t.Errorf("the PrometheusRule has the label release=%q", label)
	}
	spec, err := yaml.Marshal(found["PrometheusRule"].Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
	dashboards, _, err := unstructured.NestedStringMap(found["ConfigMap"].Object, "data")
	if err != nil || !json.Valid([]byte(dashboards["tenon.json"])) {
		t.Errorf("the dashboard is no JSON: %v", err)
	}
	for _, object := range render(t, "settings: {clusterName: blue}") {
		if kind := object.GetKind(); kind == "PrometheusRule" || kind == "ServiceMonitor" || kind == "ConfigMap" {
			t.Errorf("the chart brings a %s although nobody asked for it", kind)
		}
	}
}

// TestRulesAndDashboardsNameMetricsThatExist compares them with the list of metrics. Those of Temporal's SDK are not in it.
func TestRulesAndDashboardsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, metric := range metrics.All() {
		known[metric.Name] = metric.By != metrics.Nobody
	}
	name := regexp.MustCompile(`\b(?:karpenter|tenon|operator|aws_sdk_go|client_go|leader_election)_[a-z_]+[a-z]\b`)
	for _, file := range []string{"chart/alerts/rules.yaml", "chart/dashboards/tenon.json"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		names := name.FindAllString(string(data), -1)
		if len(names) < 10 {
			t.Errorf("%s names %d metrics", file, len(names))
		}
		for _, found := range names {
			if base := strings.TrimSuffix(found, "_bucket"); !known[base] {
				t.Errorf("%s asks for %s, which is not exported", file, found)
			}
		}
	}
}
