package deploy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/worker"
)

// everything sets every value that adds something to the rendered chart.
const everything = `
settings: {clusterName: blue, clusterEndpoint: "https://10.0.0.1", clusterCABundle: Zm9v, interruptionQueue: blue}
additionalLabels: {team: platform}
additionalAnnotations: {contact: platform}
additionalClusterRoleRules: [{apiGroups: [""], resources: [events], verbs: [create]}]
imagePullSecrets: [{name: registry}]
service: {annotations: {a: b}}
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/TenonController-blue"}}
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {matchLabels: {team: monitoring}}}], uiFrom: [{namespaceSelector: {matchLabels: {team: ingress}}}]}
ui: {enabled: true, token: {existingSecret: tenon-page}, temporalURL: "https://temporal.example.com"}
podDisruptionBudget: {name: other}
podLabels: {l: m}
podAnnotations: {n: o}
dnsConfig: {options: [{name: ndots, value: "2"}]}
schedulerName: default-scheduler
hostNetwork: true
initContainers: [{name: init, image: busybox}]
extraVolumes: [{name: scratch, emptyDir: {}}]
controller:
  image: {digest: "sha256:0123456789012345678901234567890123456789012345678901234567890123"}
  envFrom: [{configMapRef: {name: more}}]
  extraVolumeMounts: [{name: scratch, mountPath: /tmp}]
  sidecarContainer: [{name: sidecar, image: busybox}]
temporal:
  apiKey: {existingSecret: temporal-api-key}
  tls: {enabled: true, serverName: temporal.example, existingSecret: temporal-tls, serverCA: true}
  codec: {existingSecret: codec-keys, key: "2026-11"}
codecServer:
  enabled: true
  uiOrigin: https://temporal.example
  token: {existingSecret: codec-token}
  tls: {existingSecret: codec-tls}
  networkPolicyFrom: [{namespaceSelector: {matchLabels: {team: platform}}}]
`

// karpenterValues is a values file for Karpenter's chart, with settings that Tenon has and settings that it does not have.
const karpenterValues = `
logLevel: info
logOutputPaths: [stdout]
logErrorOutputPaths: [stderr]
replicas: 2
priorityClassName: system-cluster-critical
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/KarpenterController"}}
serviceMonitor: {enabled: true, endpointConfig: {interval: 30s}}
controller:
  resources: {requests: {cpu: "1", memory: 1Gi}, limits: {cpu: "1", memory: 1Gi}}
settings:
  clusterName: blue
  interruptionQueue: blue
  reservedENIs: "1"
  preferencePolicy: Respect
  featureGates: {spotToSpotConsolidation: true, nodeOverlay: true}
`

func TestLint(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"smallest": "settings: {clusterName: blue}", "everything": everything, "Karpenter's": karpenterValues} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := helm(t, "lint", "--strict", "chart", "--values", valuesFile(t, values)); err != nil {
				t.Errorf("helm lint: %v\n%s", err, out)
			}
		})
	}
	if out, err := helm(t, "lint", "--strict", "chart-crds"); err != nil {
		t.Errorf("helm lint: %v\n%s", err, out)
	}
}

func TestDefaultsAreSafe(t *testing.T) {
	t.Parallel()
	deployment := find[appsv1.Deployment](t, render(t, "settings: {clusterName: blue}"), "Deployment", "tenon")
	spec := deployment.Spec.Template.Spec
	if got := *deployment.Spec.Replicas; got != 2 {
		t.Errorf("replicas: %d, want 2", got)
	}
	container := spec.Containers[0]
	security := container.SecurityContext
	if !*security.RunAsNonRoot || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
		!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the container's security context is not restricted: %+v", security)
	}
	if container.LivenessProbe.HTTPGet.Path != "/healthz" || container.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Error("the probes do not ask /healthz and /readyz")
	}
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	want := []corev1.NodeSelectorRequirement{{Key: "karpenter.sh/nodepool", Operator: corev1.NodeSelectorOpDoesNotExist}}
	if diff := cmp.Diff(want, terms[0].MatchExpressions); diff != "" {
		t.Errorf("the worker may run on a node that it manages (-want +got):\n%s", diff)
	}
	for _, term := range spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if diff := cmp.Diff(deployment.Spec.Selector, term.LabelSelector); diff != "" {
			t.Errorf("the replicas do not keep away from each other (-want +got):\n%s", diff)
		}
	}
}

