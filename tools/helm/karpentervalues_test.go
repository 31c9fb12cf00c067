// Package helm_test checks the chart with helm's own code and the values that Karpenter's chart ships.
package helm_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// notes is the template whose text helm prints after an installation.
const notes = "tenon/templates/NOTES.txt"

// TestKarpentersValues installs the values file of Karpenter's chart as it is, and then changes one value of it at a time: the
// change shows in what is installed, or the notes after the installation name the value.
func TestKarpentersValues(t *testing.T) {
	t.Parallel()
	chart, dir := tenonsChart(t), karpentersChart(t)
	const serviceMonitor = "serviceMonitor."
	for _, path := range leaves(karpentersValues(t, dir), "") {
		if strings.HasPrefix(path, "temporal.") {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			before := karpentersValues(t, dir)
			for needed, value := range needs[path] {
				set(before, needed, value)
			}
			if strings.HasPrefix(path, serviceMonitor) && path != serviceMonitor+"enabled" {
				set(before, serviceMonitor+"enabled", true)
			}
			as := render(t, chart, before)
			changed := other(path, get(before, path))
			set(before, path, changed)
			with := render(t, chart, before)
			said := strings.Contains(as[notes], path) || strings.Contains(with[notes], path)
			delete(as, notes)
			delete(with, notes)
			if maps.Equal(as, with) && !said {
				t.Errorf("%s: %v changes nothing, and the notes do not say so", path, changed)
			}
		})
	}
}

// needs are the values without which others mean nothing, by path.
var needs = map[string]map[string]any{
	"serviceAccount.create":          {"serviceAccount.name": "other"},
	"controller.sidecarVolumeMounts": {"controller.sidecarContainer": []any{map[string]any{"name": "sidecar"}}},
}

// examples are valid values for those that have few.
var examples = map[string]any{
	"imagePullPolicy":               "Always",
	"logLevel":                      "debug",
	"dnsPolicy":                     "Default",
	"settings.minValuesPolicy":      "BestEffort",
	"settings.preferencePolicy":     "Ignore",
	"settings.batchMaxDuration":     "7s",
	"settings.batchIdleDuration":    "2s",
	"settings.clusterEndpoint":      "https://10.0.0.1",
	"settings.reservedENIs":         "1",
	"controller.image.digest":       "sha256:" + strings.Repeat("0", 64),
	"controller.image.repository":   "mirror.example/karpenter/controller",
	"terminationGracePeriodSeconds": 17,
	"serviceMonitor.sampleLimit":    17,
	"initContainers":                []any{map[string]any{"name": "a"}},
}

// other returns another value of the same kind.
func other(path string, value any) any {
	if example, ok := examples[path]; ok {
		return example
	}
	switch value := value.(type) {
	case bool:
		return !value
	case string:
		return value + "x"
	case float64:
		if value < 1 {
			return value / 2 // a share
		}
		return value + 1
	case map[string]any:
		return map[string]any{"a": "b"}
	case []any:
		if len(value) == 0 {
			return []any{map[string]any{"name": "a"}}
		}
		return append(slices.Clone(value), value[0])
	}
	panic(fmt.Sprintf("%s: what else could %v be?", path, value))
}

// tpl matches a setting that Karpenter's chart evaluates as a template.
var tpl = regexp.MustCompile(`tpl \.Values\.settings\.(\w+)|\.Values\.settings\.(\w+) }}\n.*\n.*tpl \(`)

// TestTemplatesAsKarpenters gives each setting that Karpenter's chart evaluates as a template one.
func TestTemplatesAsKarpenters(t *testing.T) {
	t.Parallel()
	chart, dir := tenonsChart(t), karpentersChart(t)
	deployment, err := os.ReadFile(filepath.Join(dir, "templates", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	evaluated := tpl.FindAllStringSubmatch(string(deployment), -1)
	if len(evaluated) < 10 {
		t.Fatalf("found only %d settings in Karpenter's chart: %v", len(evaluated), evaluated)
	}
	for _, found := range evaluated {
		path := "settings." + found[1] + found[2]
		values := karpentersValues(t, dir)
		value := other(path, get(values, path))
		set(values, path, value)
		want := render(t, chart, values)
		values["global"] = map[string]any{"value": value}
		set(values, path, "{{ .Values.global.value }}")
		if got := render(t, chart, values); !maps.Equal(want, got) {
			t.Errorf("%s: a template is not evaluated", path)
		}
	}
}

// tenonsChart loads the chart.
func tenonsChart(t *testing.T) *chartv2.Chart {
	t.Helper()
	chart, err := loader.Load(filepath.Join("..", "..", "deploy", "chart"))
	if err != nil {
		t.Fatal(err)
	}
	return chart
}

// render checks values against the chart's schema and returns what the chart renders with them, by template.
func render(t *testing.T, chart *chartv2.Chart, values map[string]any) map[string]string {
	t.Helper()
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, "monitoring.coreos.com/v1")
	release := common.ReleaseOptions{Name: "tenon", Namespace: "kube-system", Revision: 1, IsInstall: true}
	complete, err := util.ToRenderValues(chart, values, release, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, complete)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// karpentersChart returns the directory of Karpenter's chart in the release whose controller the tests run.
func karpentersChart(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", filepath.Join("..", "karpenter"), "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "charts", "karpenter")
}

// karpentersValues returns the values file of Karpenter's chart, with the cluster's name, which it asks for, and with what Tenon asks
// for.
func karpentersValues(t *testing.T, dir string) map[string]any {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(raw, &values); err != nil {
		t.Fatal(err)
	}
	set(values, "settings.clusterName", "blue")
	values["temporal"] = map[string]any{"insecure": true}
	return values
}

// leaves returns the paths of all values that are not maps with something in them.
func leaves(values map[string]any, prefix string) []string {
	var paths []string
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			paths = append(paths, leaves(inner, prefix+name+".")...)
		} else if !strings.Contains(name, ".") { // a label, which belongs to its map
			paths = append(paths, prefix+name)
		}
	}
	return paths
}

func get(values map[string]any, path string) any {
	first, rest, more := strings.Cut(path, ".")
	if !more {
		return values[first]
	}
	return get(values[first].(map[string]any), rest)
}

func set(values map[string]any, path string, value any) {
	first, rest, more := strings.Cut(path, ".")
	if !more {
		values[first] = value
		return
	}
	set(values[first].(map[string]any), rest, value)
}
