package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/lab"
)

// named distinguishes the chart's objects from the roles under which the laboratory runs its own worker.
const named = "\nfullnameOverride: chart\n"

// owner is the field manager of what this test applies.
const owner = client.FieldOwner("deploy-test")

// TestDryRun has a real API server check everything that a person would apply: the definitions, every example, and the chart
// with its defaults, with everything switched on, and with values written for Karpenter's chart. With the values that Karpenter's
// chart ships, helm installs the chart there.
func TestDryRun(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	server, api := apiServer(ctx, t)
	for _, namespace := range []string{"tenon", "karpenter", "temporal"} {
		if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	// Without a controller-manager nobody creates the account that pods run as.
	if err := api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: metav1.NamespaceDefault}}); err != nil {
		t.Fatal(err)
	}
	installDefinitions(ctx, t, api)

	t.Run("examples", func(t *testing.T) {
		names, err := deploy.Examples()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := deploy.Example(name, "blue")
			if err != nil {
				t.Fatal(err)
			}
			dryRun(ctx, t, api, "example "+name, documents(t, data))
		}
	})
	t.Run("chart", func(t *testing.T) {
		dryRun(ctx, t, api, "defaults", render(t, "settings: {clusterName: blue}"+named))
		dryRun(ctx, t, api, "everything", render(t, everything+named))
		dryRun(ctx, t, api, "evaluation", render(t, "settings: {clusterName: blue}\ntemporal: {evaluation: {enabled: true}}"+named))
		policy, err := os.ReadFile(filepath.Join("temporal", "networkpolicy.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		dryRun(ctx, t, api, "Temporal's NetworkPolicy", documents(t, policy))
		objects := render(t, karpenterValues+named)
		// The definition of a ServiceMonitor belongs to Prometheus, not to Tenon.
		dryRun(ctx, t, api, "Karpenter's values", slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ServiceMonitor" }))
	})
	t.Run("definitions", func(t *testing.T) {
		// Those of the worker's chart are there already.
		chart := []string{"--namespace", "tenon", "--kubeconfig", server.Kubeconfig()}
		if out, err := helm(t, append([]string{"install", "definitions", "chart-crds", "--take-ownership", "--set", "additionalLabels.team=platform"}, chart...)...); err != nil {
			t.Fatalf("helm install: %v\n%s", err, out)
		}
		if out, err := helm(t, append([]string{"uninstall", "definitions"}, chart...)...); err != nil {
			t.Fatalf("helm uninstall: %v\n%s", err, out)
		}
		definitions, err := deploy.CRDs()
		if err != nil {
			t.Fatal(err)
		}
		var kept apiextensionsv1.CustomResourceDefinitionList
		if err := api.List(ctx, &kept, client.MatchingLabels{"team": "platform"}); err != nil {
			t.Fatal(err)
		}
		if len(kept.Items) != len(definitions) {
			t.Errorf("%d of %d definitions were installed and are still there", len(kept.Items), len(definitions))
		}
	})
	t.Run("install", func(t *testing.T) {
		install := []string{
			"install", "tenon", "chart", "--namespace", "tenon", "--dry-run=server", "--kubeconfig", server.Kubeconfig(),
			"--values", valuesFile(t, "settings: {clusterName: blue}"+named),
		}
		if out, err := helm(t, install...); err != nil {
			t.Errorf("helm install --dry-run=server: %v\n%s", err, out)
		}
		out, err := helm(t, "install", "tenon", "chart", "--namespace", "tenon", "--kubeconfig", server.Kubeconfig(), "--set", "settings.clusterName=blue,temporal.insecure=true,fullnameOverride=chart",
			"--values", filepath.Join(karpentersModule(t), "charts", "karpenter", "values.yaml"))
		if err != nil {
			t.Fatalf("helm install with Karpenter's own values: %v\n%s", err, out)
		}
		for _, said := range []string{"settings.amiRefreshInterval", "settings.featureGates.capacityBuffer", "controller.image.repository"} {
			if !strings.Contains(out, said) {
				t.Errorf("helm does not say that %s of Karpenter's values has no effect:\n%s", said, out)
			}
		}
		var worker appsv1.Deployment
		if err := api.Get(ctx, client.ObjectKey{Namespace: "tenon", Name: "chart"}, &worker); err != nil {
			t.Error(err)
		}
		if out, err := helm(t, "uninstall", "tenon", "--namespace", "tenon", "--kubeconfig", server.Kubeconfig()); err != nil {
			t.Fatalf("helm uninstall: %v\n%s", err, out)
		}
		// A Lease of the same name in another namespace would give no protection at all.
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-leader-election", Namespace: "karpenter"}}
		if err := api.Create(ctx, lease); err != nil {
			t.Fatal(err)
		}
		if out, err := helm(t, install...); err == nil || !strings.Contains(out, "leaderElection.namespace=karpenter") {
			t.Errorf("with a Lease of Karpenter's in another namespace: got %v, want a refusal that names the setting:\n%s", err, out)
		}
		if out, err := helm(t, append(install, "--set", "leaderElection.namespace=karpenter")...); err != nil {
			t.Errorf("with the Lease's namespace set: %v\n%s", err, out)
		}
	})
}

// karpentersModule returns the directory of Karpenter's module in the release whose controller the tests run.
func karpentersModule(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", "../tools/karpenter", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apiServer starts an API server without any controllers.
func apiServer(ctx context.Context, t *testing.T) (*lab.Lab, client.Client) {
	t.Helper()
	bin, err := filepath.Abs("../bin")
	if err != nil {
		t.Fatal(err)
	}
	server, err := lab.Start(ctx, lab.Options{
		Dir: t.TempDir(), Bin: bin, Components: []lab.Component{lab.Etcd, lab.APIServer}, Bare: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := server.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return server, api
}

// installDefinitions applies the custom resource definitions and waits until they are served and discovered.
func installDefinitions(ctx context.Context, t *testing.T, api client.Client) {
	t.Helper()
	definitions, err := deploy.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for file, data := range definitions {
		for _, object := range documents(t, data) {
			if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), owner); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				var definition apiextensionsv1.CustomResourceDefinition
				if err := api.Get(ctx, client.ObjectKey{Name: object.GetName()}, &definition); err != nil {
					return false, err
				}
				established := slices.ContainsFunc(definition.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
					return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
				})
				// Discovery may show it a moment later. The client asks discovery again for versions that it does not know.
				_, err := api.RESTMapper().RESTMapping(schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}, definition.Spec.Versions[0].Name)
				return established && err == nil, nil
			})
			if err != nil {
				t.Fatalf("%s is not established: %v", object.GetName(), err)
			}
		}
	}
}

// dryRun asks the API server to apply objects without doing so. Server-side apply also refuses fields that no schema has.
func dryRun(ctx context.Context, t *testing.T, api client.Client, what string, objects []*unstructured.Unstructured) {
	t.Helper()
	if len(objects) == 0 {
		t.Errorf("%s: no objects", what)
	}
	for _, object := range objects {
		if err := api.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), owner, client.DryRunAll); err != nil {
			t.Errorf("%s: %s %s: %v", what, object.GetKind(), object.GetName(), err)
		}
	}
}
