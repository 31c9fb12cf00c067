// Package e2e_test runs the product as a user would, on a laboratory of its own. The tests share one laboratory and run
// one after the other, each leaving the cluster empty.
package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/test/world"
)

// TestProduct is the one test of this package: its parts share a laboratory.
func TestProduct(t *testing.T) {
	w := world.Start(t, world.Options{})
	for _, part := range []struct {
		name string
		run  func(*testing.T, *world.World)
	}{
		{"ThousandPods", thousandPods},
	} {
		t.Run(part.name, func(t *testing.T) {
			outer := w.T
			w.T = t
			defer func() { w.T = outer }()
			part.run(t, w)
		})
	}
}

// deployment is the manifest of a Deployment in a namespace that is created with it.
func deployment(namespace, name string, replicas int, requests string) string {
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: %[2]s}
spec:
  replicas: %[3]d
  selector: {matchLabels: {app: %[2]s}}
  template:
    metadata: {labels: {app: %[2]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: app
        resources: {requests: {%[4]s}}
`), namespace, name, replicas, requests)
}

// emptyAfter has empty nodes of the default NodePool go after a while, all at once.
func emptyAfter(w *world.World, after string) {
	w.T.Helper()
	w.Apply(fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption:
    consolidateAfter: %s
    budgets: [{nodes: "100%%"}]
  template:
    spec:
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
`), after))
}