// TestEnvironmentIsTheWorkers checks that the chart's variables are flags of the worker, with the same defaults.
func TestEnvironmentIsTheWorkers(t *testing.T) {
	t.Parallel()
	config := worker.DefaultConfig()
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	config.Flags(flags)
	// The AWS provider's flags belong to the command, not to the worker.
	aws := []string{"cluster-endpoint", "cluster-ca-bundle", "cluster-service-cidr", "vm-memory-overhead-percent", "reserved-enis", "disable-dry-run", "isolated-vpc", "enable-zonal-shift"}
	deployment := find[appsv1.Deployment](t, render(t, "settings: {clusterName: blue}"), "Deployment", "tenon")
	for _, env := range deployment.Spec.Template.Spec.Containers[0].Env {
		name, ours := strings.CutPrefix(env.Name, "TENON_")
		if !ours {
			continue
		}
		name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
		flag := flags.Lookup(name)
		switch {
		case slices.Contains(aws, name), name == "cluster":
		case flag == nil:
			t.Errorf("%s: the worker has no flag --%s", env.Name, name)
		case env.ValueFrom != nil:
		case flag.DefValue != env.Value:
			t.Errorf("%s=%s by default, the worker's own default is %s", env.Name, env.Value, flag.DefValue)
		}
	}
}

