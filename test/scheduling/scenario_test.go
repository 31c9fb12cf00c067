package scheduling_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tenon-sh/tenon/test/flow"
	"github.com/tenon-sh/tenon/test/world"
)

// sceneLabel is the label of a scenario's nodes, which its pods select.
const sceneLabel = "scene.example.com/name"

// scenario tests one rule.
type scenario struct {
	// name is the name of the namespace, the first part of the NodePools' names and the value of sceneLabel.
	name string
	// rule is the rule, in one sentence.
	rule string
	// before creates what the NodePools need.
	before func(*play)
	// pools are the scenario's NodePools; one plain pool when empty.
	pools []pool
	// steps run one after the other, each when the previous one has settled.
	steps []step
	// plans is how many plans launch nodes for the scenario: one when zero, and none when noPlan.
	plans int
	// spare is how many nodes may have no pods of the scenario.
	spare int
	// expect is what must hold in the end.
	expect []expectation
}

// noPlan is for scenarios that must not launch anything.
const noPlan = -1

// launches returns how many plans may launch nodes for the scenario.
func (s *scenario) launches() int {
	if s.plans == noPlan {
		return 0
	}
	return max(s.plans, 1)
}

// step is what happens at one time.
type step struct {
	// act does what manifests cannot, before the step's objects are created.
	act func(*play)
	// objects are further manifests, created before the pods. Those of namespaced kinds go into the scenario's namespace.
	objects string
	pods    []workload
	// then does what manifests cannot, after the step's pods are created and before they have settled.
	then func(*play)
}

// pool is a NodePool. Its zero value sells m5.large on demand in all zones.
type pool struct {
	// suffix is added to the scenario's name; a scenario's only pool needs none.
	suffix string
	// class is the EC2NodeClass; default when empty.
	class string
	// types are the instance types; m5.large when empty, and all types when any.
	types []string
	// capacity are the capacity types; on-demand when empty.
	capacity []string
	// requirements are further requirements, labels further labels of the nodes: YAML's flow style, without brackets.
	requirements, labels string
	// template are further fields of the template's spec, spec further fields of the pool's.
	template, spec []string
}

var (
	anyType = []string{"*"}
	spot    = []string{"spot"}
	both    = []string{"spot", "on-demand"}
)

// held returns NodePools whose nodes accept pods only after play.release.
func held(pools ...pool) []pool {
	for i := range pools {
		pools[i].template = append(pools[i].template, "startupTaints: [{key: starting, effect: NoSchedule}]")
	}
	return pools
}

func (p pool) name(scene string) string { return strings.TrimSuffix(scene+"-"+p.suffix, "-") }

func (p pool) manifest(scene string) string {
	requirements := []string{flow.In("karpenter.sh/capacity-type", flow.Or(p.capacity, "on-demand")...)}
	if types := flow.Or(p.types, "m5.large"); types[0] != "*" {
		requirements = append(requirements, flow.In("node.kubernetes.io/instance-type", types...))
	}
	if p.requirements != "" {
		requirements = append(requirements, p.requirements)
	}
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}%s
  template:
    metadata: {labels: {%s: %s%s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %s}
      requirements: [%s]%s
`, p.name(scene), flow.Lines(2, p.spec), sceneLabel, scene, flow.Further(p.labels), cmp.Or(p.class, "default"), strings.Join(requirements, ", "), flow.Lines(6, p.template))
}

// workload is a number of identical pods.
type workload struct {
	// name is the value of the pods' label app, and the first part of their names.
	name  string
	count int
	// requests are those of the only container; half an m5.large when empty. All fields are in flow style, without brackets.
	requests string
	// limits are the container's, which devices need.
	limits string
	// labels are further labels, annotations all annotations, selector further entries of the node selector.
	labels, annotations, selector string
	// spec are further fields of the pods' spec, container of the container.
	spec, container []string
	// stays is part of what Tenon says about pods that are not to be scheduled, which are all but bound of them; empty if
	// all are scheduled.
	stays string
	bound int
	// deployed lets a Deployment create the pods; otherwise they have no owner.
	deployed bool
}

// An m5.large holds two pods that request half, or three that request third.
const (
	half  = "cpu: 900m, memory: 1Gi"
	third = "cpu: 600m, memory: 1Gi"
	whole = "cpu: 1700m, memory: 1Gi"
)

// manifests returns the manifests of the pods, or of their Deployment.
func (l workload) manifests(scene string) string {
	spec := fmt.Sprintf(`
terminationGracePeriodSeconds: 1
nodeSelector: {%s: %s%s}
containers:
- name: app
  image: app
  resources: {requests: {%s}, limits: {%s}}%s%s
`, sceneLabel, scene, flow.Further(l.selector), cmp.Or(l.requests, half), l.limits, flow.Lines(2, l.container), flow.Lines(0, l.spec))
	meta := fmt.Sprintf("labels: {app: %s%s}, annotations: {%s}", l.name, flow.Further(l.labels), l.annotations)
	if l.deployed {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {%[3]s}
    spec:%[4]s
`, l.name, l.count, meta, flow.Indent(6, spec))
	}
	var all strings.Builder
	for i := range l.count {
		fmt.Fprintf(&all, "\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, %s}\nspec:%s\n", l.name, i, meta, flow.Indent(2, spec))
	}
	return all.String()
}

// clusterWide are the kinds in the tables that belong to no namespace.
var clusterWide = map[string]bool{
	"Namespace": true, "NodePool": true, "StorageClass": true, "PersistentVolume": true, "CSIDriver": true, "CSINode": true,
	"PriorityClass": true, "RuntimeClass": true, "DeviceClass": true, "NodeOverlay": true,
}

// parse reads manifests. Objects of namespaced kinds get the namespace if they name none.
func parse(t testing.TB, namespace, manifests string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := world.Objects(manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if !clusterWide[object.GetKind()] && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
	}
	return objects
}
