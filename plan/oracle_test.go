package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// fresh returns all Nodes that could be launched now: every type, zone and capacity type of every pool with any value
// of the labels it leaves open, within limits.
func (w *world) fresh() []*corev1.Node {
	var nodes []*corev1.Node
	for _, pool := range w.pools {
		template := &pool.NodePool.Spec.Template
		for _, typ := range pool.Types {
			used := w.usedOf(pool.NodePool.Name)
			use(used, typ.Capacity)
			if pool.NodePool.Spec.Limits.ExceededBy(used) != nil {
				continue
			}
			for _, o := range typ.Offerings {
				if !o.Available {
					continue
				}
				for _, open := range w.openLabels(pool.NodePool) {
					claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("fresh-%d", len(nodes)), Labels: open},
						Spec: karpv1.NodeClaimSpec{Taints: template.Spec.Taints}}
					maps.Copy(open, claimLabels(pool.NodePool))
					node := nodeOf(claim, typ, o.Zone, o.CapacityType)
					if !slices.ContainsFunc(template.Spec.Requirements, func(r karpv1.NodeSelectorRequirementWithMinValues) bool { return !holds(node.Labels, r) }) {
						nodes = append(nodes, node)
					}
				}
			}
		}
	}
	return nodes
}

// openLabels returns the combinations of values that a pool's custom labels may take, including all values mentioned
// elsewhere.
func (w *world) openLabels(pool *karpv1.NodePool) []map[string]string {
	combinations := []map[string]string{{}}
	for _, key := range []string{"team", "slot"} {
		values := map[string]bool{}
		for _, r := range pool.Spec.Template.Spec.Requirements {
			if r.Key != key {
				continue
			}
			if !w.relates(key) { // the planner invents no domains
				values["other"] = true
			}
			for _, value := range append(r.Values, w.mentioned(key)...) {
				values[value] = true
			}
		}
		if len(values) == 0 {
			continue
		}
		var extended []map[string]string
		for _, labels := range combinations {
			extended = append(extended, labels)
			for _, value := range slices.Sorted(maps.Keys(values)) {
				more := maps.Clone(labels)
				more[key] = value
				extended = append(extended, more)
			}
		}
		combinations = extended
	}
	for i := range combinations {
		combinations[i] = maps.Clone(combinations[i])
	}
	return combinations
}

// relates reports whether a waiting pod's relations to others use this label.
func (w *world) relates(key string) bool {
	for _, pod := range w.waiting() {
		if encoded, _ := pod.Spec.Marshal(); bytes.Contains(encoded, []byte(key)) {
			return true
		}
	}
	return false
}

// mentioned returns the values of a label that nodes have and pods ask for.
func (w *world) mentioned(key string) []string {
	var values []string
	for _, n := range w.nodes {
		if value, ok := n.Labels[key]; ok {
			values = append(values, value)
		}
	}
	for _, pod := range w.waiting() {
		if value, ok := pod.Spec.NodeSelector[key]; ok {
			values = append(values, value)
		}
		if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			continue
		}
		for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, expression := range term.MatchExpressions {
				if expression.Key == key && expression.Operator == corev1.NodeSelectorOpIn {
					values = append(values, expression.Values...)
				}
			}
		}
	}
	return values
}

// placeFor returns a node that exists or could be launched and takes one more pod, or "". Domains that could be
// launched into count for topology spread as if they had nodes: a plan must not depend on their absence.
func (w *world) placeFor(s *stage, pod *corev1.Pod) string {
	s.prospects = w.fresh()
	sh := s.shapeOf(pod)
	for _, sp := range s.spots {
		if s.refuses(sh, sp) == "" {
			return sp.node.Name
		}
	}
	for _, node := range s.prospects {
		if unsuited(sh, node) != "" {
			continue
		}
		sp := s.add(node)
		w.runDaemons(s, sp, nil)
		takes := !sp.overfull() && s.refuses(sh, sp) == ""
		s.spots = s.spots[:len(s.spots)-1]
		if takes {
			return fmt.Sprintf("a new %s %s in %s with %v", node.Labels[capacityType], node.Labels[corev1.LabelInstanceTypeStable], node.Labels[zone], node.Labels)
		}
	}
	return ""
}

// overfull reports whether a node is too small for its own DaemonSets. No such node is launched for other pods.
func (sp *spot) overfull() bool {
	for _, amount := range sp.free {
		if amount < 0 {
			return true
		}
	}
	return false
}

// search is an exhaustive search for a place for every pod, among nodes that exist and any number of new ones.
type search struct {
	w      *world
	s      *stage
	pods   []*shape
	fresh  []*corev1.Node
	chosen []binding
	tries  int
}

// maxTries limits a search. Beyond it, the answer is unknown and taken to be no.
const maxTries = 5_000

// allPlaceable returns a way to place every waiting pod, or "".
func (w *world) allPlaceable() string {
	s, _ := w.standing(func(int) int { return 0 })
	s.prospects = w.fresh()
	x := search{w: w, s: s, fresh: slices.Clone(s.prospects)}
	waiting := w.waiting()
	for _, uid := range slices.Sorted(maps.Keys(waiting)) {
		x.pods = append(x.pods, s.shapeOf(waiting[uid]))
	}
	x.fresh = slices.DeleteFunc(x.fresh, func(node *corev1.Node) bool {
		return !slices.ContainsFunc(x.pods, func(sh *shape) bool { return unsuited(sh, node) == "" })
	})
	if !x.place(0) {
		return ""
	}
	var text []string
	for _, b := range x.chosen {
		text = append(text, fmt.Sprintf("%s on %s (%s %s %s)", b.sh.pod.Name, b.sp.node.Name,
			b.sp.node.Labels[corev1.LabelInstanceTypeStable], b.sp.node.Labels[zone], b.sp.node.Labels[capacityType]))
	}
	return strings.Join(text, ", ")
}

func (x *search) place(i int) bool {
	if i == len(x.pods) {
		for _, b := range x.chosen {
			b.sp.take(b.sh)
		}
		why := x.s.bindable(x.chosen)
		for _, b := range x.chosen {
			b.sp.put(b.sh)
		}
		return why == ""
	}
	sh := x.pods[i]
	put := func(sp *spot) bool {
		if x.tries++; x.tries > maxTries || sp.closed || sp.refusesAlone(sh) != "" {
			return false
		}
		sp.put(sh)
		x.chosen = append(x.chosen, binding{sh, sp})
		if x.place(i + 1) {
			return true
		}
		x.chosen = x.chosen[:i]
		sp.take(sh)
		return false
	}
	for _, sp := range x.s.spots {
		if put(sp) {
			return true
		}
	}
	for _, node := range x.fresh {
		if unsuited(sh, node) != "" {
			continue
		}
		node = node.DeepCopy()
		node.Name = fmt.Sprintf("new-%d", len(x.s.spots))
		node.Labels[hostname] = node.Name
		sp := x.s.add(node)
		x.w.runDaemons(x.s, sp, nil)
		if !sp.overfull() && put(sp) {
			return true
		}
		x.s.spots = x.s.spots[:len(x.s.spots)-1]
	}
	return false
}