// TestTheWorkerLearnsItsMemoryLimit checks that the worker's memory limit is that of its container.
func TestTheWorkerLearnsItsMemoryLimit(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		values string
		want   *corev1.ResourceFieldSelector
	}{
		"by default":     {want: &corev1.ResourceFieldSelector{ContainerName: "worker", Resource: "limits.memory"}},
		"another name":   {values: "controller: {containerName: tenon}", want: &corev1.ResourceFieldSelector{ContainerName: "tenon", Resource: "limits.memory"}},
		"without limits": {values: "controller: {resources: {limits: null}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployment := find[appsv1.Deployment](t, render(t, "settings: {clusterName: blue}\n"+test.values), "Deployment", "tenon")
			var got *corev1.ResourceFieldSelector
			for _, env := range deployment.Spec.Template.Spec.Containers[0].Env {
				switch env.Name {
				case "TENON_MEMORY_LIMIT":
					got = env.ValueFrom.ResourceFieldRef
				case "GOMEMLIMIT":
					t.Error("GOMEMLIMIT is set beside the limit, and would stand whatever that is")
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("where the worker's limit comes from (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettingsReachTheWorker(t *testing.T) {
	t.Parallel()
	tests := []struct{ settings, variable, want string }{
		{settings: "", variable: "TENON_INTERRUPTION_QUEUE", want: ""},
		{settings: "clusterServiceCIDR: 10.100.0.0/16", variable: "TENON_CLUSTER_SERVICE_CIDR", want: "10.100.0.0/16"},
		{settings: "interruptionQueue: blue", variable: "TENON_INTERRUPTION_QUEUE", want: "blue"},
		{settings: "interruptionQueue: 'https://sqs.us-east-1.amazonaws.com/111122223333/blue'", variable: "TENON_INTERRUPTION_QUEUE",
			want: "https://sqs.us-east-1.amazonaws.com/111122223333/blue"},
		{settings: "nodePrice: 0.01", variable: "TENON_NODE_PRICE", want: "0.01"},
		{settings: "", variable: "TENON_ENABLE_PROFILING", want: "false"},
		{settings: "", variable: "TENON_OTLP_ENDPOINT", want: ""},
		{settings: "otlpEndpoint: http://collector:4318", variable: "TENON_OTLP_ENDPOINT", want: "http://collector:4318"},
		{settings: "traceSampling: 0.1", variable: "TENON_TRACE_SAMPLING", want: "0.1"},
		{settings: "enableProfiling: true", variable: "TENON_ENABLE_PROFILING", want: "true"},
		{settings: "", variable: "TENON_LOG_FORMAT", want: "json"},
		{settings: "observe: false\nlogLevel: info,planner=debug", variable: "TENON_LOG_LEVEL", want: "info,planner=debug"},
		{settings: "packing: cheapest", variable: "TENON_PACKING", want: "cheapest"},
		{settings: "disruptionRate: 10%/10m", variable: "TENON_DISRUPTION_RATE", want: "10%/10m"},
		{settings: "", variable: "TENON_DISRUPTION_RATE", want: ""},
		{settings: "prometheusURL: 'http://prometheus.monitoring:9090'", variable: "TENON_PROMETHEUS_URL", want: "http://prometheus.monitoring:9090"},
		{settings: "maintenanceWindows: [{schedule: '0 22 * * sat', duration: 4h, timeZone: Europe/Zurich, reasons: [Drifted]}]", variable: "TENON_MAINTENANCE_WINDOWS",
			want: `[{"duration":"4h","reasons":["Drifted"],"schedule":"0 22 * * sat","timeZone":"Europe/Zurich"}]`},
		{settings: "", variable: "TENON_MAINTENANCE_WINDOWS", want: ""},
		{settings: "disruptionBudgets: [{nodes: 10%, reasons: [Drifted]}]", variable: "TENON_DISRUPTION_BUDGETS", want: `[{"nodes":"10%","reasons":["Drifted"]}]`},
		{settings: "", variable: "TENON_FEATURE_GATES", want: "NodeRepair=false,SpotToSpotConsolidation=false,NodeOverlay=false,DynamicResources=false"},
		{settings: "featureGates: {nodeRepair: true, staticCapacity: false}", variable: "TENON_FEATURE_GATES",
			want: "NodeRepair=true,SpotToSpotConsolidation=false,NodeOverlay=false,DynamicResources=false"},
		{settings: "featureGates: {nodeOverlay: true}", variable: "TENON_FEATURE_GATES", want: "NodeRepair=false,SpotToSpotConsolidation=false,NodeOverlay=true,DynamicResources=false"},
		{settings: "featureGates: {dynamicResources: true}", variable: "TENON_FEATURE_GATES",
			want: "NodeRepair=false,SpotToSpotConsolidation=false,NodeOverlay=false,DynamicResources=true"},
	}
	for _, test := range tests {
		deployment := find[appsv1.Deployment](t, render(t, "settings:\n  clusterName: blue\n  "+test.settings), "Deployment", "tenon")
		got := ""
		for _, env := range deployment.Spec.Template.Spec.Containers[0].Env {
			if env.Name == test.variable {
				got = env.Value
			}
		}
		if got != test.want {
			t.Errorf("with %q the worker's %s is %q, want %q", test.settings, test.variable, got, test.want)
		}
	}
}

func TestTemporalConnection(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason, values string
		want           map[string]string
	}{
		{reason: "a server inside the cluster needs no TLS", values: "settings: {clusterName: blue}", want: map[string]string{
			"TEMPORAL_ADDRESS": "temporal-frontend.temporal.svc:7233", "TEMPORAL_NAMESPACE": "tenon",
		}},
		{reason: "an API key is a secret and implies TLS", values: "settings: {clusterName: blue}\ntemporal: {apiKey: {existingSecret: key}}", want: map[string]string{
			"TEMPORAL_ADDRESS": "temporal-frontend.temporal.svc:7233", "TEMPORAL_NAMESPACE": "tenon",
			"TENON_TEMPORAL_API_KEY_FILE": "/var/run/tenon/temporal-api-key/api-key", "TEMPORAL_TLS": "true", "secret key": "/var/run/tenon/temporal-api-key",
		}},
		{reason: "mutual TLS with a private authority", values: "settings: {clusterName: blue}\ntemporal: {tls: {enabled: true, existingSecret: tls, serverCA: true, serverName: x}}", want: map[string]string{
			"TEMPORAL_ADDRESS": "temporal-frontend.temporal.svc:7233", "TEMPORAL_NAMESPACE": "tenon",
			"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_NAME": "x",
			"TEMPORAL_TLS_CLIENT_CERT_PATH":    "/var/run/tenon/temporal-tls/tls.crt",
			"TEMPORAL_TLS_CLIENT_KEY_PATH":     "/var/run/tenon/temporal-tls/tls.key",
			"TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/var/run/tenon/temporal-tls/ca.crt",
			"secret tls":                       "/var/run/tenon/temporal-tls",
		}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			deployment := find[appsv1.Deployment](t, render(t, test.values), "Deployment", "tenon")
			got := map[string]string{}
			worker := deployment.Spec.Template.Spec.Containers[0]
			for _, env := range worker.Env {
				if strings.HasPrefix(strings.TrimPrefix(env.Name, "TENON_"), "TEMPORAL_") {
					got[env.Name] = env.Value
				}
			}
			for _, volume := range deployment.Spec.Template.Spec.Volumes {
				for _, mount := range worker.VolumeMounts {
					if mount.Name == volume.Name && volume.Secret != nil {
						got["secret "+volume.Secret.SecretName] = mount.MountPath
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("environment (-want +got):\n%s", diff)
			}
		})
	}
}

// TestThePageIsServedOnRequest checks that the page is off by default, and that the chart serves it with its token to those who
// may read it.
func TestThePageIsServedOnRequest(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason, values string
		env            map[string]string
		ports          []int32
		peers          int
	}{
		"Default":  {reason: "nobody has asked for it", values: "networkPolicy: {enabled: true}", env: map[string]string{}, ports: []int32{8080}, peers: -1},
		"On":       {reason: "without a token, and for nobody else in the cluster", values: "ui: {enabled: true}\nnetworkPolicy: {enabled: true}", env: map[string]string{"TENON_UI_ADDRESS": ":8090"}, ports: []int32{8080, 8090}, peers: -1},
		"Off":      {reason: "a token alone turns nothing on", values: "ui: {token: {existingSecret: page}}\nnetworkPolicy: {enabled: true, uiFrom: [{podSelector: {}}]}", env: map[string]string{}, ports: []int32{8080}, peers: -1},
		"Complete": {reason: "with a token, links, and readers", values: "ui: {enabled: true, port: 9000, token: {existingSecret: page, key: t}, temporalURL: 'https://temporal.example.com'}\nnetworkPolicy: {enabled: true, uiFrom: [{podSelector: {}}]}", env: map[string]string{"TENON_UI_ADDRESS": ":9000", "TENON_UI_TOKEN_FILE": "/var/run/tenon/ui-token/t", "TENON_UI_TEMPORAL_URL": "https://temporal.example.com"}, ports: []int32{8080, 9000}, peers: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := render(t, "settings: {clusterName: blue}\n"+row.values)
			spec := find[appsv1.Deployment](t, objects, "Deployment", "tenon").Spec.Template.Spec
			env, mounted := map[string]string{}, ""
			for _, variable := range spec.Containers[0].Env {
				if strings.HasPrefix(variable.Name, "TENON_UI_") {
					env[variable.Name] = variable.Value
				}
			}
			for _, mount := range spec.Containers[0].VolumeMounts {
				mounted += mount.MountPath + "/"
			}
			if diff := cmp.Diff(row.env, env); diff != "" {
				t.Errorf("%s: environment (-want +got):\n%s", row.reason, diff)
			}
			if file := row.env["TENON_UI_TOKEN_FILE"]; file != "" && (!strings.HasPrefix(file, mounted) || spec.Volumes[0].Secret.SecretName != "page") || file == "" && mounted != "" {
				t.Errorf("%s: the token is expected in %q, and %q is mounted", row.reason, file, mounted)
			}
			var ports []int32
			for _, port := range find[corev1.Service](t, objects, "Service", "tenon").Spec.Ports {
				ports = append(ports, port.Port)
			}
			if !slices.Equal(ports, row.ports) {
				t.Errorf("%s: the Service has the ports %v, want %v", row.reason, ports, row.ports)
			}
			peers := -1
			for _, rule := range find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", "tenon").Spec.Ingress {
				if rule.Ports[0].Port.StrVal == "http-ui" {
					peers = len(rule.From)
				}
			}
			if peers != row.peers {
				t.Errorf("%s: the NetworkPolicy lets %d peers read the page, want %d (-1: it is not named)", row.reason, peers, row.peers)
			}
		})
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ reason, values, want string }{
		{reason: "no cluster", values: "{}", want: "clusterName"},
		{reason: "an evaluation has no TLS", values: "settings: {clusterName: blue}\ntemporal: {evaluation: {enabled: true}, tls: {enabled: true}}", want: "temporal.evaluation.enabled"},
		{reason: "a setting nobody knows", values: "settings: {clusterName: blue, clustreEndpoint: x}", want: "clustreEndpoint"},
		{reason: "a value at the top nobody knows", values: "settings: {clusterName: blue}\nreplica: 3", want: "replica"},
		{reason: "not a policy", values: "settings: {clusterName: blue, minValuesPolicy: Loose}", want: "minValuesPolicy"},
		{reason: "not a way to pack", values: "settings: {clusterName: blue, packing: tight}", want: "packing"},
		{reason: "a rate without a time", values: "settings: {clusterName: blue, disruptionRate: 10%}", want: "disruptionRate"},
		{reason: "a level that nobody knows", values: "settings: {clusterName: blue}\nlogLevel: info,planner=loud", want: "logLevel"},
		{reason: "a format that nobody knows", values: "settings: {clusterName: blue}\nlogFormat: text", want: "logFormat"},
		{reason: "a receiver without a scheme", values: "settings: {clusterName: blue, otlpEndpoint: 'collector:4318'}", want: "otlpEndpoint"},
		{reason: "a window for what nobody does", values: "settings: {clusterName: blue, maintenanceWindows: [{schedule: '0 22 * * sat', duration: 4h, reasons: [Drift]}]}", want: "reasons"},
		{reason: "a budget of too much", values: "settings: {clusterName: blue, disruptionBudgets: [{nodes: 110%}]}", want: "nodes"},
		{reason: "a window without an end", values: "settings: {clusterName: blue, maintenanceWindows: [{schedule: '0 22 * * sat'}]}", want: "duration"},
		{reason: "a node that pays", values: "settings: {clusterName: blue, nodePrice: -1}", want: "nodePrice"},
		{reason: "a gate that is no truth value", values: "settings: {clusterName: blue, featureGates: {nodeRepair: maybe}}", want: "nodeRepair"},
		{reason: "a queue that is an ARN",
			values: "settings: {clusterName: blue, interruptionQueue: 'arn:aws:sqs:us-east-1:111122223333:blue'}", want: "interruptionQueue"},
		{reason: "an address that is a URL", values: "settings: {clusterName: blue}\ntemporal: {address: 'http://temporal:7233'}", want: "address"},
		{reason: "a connection in the clear that nobody asked for", values: "settings: {clusterName: blue}\ntemporal: {namespace: fleet}", want: "temporal.insecure=true"},
		{reason: "keys of which none encrypts", values: "settings: {clusterName: blue}\ntemporal: {insecure: true, codec: {existingSecret: keys}}", want: "temporal.codec.key"},
		{reason: "a codec server without keys", values: "settings: {clusterName: blue}\ntemporal: {insecure: true}\ncodecServer: {enabled: true}", want: "temporal.codec.existingSecret"},
		{reason: "an origin with a path", values: "settings: {clusterName: blue}\ncodecServer: {uiOrigin: 'https://temporal.example/ui'}", want: "uiOrigin"},
		{reason: "links to something that is no page", values: "settings: {clusterName: blue}\nui: {enabled: true, temporalURL: temporal}", want: "temporalURL"},
		{reason: "an account that is said to exist but has no name",
			values: "settings: {clusterName: blue}\nserviceAccount: {create: false}", want: "serviceAccount.name"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			out, err := helm(t, "template", "tenon", "chart", "--values", valuesFile(t, test.values))
			if err == nil || !strings.Contains(out, test.want) {
				t.Errorf("got error %v, want one that names %s:\n%s", err, test.want, out)
			}
		})
	}
}

