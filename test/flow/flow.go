// Package flow builds parts of the manifests of the suites' scenarios: pieces in YAML's flow style, which fit into a row of
// a table, and blocks of lines that are put into a larger manifest.
package flow

import (
	"fmt"
	"strings"
)

// In returns a requirement, or an expression of a selector, with the operator In.
func In(key string, values ...string) string { return Expression(key, "In", values...) }

// Expression returns a requirement, or an expression of a selector.
func Expression(key, operator string, values ...string) string {
	if len(values) == 0 {
		return fmt.Sprintf("{key: %s, operator: %s}", key, operator)
	}
	return fmt.Sprintf(`{key: %s, operator: %s, values: ["%s"]}`, key, operator, strings.Join(values, `", "`))
}

// Or returns the values, or the others if there are none.
func Or(values []string, others ...string) []string {
	if len(values) == 0 {
		return others
	}
	return values
}

// Further continues a list or a mapping with entries; there may be none.
func Further(entries string) string {
	if entries == "" {
		return ""
	}
	return ", " + entries
}

// Lines puts each field on its own line, indented by this many columns.
func Lines(by int, fields []string) string { return Indent(by, strings.Join(fields, "\n")) }

// Indent indents every line of a text by this many columns. It returns an empty string for a text without lines.
func Indent(by int, text string) string {
	text = strings.Trim(text, "\n")
	if text == "" {
		return ""
	}
	start := "\n" + strings.Repeat(" ", by)
	return start + strings.ReplaceAll(text, "\n", start)
}

// Workload is a Deployment of alike pods in a namespace of its own. The Deployment's name is app, and the label app of its
// pods has the namespace's name.
type Workload struct {
	Namespace string
	Replicas  int
	// Requests are the resources that each pod requests, such as "cpu: 100m".
	Requests string
	// Pool is the only NodePool whose nodes may run the pods; any may if it is empty.
	Pool string
	// Apart is the label app of the pods of which each node runs at most one; none is kept apart if it is empty.
	Apart string
	// Annotations are those of the pods.
	Annotations string
}

// Manifest returns the manifests of the namespace and the Deployment.
func (w Workload) Manifest() string {
	var where string
	if w.Pool != "" {
		where += "\n      nodeSelector: {karpenter.sh/nodepool: " + w.Pool + "}"
	}
	if w.Apart != "" {
		where += "\n      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: " +
			w.Apart + "}}}]}}"
	}
	return fmt.Sprintf(strings.TrimSpace(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: %[1]s, name: app}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {%[3]s}}
    spec:
      terminationGracePeriodSeconds: 1%[4]s
      containers: [{name: app, image: app, resources: {requests: {%[5]s}}}]
`), w.Namespace, w.Replicas, w.Annotations, where, w.Requests)
}
