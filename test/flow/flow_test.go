package flow_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/test/flow"
)

// TestWorkload reads manifests as the API server does.
func TestWorkload(t *testing.T) {
	t.Parallel()
	type made struct {
		Replicas          int32
		Pool, CPU, Apart  string
		Annotations       map[string]string
		Namespace, Labels string
	}
	for reason, test := range map[string]struct {
		workload flow.Workload
		want     made
	}{
		"pods anywhere": {flow.Workload{Namespace: "a", Replicas: 3, Requests: "cpu: 100m"}, made{Replicas: 3, CPU: "100m", Namespace: "a", Labels: "a"}},
		"one pod to a node of a NodePool, with an annotation": {
			flow.Workload{Namespace: "a", Replicas: 1, Requests: `cpu: "1", memory: 1Gi`, Pool: "p", Apart: "a", Annotations: `x: "true"`},
			made{Replicas: 1, Pool: "p", CPU: "1", Apart: "a", Annotations: map[string]string{"x": "true"}, Namespace: "a", Labels: "a"}},
		"apart from the pods of another": {flow.Workload{Namespace: "a", Requests: "cpu: 100m", Apart: "b"}, made{CPU: "100m", Apart: "b", Namespace: "a", Labels: "a"}},
	} {
		_, manifest, _ := strings.Cut(test.workload.Manifest(), "---\n")
		var deployment appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(manifest), &deployment); err != nil {
			t.Errorf("%s: %v\n%s", reason, err, manifest)
			continue
		}
		pod := deployment.Spec.Template
		got := made{Replicas: *deployment.Spec.Replicas, Pool: pod.Spec.NodeSelector["karpenter.sh/nodepool"], CPU: pod.Spec.Containers[0].Resources.Requests.Cpu().String(),
			Annotations: pod.Annotations, Namespace: deployment.Namespace, Labels: pod.Labels["app"]}
		if affinity := pod.Spec.Affinity; affinity != nil {
			got.Apart = affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels["app"]
		}
		if len(got.Annotations) == 0 {
			got.Annotations = nil
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
}