func TestNotesNameWhatHasNoEffect(t *testing.T) {
	t.Parallel()
	out, err := helm(t, "install", "tenon", "chart", "--dry-run=client", "--values", valuesFile(t, karpenterValues))
	if err != nil {
		t.Fatalf("helm install --dry-run: %v\n%s", err, out)
	}
	for _, setting := range []string{"logOutputPaths", "logErrorOutputPaths"} {
		if !strings.Contains(out, setting) {
			t.Errorf("the notes do not say that %s has no effect:\n%s", setting, out)
		}
	}
	if ask := "temporal worker deployment describe --namespace tenon --name blue\n"; !strings.Contains(out, ask) {
		t.Errorf("the notes do not say which build gets the work: no line %q", ask)
	}
}

// TestNotesNameNoSettingOfTheChart checks that the notes of an installation name none of the chart's own settings as one
// without an effect.
func TestNotesNameNoSettingOfTheChart(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Settings map[string]any `json:"settings"`
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	for name, value := range chart.Settings {
		if value == "" {
			chart.Settings[name] = "set"
		}
	}
	maps.Copy(chart.Settings, map[string]any{"prometheusURL": "http://prometheus.monitoring:9090", "clusterEndpoint": "https://10.0.0.1", "clusterServiceCIDR": "10.100.0.0/16", "disruptionRate": "10%/10m", "otlpEndpoint": "http://collector:4318"})
	set, err := yaml.Marshal(chart)
	if err != nil {
		t.Fatal(err)
	}
	out, err := helm(t, "install", "tenon", "chart", "--dry-run=client", "--values", valuesFile(t, string(set)))
	if err != nil {
		t.Fatalf("helm install --dry-run: %v\n%s", err, out)
	}
	if _, notes, _ := strings.Cut(out, "NOTES:"); notes == "" || strings.Contains(notes, "ATTENTION") {
		t.Errorf("the notes name settings of the chart's own, or there are none: %s", notes)
	}
}

