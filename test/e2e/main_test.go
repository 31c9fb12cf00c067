// Package e2e_test runs the product as a user would, on its own laboratory. The tests share it and run one after the other,
// each leaving the cluster empty.
package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m, 16)) }

// TestProduct is the one test of this package: its parts share a laboratory.
func TestProduct(t *testing.T) {
	// The sweep runs often, so that the tests need not wait long for its repairs. The pods of a Deployment are planned for
	// together, however slowly a busy machine creates them.
	w := world.Start(t, world.Options{Worker: []string{"--sweep-interval=10s", "--batch-idle-duration=3s"}, WorkerEnv: []string{failpoint.ServeVariable + "=" + patience.String()}})
	for _, part := range []struct {
		name string
		run  func(*testing.T, *world.World)
	}{
		{"ThousandPods", thousandPods},
		{"Scenes", scenes},
		{"Replacements", replacements},
		{"AlikeNodes", alikeNodes},
		{"EC2Faults", ec2Faults}, // the last: offerings that it makes EC2 refuse stay unavailable for minutes
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(t, w.For(t)) }) {
			// The leftovers of a failed part would only confuse the parts that follow.
			return
		}
	}
}

// deployment returns the manifest of a Deployment and its namespace. further are additional lines of the pods' spec, in
// YAML's flow style.
func deployment(namespace, name string, replicas int, requests string, further ...string) string {
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
`), namespace, name, replicas, requests) + flow.Lines(6, further)
}

// of returns a node selector for the nodes of one NodePool.
func of(pool string) string { return "nodeSelector: {karpenter.sh/nodepool: " + pool + "}" }

// nodePool returns the manifest of a NodePool of the default EC2NodeClass. requirements are flow style items; further lines
// belong to the spec of its template.
func nodePool(name, consolidateAfter string, requirements []string, further ...string) string {
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: %s, budgets: [{nodes: "100%%"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
`), name, consolidateAfter) + flow.Lines(6, dashed(requirements)) + flow.Lines(6, further)
}

// types requires instance types.
func types(names ...string) []string {
	return []string{flow.In("node.kubernetes.io/instance-type", names...)}
}

// onDemand requires on-demand capacity.
const onDemand = "{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}"

func dashed(items []string) []string {
	var lines []string
	for _, item := range items {
		lines = append(lines, "- "+item)
	}
	return lines
}

// emptyAfter makes the default NodePool remove empty nodes after a while, all at once.
func emptyAfter(w *world.World, after string) {
	w.T.Helper()
	w.Apply(fmt.Sprintf(strings.TrimSpace(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  disruption:
    consolidationPolicy: WhenEmpty
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
