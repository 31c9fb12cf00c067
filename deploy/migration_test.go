package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/migrate"
)

// TestMigrationKnowsKarpentersChart has tenon migrate --check judge the Deployment of Karpenter's own chart: by default
// nothing of it differs, and each value that Tenon lacks is named by its environment variable.
func TestMigrationKnowsKarpentersChart(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason string
		set    []string
		want   []string
	}{
		"Defaults": {reason: "nothing differs", want: []string{}},
		"Changed": {reason: "what has no effect, or another default, is named",
			set:  []string{"settings.amiRefreshInterval=5m", "settings.eksControlPlane=true", "settings.isolatedVPC=true", "settings.batchIdleDuration=2s"},
			want: []string{"AMI_REFRESH_INTERVAL", "EKS_CONTROL_PLANE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := []string{"template", "karpenter", filepath.Join(karpentersModule(t), "charts", "karpenter"), "--namespace", "kube-system", "--set", "settings.clusterName=shop"}
			for _, value := range test.set {
				args = append(args, "--set", value)
			}
			out, err := helm(t, append(args, "--show-only", "templates/deployment.yaml")...)
			if err != nil {
				t.Fatalf("helm template: %v\n%s", err, out)
			}
			var deployment appsv1.Deployment
			_, manifest, found := strings.Cut(out, "---") // helm may warn before it
			if err := yaml.Unmarshal([]byte(manifest), &deployment); err != nil || !found {
				t.Fatal(err)
			}
			report, err := migrate.Toward(&migrate.Cluster{Deployments: []appsv1.Deployment{deployment}})
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(report.Karpenter, "1.") {
				t.Errorf("the version is %q", report.Karpenter)
			}
			fields := []string{}
			for _, f := range report.Findings {
				fields = append(fields, f.Field)
			}
			if diff := cmp.Diff(test.want, fields); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", test.reason, diff, report.Findings)
			}
		})
	}
}
