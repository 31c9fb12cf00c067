// Package provider_test runs Tenon with a provider that is not AWS's: nothing in the laboratory but the provider itself knows
// which one it is.
package provider_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 1)) }

const patience = 3 * time.Minute

// web are pods that need most of a small machine each, in every zone of the built-in catalogue.
const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: %d
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      nodeSelector: {karpenter.kwok.sh/instance-family: c}
      containers:
      - {name: web, image: web, resources: {requests: {cpu: 1500m, memory: 1Gi}}}
`

// TestKwok brings pods onto Nodes that the kwok provider makes, kills the worker, and takes the pods away again.
func TestKwok(t *testing.T) {
	w := world.Start(t, world.Options{Provider: lab.ProviderKwok})
	if out, err := w.Kubectl("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"disruption":{"consolidateAfter":"5s"}}}`); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	w.Apply(fmt.Sprintf(web, 6))
	w.AwaitRunning("default", 6, patience)
	claims, nodes := w.Claims(), w.Nodes()
	if len(claims) == 0 || len(claims) != len(nodes) {
		t.Errorf("%d claims have %d nodes", len(claims), len(nodes))
	}
	zones := map[string]bool{}
	for _, node := range nodes {
		zones[node.Labels[corev1.LabelTopologyZone]] = true
		if !strings.HasPrefix(node.Spec.ProviderID, "kwok://") || node.Labels["karpenter.kwok.sh/instance-family"] != "c" ||
			node.Labels["karpenter.kwok.sh/kwoknodeclass"] != "default" || node.Labels[karpv1.NodeRegisteredLabelKey] != "true" {
			t.Errorf("node %s has the provider id %s and the labels %v", node.Name, node.Spec.ProviderID, node.Labels)
		}
	}
	if len(zones) != 3 {
		t.Errorf("the pods are spread over the zones %v, want three", zones)
	}

	if err := w.Lab.Kill(lab.Worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.Apply(fmt.Sprintf(web, 0))
	w.Await("everything gone", patience, func() (bool, string) {
		claims, nodes := len(w.Claims()), len(w.Nodes())
		lives := len(w.Executions(`WorkflowType = "NodeClaim" AND ExecutionStatus = "Running"`))
		return claims+nodes+lives == 0, fmt.Sprintf("%d claims, %d nodes, %d workflows", claims, nodes, lives)
	})
	for _, claim := range claims {
		if len(w.Executions(fmt.Sprintf(`WorkflowType = "NodeClaim" AND ExecutionStatus = "Completed" AND NodeClaim = %q`, claim.Name))) != 1 {
			t.Errorf("the workflow of %s has not completed", claim.Name)
		}
	}
}