// TestRolesAreTheCharts checks that the roles of the laboratory's worker are those of the chart.
func TestRolesAreTheCharts(t *testing.T) {
	t.Parallel()
	for settings, dynamicResources := range map[string]bool{
		"settings: {clusterName: blue}":                                         false,
		"settings: {clusterName: blue, featureGates: {dynamicResources: true}}": true,
	} {
		roles, err := deploy.WorkerRoles("tenon", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "tenon"}, "kube-system", "karpenter-leader-election", dynamicResources)
		if err != nil {
			t.Fatal(err)
		}
		rendered := render(t, settings)
		if diff := cmp.Diff(find[rbacv1.ClusterRole](t, rendered, "ClusterRole", "tenon").Rules, roles.ClusterRole.Rules); diff != "" {
			t.Errorf("%s: ClusterRole (-chart +package):\n%s", settings, diff)
		}
		if diff := cmp.Diff(find[rbacv1.Role](t, rendered, "Role", "tenon-lease").Rules, roles.Role.Rules); diff != "" {
			t.Errorf("%s: Role (-chart +package):\n%s", settings, diff)
		}
		if diff := cmp.Diff(find[rbacv1.Role](t, rendered, "Role", "tenon-pauses").Rules, roles.PauseRole.Rules); diff != "" {
			t.Errorf("%s: Role of pauses (-chart +package):\n%s", settings, diff)
		}
	}
}

