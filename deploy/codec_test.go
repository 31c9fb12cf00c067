package deploy_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// codecValues are the smallest values with the codec and its server.
const codecValues = `
settings: {clusterName: blue}
networkPolicy: {enabled: true}
temporal: {insecure: true, codec: {existingSecret: codec-keys, key: "2026-11"}}
codecServer: {enabled: true, uiOrigin: "https://temporal.example"`

// codecOf returns where a container finds its keys: the environment, and the Secret that is mounted there.
func codecOf(pod corev1.PodSpec) map[string]string {
	found := map[string]string{}
	for _, env := range pod.Containers[0].Env {
		if env.Name == "TENON_CODEC_KEYS" || env.Name == "TENON_CODEC_KEY_ID" {
			found[env.Name] = env.Value
		}
	}
	secrets := map[string]string{}
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			secrets[volume.Name] = volume.Secret.SecretName
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if mount.ReadOnly && mount.SubPath == "" { // the kubelet never updates a sub-path
			found[mount.MountPath] = secrets[mount.Name]
		}
	}
	return found
}

// TestCodecKeysReachTheWorker shows that the codec is off unless a Secret is named, and that a worker then reads its keys from the
// Secret as it is mounted, which changes with it.
func TestCodecKeysReachTheWorker(t *testing.T) {
	t.Parallel()
	off := find[appsv1.Deployment](t, render(t, "settings: {clusterName: blue}"), "Deployment", "tenon")
	if got := codecOf(off.Spec.Template.Spec); len(got) > 0 {
		t.Errorf("by default, the worker has keys: %v", got)
	}
	on := find[appsv1.Deployment](t, render(t, codecValues+"}"), "Deployment", "tenon")
	want := map[string]string{"TENON_CODEC_KEYS": "/var/run/tenon/codec-keys", "TENON_CODEC_KEY_ID": "2026-11", "/var/run/tenon/codec-keys": "codec-keys"}
	if diff := cmp.Diff(want, codecOf(on.Spec.Template.Spec)); diff != "" {
		t.Errorf("the worker's keys (-want +got):\n%s", diff)
	}
}

// TestCodecServerIsConfined shows that the codec server has the keys and nothing else: no account, no way out, and nobody who
// reaches it but through the API server or with a token.
func TestCodecServerIsConfined(t *testing.T) {
	t.Parallel()
	const name = "tenon-codec-server"
	for reason, row := range map[string]struct {
		values  string
		address string
		mounts  []string
		reached bool
	}{
		"without a token it listens within its pod": {values: codecValues + "}", address: "--address=127.0.0.1:8089", mounts: []string{"codec-keys"}},
		"with a token and TLS it has a Service": {values: codecValues + ", token: {existingSecret: codec-token}, tls: {existingSecret: codec-tls}}",
			address: "--address=:8089", mounts: []string{"codec-keys", "codec-tls", "codec-token"}, reached: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			objects := render(t, row.values)
			deployment := find[appsv1.Deployment](t, objects, "Deployment", name)
			pod := deployment.Spec.Template.Spec
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken || pod.ServiceAccountName != "" {
				t.Error("it has a service account")
			}
			if security := pod.Containers[0].SecurityContext; !*security.RunAsNonRoot || *security.AllowPrivilegeEscalation || !*security.ReadOnlyRootFilesystem ||
				!slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("its security context is not restricted: %+v", security)
			}
			var secrets []string
			for secret := range maps.Values(codecOf(pod)) {
				if secret != "/var/run/tenon/codec-keys" && secret != "2026-11" {
					secrets = append(secrets, secret)
				}
			}
			slices.Sort(secrets)
			if diff := cmp.Diff(row.mounts, secrets); diff != "" {
				t.Errorf("Secrets (-want +got):\n%s", diff)
			}
			for _, argument := range []string{"codec-server", row.address, "--ui-origin=https://temporal.example"} {
				if !slices.Contains(pod.Containers[0].Args, argument) {
					t.Errorf("%s is not in %v", argument, pod.Containers[0].Args)
				}
			}
			policy := find[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy", name)
			if len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.Egress) != 0 || (len(policy.Spec.Ingress) == 1) != row.reached {
				t.Errorf("its NetworkPolicy: %+v", policy.Spec)
			}
			services := slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Service" && o.GetName() == name })
			if services != row.reached {
				t.Errorf("it has a Service: %t", services)
			}
			// Nothing of the workers selects its pods.
			worker := find[appsv1.Deployment](t, objects, "Deployment", "tenon")
			if labels.SelectorFromSet(worker.Spec.Selector.MatchLabels).Matches(labels.Set(deployment.Spec.Template.Labels)) {
				t.Errorf("the workers' selector %v takes its pods %v", worker.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels)
			}
		})
	}
}
