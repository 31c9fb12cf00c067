package plan_test

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// stage is a cluster to which pods are bound one by one under the kube-scheduler's rules: the filters NodeAffinity,
// TaintToleration, NodeResourcesFit, NodePorts, PodTopologySpread and InterPodAffinity, written from their
// documentation and sharing no code with the planner.
type stage struct {
	spots      []*spot
	namespaces map[string]map[string]string
	shapes     map[string]*shape
	// prospects are nodes that do not exist and could. A careful scheduler counts the domains they would make.
	prospects []*corev1.Node
}

// spot is a node of a stage and what runs on it.
type spot struct {
	node *corev1.Node
	free map[corev1.ResourceName]int64 // thousandths
	pods map[*shape]int
	// leaving are pods that are being deleted: they keep others away, and otherwise do not count.
	leaving map[*shape]bool
	// closed spots are seen by the filters of others and take no pod themselves. gone spots make no domain either.
	closed, gone bool

	unsuited map[*shape]string
}

// shape is what filters see of pods that differ by name alone.
type shape struct {
	pod      *corev1.Pod
	requests map[corev1.ResourceName]int64
	ports    []corev1.ContainerPort
	nodes    nodeaffinity.RequiredNodeAffinity
	spread   []spreadRule
	// affinity and apart are the required terms of pod affinity and anti-affinity.
	affinity, apart []affinityRule
}

type spreadRule struct {
	corev1.TopologySpreadConstraint
	selector labels.Selector
	matched  map[*shape]bool
	// prospects are the domains that could be created.
	prospects map[string]bool
}

type affinityRule struct {
	key        string
	selector   labels.Selector
	namespaces []string
	others     labels.Selector // of namespaces, by their labels
	matched    map[*shape]bool
}

func newStage(namespaces map[string]map[string]string) *stage {
	return &stage{namespaces: namespaces, shapes: map[string]*shape{}}
}

func (s *stage) add(node *corev1.Node) *spot {
	sp := &spot{node: node, free: map[corev1.ResourceName]int64{}, pods: map[*shape]int{}, leaving: map[*shape]bool{}, unsuited: map[*shape]string{}}
	for name, quantity := range node.Status.Allocatable {
		sp.free[name] = quantity.MilliValue()
	}
	s.spots = append(s.spots, sp)
	return sp
}

func (sp *spot) put(sh *shape) {
	sp.pods[sh]++
	sp.occupy(sh, 1)
}

func (sp *spot) take(sh *shape) {
	if sp.pods[sh]--; sp.pods[sh] == 0 {
		delete(sp.pods, sh)
	}
	sp.occupy(sh, -1)
}

func (sp *spot) occupy(sh *shape, times int64) {
	for name, amount := range sh.requests {
		sp.free[name] -= amount * times
	}
}