// TestPodStatusIsPatchedForNominationOnly: a worker that does not nominate pods may not change their status.
func TestPodStatusIsPatchedForNominationOnly(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{"settings: {clusterName: blue}": true, "settings: {clusterName: blue, nomination: false}": false} {
		rendered := render(t, settings)
		rules := find[rbacv1.ClusterRole](t, rendered, "ClusterRole", "tenon").Rules
		if may := slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "pods/status") }); may != want {
			t.Errorf("%s: the status of pods may be patched: %t", settings, may)
		}
		for _, variable := range find[appsv1.Deployment](t, rendered, "Deployment", "tenon").Spec.Template.Spec.Containers[0].Env {
			if variable.Name == "TENON_NOMINATION" && variable.Value != fmt.Sprint(want) {
				t.Errorf("%s: the worker is told %s", settings, variable.Value)
			}
		}
	}
}

// TestHooksOfTheChart: what hooks may use comes from the values, and so does the right to create Jobs, in those namespaces only.
func TestHooksOfTheChart(t *testing.T) {
	t.Parallel()
	want, err := deploy.HookRules()
	if err != nil {
		t.Fatal(err)
	}
	rendered := render(t, "settings: {clusterName: blue, hooks: {urls: ['https://hooks.example.com/nodes', 'http://10.0.0.1'], jobNamespaces: [ops]}}")
	role := find[rbacv1.Role](t, rendered, "Role", "tenon-hooks")
	if diff := cmp.Diff(want, role.Rules); diff != "" || role.Namespace != "ops" {
		t.Errorf("Role of hooks in %s (-package +chart):\n%s", role.Namespace, diff)
	}
	env := map[string]string{}
	for _, variable := range find[appsv1.Deployment](t, rendered, "Deployment", "tenon").Spec.Template.Spec.Containers[0].Env {
		env[variable.Name] = variable.Value
	}
	if env["TENON_HOOK_URL"] != "https://hooks.example.com/nodes,http://10.0.0.1" || env["TENON_HOOK_JOB_NAMESPACE"] != "ops" {
		t.Errorf("the worker is told %q and %q", env["TENON_HOOK_URL"], env["TENON_HOOK_JOB_NAMESPACE"])
	}
	for _, object := range render(t, "settings: {clusterName: blue}") {
		if strings.HasSuffix(object.GetName(), "-hooks") {
			t.Errorf("by default there is a %s %s", object.GetKind(), object.GetName())
		}
	}
}

