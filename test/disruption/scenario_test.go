package disruption_test

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/flow"
)

// sceneLabel is the label of a scenario's nodes, which its pods select.
const sceneLabel = "scene.example.com/name"

const (
	zoneKey     = corev1.LabelTopologyZone
	hostKey     = corev1.LabelHostname
	typeKey     = corev1.LabelInstanceTypeStable
	capacityKey = karpv1.CapacityTypeLabelKey
	poolKey     = karpv1.NodePoolLabelKey
)

// scenario tests one rule.
type scenario struct {
	// name is the name of the namespace, the first part of the NodePools' names and the value of sceneLabel.
	name string
	// rule is the rule, in one sentence.
	rule string
	// pools are the scenario's NodePools; one plain pool when empty.
	pools []pool
	// objects are further manifests, applied before the NodePools. SCENE in them stands for the scenario's name.
	objects string
	steps   []step
	// patience is how long a step may take, settleWithin when zero.
	patience time.Duration
	// takes is how many nodes are removed for which reason.
	takes takes
	// breaks says why the scenario's way of removing nodes overrides PodDisruptionBudgets; empty if it must not.
	breaks string
}

// takes counts nodes by the reason for their removal, which is empty if none was recorded.
type takes map[string]int

// step is an action, a wait or a check.
type step func(*play)

// pool is a NodePool. Its zero value sells m5.large on demand in all zones, removes empty or underutilized nodes, all at
// once, and is closed: it does not consolidate before it is opened.
type pool struct {
	// suffix is added to the scenario's name; a scenario's only pool needs none.
	suffix string
	// types are the instance types; m5.large when empty.
	types []string
	// capacity are the capacity types; on-demand when empty.
	capacity []string
	// requirements are further requirements, labels those of the nodes, and annotations those of the NodePool, all in YAML's
	// flow style without brackets.
	requirements, labels, annotations string
	// class is the EC2NodeClass; default when empty.
	class string
	// policy is the consolidationPolicy; WhenEmptyOrUnderutilized when empty.
	policy string
	// budgets are in flow style, and may contain SCENE; all nodes at once when empty.
	budgets string
	// template are further fields of the template's spec, spec further fields of the pool's.
	template, spec []string
}

func (p pool) name(scene string) string { return strings.TrimSuffix(scene+"-"+p.suffix, "-") }

// required returns all requirements of the pool's template, in flow style.
func (p pool) required() string {
	requirements := []string{flow.In(capacityKey, flow.Or(p.capacity, "on-demand")...), flow.In(typeKey, flow.Or(p.types, "m5.large")...)}
	if p.requirements != "" {
		requirements = append(requirements, p.requirements)
	}
	return "[" + strings.Join(requirements, ", ") + "]"
}

func (p pool) manifest(scene string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s, annotations: {%s}}
spec:
  disruption: {consolidationPolicy: %s, consolidateAfter: Never, budgets: [%s]}%s
  template:
    metadata: {labels: {%s: %s%s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}
      requirements: %s%s
`, p.name(scene), p.annotations, cmp.Or(p.policy, "WhenEmptyOrUnderutilized"), cmp.Or(p.budgets, `{nodes: "100%"}`), flow.Lines(2, p.spec),
		sceneLabel, scene, flow.Further(p.labels), cmp.Or(p.class, "default"), p.required(), flow.Lines(6, p.template))
}

// nodeClass returns an EC2NodeClass that differs from the default one in the given fields.
func nodeClass(name, cluster string, fields map[string]string) string {
	spec := map[string]string{
		"role":                       "KarpenterNodeRole-" + cluster,
		"amiSelectorTerms":           "[{alias: al2023@latest}]",
		"subnetSelectorTerms":        "[{tags: {karpenter.sh/discovery: " + cluster + "}}]",
		"securityGroupSelectorTerms": "[{tags: {karpenter.sh/discovery: " + cluster + "}}]",
	}
	for key, value := range fields {
		spec[key] = value
	}
	text := fmt.Sprintf("\n---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: %s}\nspec:\n", name)
	for key, value := range spec {
		text += "  " + key + ": " + value + "\n"
	}
	return text
}

// workload is a Deployment, a DaemonSet or bare pods.
type workload struct {
	// name is the value of the pods' label app, and the first part of their names.
	name  string
	count int
	// requests are those of the only container; more than half an m5.large when empty. All fields are in flow style, without
	// brackets.
	requests string
	// labels are further labels of the pods, annotations all their annotations, selector further entries of their node
	// selector.
	labels, annotations, selector string
	// spec are further fields of the pods' spec.
	spec []string
	// daemon makes it a DaemonSet, bare makes it pods without an owner.
	daemon, bare bool
}

// An m5.large holds one ballast and one light pod, or two light ones, and not two of ballast.
const (
	ballast = "cpu: 1100m, memory: 1Gi"
	light   = "cpu: 700m, memory: 512Mi"
	whole   = "cpu: 1700m, memory: 1Gi"
	tiny    = "cpu: 50m, memory: 64Mi"
)

func (l workload) manifest(scene string) string {
	spec := fmt.Sprintf(`
terminationGracePeriodSeconds: 5
nodeSelector: {%s: %s%s}
containers: [{name: app, image: app, resources: {requests: {%s}}}]%s
`, sceneLabel, scene, flow.Further(strings.ReplaceAll(l.selector, "SCENE", scene)), cmp.Or(l.requests, light), flow.Lines(0, l.spec))
	meta := fmt.Sprintf("labels: {app: %s%s}, annotations: {%s}", l.name, flow.Further(l.labels), l.annotations)
	kind, replicas := "Deployment", fmt.Sprintf("\n  replicas: %d", l.count)
	if l.daemon {
		kind, replicas = "DaemonSet", ""
	}
	if l.bare {
		var all strings.Builder
		for i := range l.count {
			fmt.Fprintf(&all, "\n---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: %s, name: %s-%d, %s}\nspec:%s\n", scene, l.name, i, meta, flow.Indent(2, spec))
		}
		return all.String()
	}
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: %[1]s
metadata: {namespace: %[2]s, name: %[3]s}
spec:%[4]s
  selector: {matchLabels: {app: %[3]s}}
  template:
    metadata: {%[5]s}
    spec:%[6]s
`, kind, scene, l.name, replicas, meta, flow.Indent(6, spec))
}

// pdb returns a PodDisruptionBudget for the pods of a workload, with a spec in flow style without brackets.
func pdb(name, app, spec string) string {
	return fmt.Sprintf("\n---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {namespace: SCENE, name: %s}, spec: {selector: {matchLabels: {app: %s}}, %s}}", name, app, spec)
}
