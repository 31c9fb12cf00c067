package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/plan"
)

// String describes what a test has drawn: pools, nodes and one pod of each shape.
func (w *world) String() string {
	var b strings.Builder
	for _, pool := range w.pools {
		spec := pool.NodePool.Spec
		fmt.Fprintf(&b, "pool %s: %d types, limits %v", pool.NodePool.Name, len(pool.Types), spec.Limits)
		for _, r := range spec.Template.Spec.Requirements {
			fmt.Fprintf(&b, ", %s %s %v", r.Key, r.Operator, r.Values)
		}
		fmt.Fprintf(&b, ", taints %v, labels %v\n", spec.Template.Spec.Taints, spec.Template.Labels)
	}
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "node %s: %s %s %s", n.Key(), n.InstanceType, n.Zone, n.CapacityType)
		if n.Name == "" {
			fmt.Fprintf(&b, " in flight %v", n.Requirements)
		}
		fmt.Fprintf(&b, " going %t cordoned %t taints %v slot %q team %q\n", going(n), n.Cordoned, n.Taints, n.Labels["slot"], n.Labels["team"])
		for _, pod := range w.bound[n.Key()] {
			fmt.Fprintf(&b, "  runs %s/%s %v terminating %t, moves %t\n", pod.Namespace, pod.Name, labels.Set(pod.Labels), pod.DeletionTimestamp != nil, moves(pod, n))
		}
	}
	for _, set := range w.daemonSets {
		fmt.Fprintf(&b, "daemonset %s: %s\n", set.Name, describePod(&corev1.Pod{Spec: set.Spec.Template.Spec}))
	}
	counts := map[string]int{}
	for _, pod := range w.pods {
		counts[fmt.Sprintf("pods %s/%s %s", pod.Namespace, labels.Set(pod.Labels), describePod(pod))]++
	}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%d %s\n", counts[text], text)
	}
	return b.String()
}

func describePod(pod *corev1.Pod) string {
	spec := pod.Spec.DeepCopy()
	var text []string
	for _, container := range append(spec.InitContainers, spec.Containers...) {
		text = append(text, fmt.Sprint("ports ", len(container.Ports)))
		for name, quantity := range container.Resources.Requests {
			text = append(text, fmt.Sprint(name, " ", quantity.String()))
		}
	}
	slices.Sort(text)
	spec.Containers, spec.InitContainers = nil, nil
	encoded, _ := yaml.Marshal(spec)
	return strings.Join(text, ", ") + "\n" + string(encoded)
}

// outline describes what was planned.
func outline(p plan.Plan) string {
	var b strings.Builder
	for i := range p.Claims {
		c := &p.Claims[i]
		fmt.Fprintf(&b, "claim new-%d: %s %v of %d types in %v with %v: %v\n", i, c.CapacityType, c.InstanceTypes[0], len(c.InstanceTypes), c.Zones, c.Labels, c.Pods)
	}
	for _, placement := range p.Placements {
		fmt.Fprintf(&b, "%s goes to %s\n", placement.Pod.Key(), placement.Node)
	}
	for _, u := range p.Unplaced {
		fmt.Fprintf(&b, "%s is left: %v\n", u.Pod.Key(), u.Reasons)
	}
	return b.String()
}