func TestNobodyMayDoEverything(t *testing.T) {
	t.Parallel()
	roles, err := deploy.WorkerRoles("tenon", rbacv1.Subject{}, "kube-system", "lease", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range slices.Concat(roles.ClusterRole.Rules, roles.Role.Rules, roles.PauseRole.Rules) {
		if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
			t.Errorf("a rule is for everything: %+v", rule)
		}
		if slices.Contains(rule.Resources, "secrets") {
			t.Errorf("the worker reads secrets: %+v", rule)
		}
	}
}

// values are the parts of the chart's defaults that tests compare with other files.
type values struct {
	Temporal struct{ Address, Namespace string }
}

func chartValues(t *testing.T) values {
	t.Helper()
	data, err := os.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var v values
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// helm runs the Helm that the Makefile builds and returns all it wrote.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs("../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Fatal("bin/helm is missing: run `make tools`")
	}
	// The go command caches a test's result by the files that the test itself opened, not by those Helm opened.
	err = filepath.WalkDir("chart", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// render returns the objects that the chart renders for some values, in the order in which they are applied.
func render(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	out, err := helm(t, "template", "tenon", "chart", "--namespace", "tenon", "--values", valuesFile(t, values), "--output-dir", dir)
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "tenon", "templates", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("helm template wrote nothing: %v\n%s", err, out)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, documents(t, data)...)
	}
	return objects
}

// documents parses YAML of several documents, leaving out empty ones.
func documents(t *testing.T, data []byte) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for dec := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var raw json.RawMessage
		if err := dec.Decode(&raw); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatalf("parse YAML: %v\n%s", err, data)
		}
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatalf("not a Kubernetes object: %v\n%s", err, raw)
		}
		objects = append(objects, object)
	}
}

// find returns the rendered object of a kind and name as its Go type. A field the type does not have is an error.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	var typed T
	for _, object := range objects {
		if object.GetKind() != kind || object.GetName() != name {
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
			t.Fatalf("%s %s: %v", kind, name, err)
		}
		return typed
	}
	t.Fatalf("the chart renders no %s %s", kind, name)
	return typed
}

func valuesFile(t *testing.T, values string) string {
	t.Helper()
	if !strings.Contains(values, "temporal:") {
		values += "\ntemporal: {insecure: true}\n"
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