// shapeOf compiles a pod.
func (s *stage) shapeOf(pod *corev1.Pod) *shape {
	spec := pod.Spec
	spec.NodeName = ""
	encoded, _ := spec.Marshal()
	key := pod.Namespace + "\x00" + labels.Set(pod.Labels).String() + "\x00" + string(encoded)
	if sh := s.shapes[key]; sh != nil {
		return sh
	}
	sh := &shape{pod: pod, nodes: nodeaffinity.GetRequiredNodeAffinity(pod),
		requests: map[corev1.ResourceName]int64{corev1.ResourcePods: 1000}}
	for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		if !quantity.IsZero() {
			sh.requests[name] = quantity.MilliValue()
		}
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.HostPort > 0 {
				sh.ports = append(sh.ports, port)
			}
		}
	}
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			sh.spread = append(sh.spread, spreadRule{TopologySpreadConstraint: c, matched: map[*shape]bool{},
				selector: selectorOf(pod, c.LabelSelector, c.MatchLabelKeys, nil)})
		}
	}
	if affinity := pod.Spec.Affinity; affinity != nil {
		if affinity.PodAffinity != nil {
			sh.affinity = rulesOf(pod, affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if affinity.PodAntiAffinity != nil {
			sh.apart = rulesOf(pod, affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	s.shapes[key] = sh
	return sh
}

func rulesOf(pod *corev1.Pod, terms []corev1.PodAffinityTerm) []affinityRule {
	var rules []affinityRule
	for _, t := range terms {
		rule := affinityRule{key: t.TopologyKey, matched: map[*shape]bool{}, namespaces: t.Namespaces, others: labels.Nothing(),
			selector: selectorOf(pod, t.LabelSelector, t.MatchLabelKeys, t.MismatchLabelKeys)}
		if t.NamespaceSelector != nil {
			rule.others, _ = metav1.LabelSelectorAsSelector(t.NamespaceSelector)
		} else if len(t.Namespaces) == 0 {
			rule.namespaces = []string{pod.Namespace}
		}
		rules = append(rules, rule)
	}
	return rules
}

// selectorOf adds to a selector the conditions of matchLabelKeys and mismatchLabelKeys on the pod's own labels.
func selectorOf(pod *corev1.Pod, from *metav1.LabelSelector, match, mismatch []string) labels.Selector {
	selector, _ := metav1.LabelSelectorAsSelector(from)
	also := func(keys []string, operator selection.Operator) {
		for _, key := range keys {
			if value, ok := pod.Labels[key]; ok {
				requirement, _ := labels.NewRequirement(key, operator, []string{value})
				selector = selector.Add(*requirement)
			}
		}
	}
	also(match, selection.In)
	also(mismatch, selection.NotIn)
	return selector
}

func (r *affinityRule) matches(s *stage, sh *shape) bool {
	matched, known := r.matched[sh]
	if !known {
		inside := slices.Contains(r.namespaces, sh.pod.Namespace) || r.others.Matches(labels.Set(s.namespaces[sh.pod.Namespace]))
		matched = inside && r.selector.Matches(labels.Set(sh.pod.Labels))
		r.matched[sh] = matched
	}
	return matched
}

func (r *spreadRule) matches(owner, sh *shape) bool {
	matched, known := r.matched[sh]
	if !known {
		matched = owner.pod.Namespace == sh.pod.Namespace && r.selector.Matches(labels.Set(sh.pod.Labels))
		r.matched[sh] = matched
	}
	return matched
}

// refuses returns the reason why a filter keeps a pod off a node now, or "".
func (s *stage) refuses(sh *shape, sp *spot) string {
	if sp.closed {
		return "the node takes no pods"
	}
	if why := sp.refusesAlone(sh); why != "" {
		return why
	}
	if why := s.breaksSpread(sh, sp); why != "" {
		return why
	}
	return s.breaksAffinity(sh, sp)
}

// refusesAlone runs the filters that look at one node only.
func (sp *spot) refusesAlone(sh *shape) string {
	why, known := sp.unsuited[sh]
	if !known {
		why = unsuited(sh, sp.node)
		sp.unsuited[sh] = why
	}
	if why != "" {
		return why
	}
	for name, amount := range sh.requests {
		if amount > sp.free[name] {
			return fmt.Sprintf("it asks for %d of %s, and %d thousandths are free", amount, name, sp.free[name])
		}
	}
	for other := range sp.pods {
		for _, a := range other.ports {
			if slices.ContainsFunc(sh.ports, func(b corev1.ContainerPort) bool { return portsClash(a, b) }) {
				return fmt.Sprintf("host port %d is taken by %s", a.HostPort, other.pod.Name)
			}
		}
	}
	return ""
}

func portsClash(a, b corev1.ContainerPort) bool {
	everywhere := func(ip string) bool { return ip == "" || ip == "0.0.0.0" }
	return a.HostPort == b.HostPort && a.Protocol == b.Protocol &&
		(a.HostIP == b.HostIP || everywhere(a.HostIP) || everywhere(b.HostIP))
}

// unsuited says why a node's labels and taints keep a pod off, or "".
func unsuited(sh *shape, node *corev1.Node) string {
	if matches, err := sh.nodes.Match(node); err != nil || !matches {
		return fmt.Sprintf("its node selection does not match the labels %v (%v)", node.Labels, err)
	}
	if taint := untolerated(sh, node); taint != "" {
		return "taint " + taint
	}
	return ""
}

func untolerated(sh *shape, node *corev1.Node) string {
	hard := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	taint, found := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, sh.pod.Spec.Tolerations, hard, false)
	if !found {
		return ""
	}
	return taint.ToString()
}

// breaksSpread is the filter PodTopologySpread: count + self - minimum <= maxSkew, over the nodes that have all keys
// and satisfy the policies.
func (s *stage) breaksSpread(sh *shape, sp *spot) string {
	for i := range sh.spread {
		r := &sh.spread[i]
		own, ok := sp.node.Labels[r.TopologyKey]
		if !ok {
			return "the node has no label " + r.TopologyKey
		}
		counts := s.population(sh, r)
		for domain := range s.prospectsOf(sh, r) {
			counts[domain] += 0
		}
		least := math.MaxInt32
		for _, n := range counts {
			least = min(least, n)
		}
		if r.MinDomains != nil && len(counts) < int(*r.MinDomains) {
			least = 0
		}
		if s.prospects != nil && r.TopologyKey == corev1.LabelHostname {
			least = 0 // another node could always be added
		}
		self := 0
		if r.matches(sh, sh) {
			self = 1
		}
		if counts[own]+self-least > int(r.MaxSkew) {
			return fmt.Sprintf("skew over %s: %d in %s already, %d at least in %v, at most %d more", r.TopologyKey, counts[own], own, least, counts, r.MaxSkew)
		}
	}
	return ""
}

// population counts the pods a constraint selects by domain, including domains with none.
func (s *stage) population(sh *shape, r *spreadRule) map[string]int {
	counts := map[string]int{}
	for _, sp := range s.spots {
		lacks := func(other spreadRule) bool { _, ok := sp.node.Labels[other.TopologyKey]; return !ok }
		if sp.gone || slices.ContainsFunc(sh.spread, lacks) {
			continue
		}
		if r.NodeAffinityPolicy == nil || *r.NodeAffinityPolicy == corev1.NodeInclusionPolicyHonor {
			if matches, _ := sh.nodes.Match(sp.node); !matches {
				continue
			}
		}
		if r.NodeTaintsPolicy != nil && *r.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor && untolerated(sh, sp.node) != "" {
			continue
		}
		domain := sp.node.Labels[r.TopologyKey]
		counts[domain] += 0
		if r.selector.Empty() {
			continue // the kube-scheduler counts nothing for a selector that selects everything
		}
		for other, n := range sp.pods {
			if r.matches(sh, other) {
				counts[domain] += n
			}
		}
	}
	return counts
}

// prospectsOf returns the domains that could be created for a pod of this shape.
func (s *stage) prospectsOf(sh *shape, r *spreadRule) map[string]bool {
	if r.prospects == nil {
		r.prospects = map[string]bool{}
		for _, node := range s.prospects {
			if value, ok := node.Labels[r.TopologyKey]; ok && r.TopologyKey != corev1.LabelHostname && unsuited(sh, node) == "" {
				r.prospects[value] = true
			}
		}
	}
	return r.prospects
}

// breaksAffinity is the filter InterPodAffinity.
func (s *stage) breaksAffinity(sh *shape, sp *spot) string {
	if len(sh.affinity) > 0 {
		if why := s.lacksCompany(sh, sp); why != "" {
			return why
		}
	}
	for _, other := range s.spots {
		together := func(key string) bool {
			here, ok := sp.node.Labels[key]
			there, has := other.node.Labels[key]
			return ok && has && here == there
		}
		for present := range other.present {
			for i := range sh.apart {
				if r := &sh.apart[i]; together(r.key) && r.matches(s, present) {
					return fmt.Sprintf("anti-affinity over %s to %s on %s", r.key, present.pod.Name, other.node.Name)
				}
			}
			for i := range present.apart {
				if r := &present.apart[i]; together(r.key) && r.matches(s, sh) {
					return fmt.Sprintf("anti-affinity over %s of %s on %s", r.key, present.pod.Name, other.node.Name)
				}
			}
		}
	}
	return ""
}

// present yields all shapes on a node, including pods that are being deleted.
func (sp *spot) present(yield func(*shape) bool) {
	for sh := range sp.pods {
		if !yield(sh) {
			return
		}
	}
	for sh := range sp.leaving {
		if !yield(sh) {
			return
		}
	}
}

// lacksCompany checks required affinity: each term needs, in the node's domain, a pod that matches all terms. The first
// of pods that are to be near each other needs none.
func (s *stage) lacksCompany(sh *shape, sp *spot) string {
	all := func(other *shape) bool {
		for i := range sh.affinity {
			if !sh.affinity[i].matches(s, other) {
				return false
			}
		}
		return true
	}
	anywhere := false
	accompanied := make([]bool, len(sh.affinity))
	for _, other := range s.spots {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(other.pods)), all) {
			continue
		}
		for i, r := range sh.affinity {
			there, has := other.node.Labels[r.key]
			anywhere = anywhere || has
			accompanied[i] = accompanied[i] || has && sp.node.Labels[r.key] == there
		}
	}
	for i, r := range sh.affinity {
		if _, ok := sp.node.Labels[r.key]; !ok {
			return "the node has no label " + r.key
		}
		if !accompanied[i] && (anywhere || !all(sh)) {
			return "no pod for its affinity over " + r.key
		}
	}
	return ""
}
