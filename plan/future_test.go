package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// binding is a pod and the node it is planned for.
type binding struct {
	sh *shape
	sp *spot
}

// bindable looks for an order in which the kube-scheduler can bind pods where they are planned. It binds what it can,
// repeatedly. Because a pod may block another that should have come first, it tries several orders. It returns a pod
// that is stuck and why, or "".
func (s *stage) bindable(bindings []binding) string {
	order, turn := slices.Clone(bindings), s.turns(bindings)
	slices.SortStableFunc(order, func(a, b binding) int { return cmp.Compare(turn[a.sh], turn[b.sh]) })
	r := rand.New(rand.NewPCG(1, 2))
	first := ""
	for range 12 {
		bound, why := s.bind(order)
		for _, b := range bound {
			b.sp.take(b.sh)
		}
		if why == "" {
			return ""
		}
		first = cmp.Or(first, why)
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return first
}

// turns returns an order of shapes in which those come late that block others, and those that follow others.
func (s *stage) turns(bindings []binding) map[*shape]int {
	var left []*shape
	for _, b := range bindings {
		if !slices.Contains(left, b.sh) {
			left = append(left, b.sh)
		}
	}
	turn := map[*shape]int{}
	for len(left) > 0 {
		last, most := 0, -1<<30
		for i, sh := range left {
			if n := s.lateness(sh, left); n > most {
				last, most = i, n
			}
		}
		turn[left[last]] = len(left)
		left = slices.Delete(left, last, last+1)
	}
	return turn
}

// lateness says how much the others gain if a shape comes after them.
func (s *stage) lateness(sh *shape, others []*shape) int {
	n := 0
	if len(sh.spread)+len(sh.apart) == 0 {
		n++
	}
	for _, other := range others {
		if other == sh {
			continue
		}
		for i := range other.spread {
			if other.spread[i].matches(other, sh) {
				n += 2
			}
		}
		for i := range sh.spread {
			if sh.spread[i].matches(sh, other) {
				n -= 2
			}
		}
		if s.follows(other, sh) && !s.follows(sh, other) {
			n -= 100
		}
	}
	return n
}

// follows reports whether a shape needs the company of another.
func (s *stage) follows(sh, other *shape) bool {
	for i := range sh.affinity {
		if sh.affinity[i].matches(s, other) {
			return true
		}
	}
	return false
}

// bind binds the first pod that can be bound, repeatedly, until no more can be bound.
func (s *stage) bind(order []binding) (bound []binding, why string) {
	left := slices.Clone(order)
	for i := 0; i < len(left); i++ {
		b := left[i]
		if refusal := s.refuses(b.sh, b.sp); refusal != "" {
			why = fmt.Sprintf("pod %s cannot be bound to %s (%s in %s): %s", b.sh.pod.Name, b.sp.node.Name,
				b.sp.node.Labels[corev1.LabelInstanceTypeStable], b.sp.node.Labels[corev1.LabelTopologyZone], refusal)
			continue
		}
		b.sp.put(b.sh)
		bound = append(bound, b)
		left = slices.Delete(left, i, i+1)
		i = -1
	}
	if len(left) == 0 {
		return bound, ""
	}
	return bound, why
}

// standing puts the nodes of the cluster on a stage, with the pods that stay on them, and returns them by key. A claim
// without a machine becomes one of the nodes that it may become, chosen by pick.
func (w *world) standing(pick func(n int) int) (*stage, map[string]*spot) {
	s, byKey := newStage(w.namespaces), map[string]*spot{}
	for _, n := range w.nodes {
		node := w.nodeFor(n, pick)
		if node == nil {
			continue
		}
		staying := slices.DeleteFunc(slices.Clone(w.bound[n.Key()]), func(pod *corev1.Pod) bool { return going(n) && moves(pod, n) })
		sp := s.add(node)
		sp.gone = going(n) && !slices.ContainsFunc(staying, holdsUp)
		sp.closed = going(n) || n.Cordoned
		byKey[n.Key()] = sp
		running := map[string]bool{}
		for _, pod := range staying {
			for _, owner := range pod.OwnerReferences {
				running[owner.Name] = owner.Kind == "DaemonSet"
			}
			switch {
			case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
			case pod.DeletionTimestamp != nil:
				sp.occupy(s.shapeOf(pod), 1)
				sp.leaving[s.shapeOf(pod)] = true
			default:
				sp.put(s.shapeOf(pod))
			}
		}
		w.runDaemons(s, sp, running)
	}
	return s, byKey
}

// holdsUp reports whether a pod keeps its node from going away.
func holdsUp(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && !ownedBy(pod, "DaemonSet") && !ownedBy(pod, "Node") &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

func going(n *plan.Node) bool { return n.Deleting || n.Disrupted || n.Terminating }

// runDaemons binds the pods of the DaemonSets that admit a node and do not run there yet.
func (w *world) runDaemons(s *stage, sp *spot, running map[string]bool) {
	for _, set := range w.daemonSets {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name, Labels: set.Spec.Template.Labels}, Spec: set.Spec.Template.Spec}
		sh := s.shapeOf(pod)
		// If two DaemonSets want the same port, only one gets onto the node.
		taken := func(a corev1.ContainerPort) bool {
			for other := range sp.pods {
				if slices.ContainsFunc(other.ports, func(b corev1.ContainerPort) bool { return portsClash(a, b) }) {
					return true
				}
			}
			return false
		}
		if !running[set.Name] && unsuited(sh, sp.node) == "" && !slices.ContainsFunc(sh.ports, taken) {
			sp.put(sh)
		}
	}
}

// nodeFor returns the Node of a plan.Node, or nil if a claim can become nothing.
func (w *world) nodeFor(n *plan.Node, pick func(n int) int) *corev1.Node {
	if n.Name == "" && !n.Launched {
		options := w.becomes(n)
		if len(options) == 0 {
			return nil
		}
		return options[pick(len(options))]
	}
	labels := map[string]string{corev1.LabelHostname: n.Key()}
	for key, value := range n.Labels {
		labels[key] = value
	}
	taints := n.Taints
	if !n.Initialized {
		addOldNames(labels)
		taints = slices.DeleteFunc(slices.Clone(taints), func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeNotReady || slices.ContainsFunc(n.StartupTaints, func(s corev1.Taint) bool { return s.MatchTaint(&t) })
		})
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Key(), Labels: labels}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: n.Allocatable.List()}}
}

// becomes returns the Nodes that a claim in flight may become. What its pool no longer allows is not judged.
func (w *world) becomes(n *plan.Node) []*corev1.Node {
	var nodes []*corev1.Node
	i := slices.IndexFunc(w.pools, func(p plan.Pool) bool { return p.NodePool.Name == n.Pool })
	if i < 0 {
		return nil
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim, Labels: n.Labels}, Spec: karpv1.NodeClaimSpec{Taints: n.Taints}}
	var requirements []karpv1.NodeSelectorRequirementWithMinValues
	for _, r := range n.Requirements {
		requirements = append(requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: r.Operator, Values: r.Values})
	}
	for _, r := range w.pools[i].NodePool.Spec.Template.Spec.Requirements {
		if karpv1.WellKnownLabels().Has(r.Key) {
			requirements = append(requirements, r)
		}
	}
	for _, typ := range w.pools[i].Types {
		for _, o := range typ.Offerings {
			node := nodeOf(claim, typ, o.Zone, o.CapacityType)
			broken := func(r karpv1.NodeSelectorRequirementWithMinValues) bool { return !holds(node.Labels, r) }
			if o.Available && !slices.ContainsFunc(requirements, broken) && holdsRequests(typ, n.Requests) {
				nodes = append(nodes, node)
			}
		}
	}
	return nodes
}

func holdsRequests(typ *cloud.InstanceType, requests plan.Resources) bool {
	for name, quantity := range requests.List() {
		if allocatable := typ.Allocatable[name]; quantity.Cmp(allocatable) > 0 {
			return false
		}
	}
	return true
}

// checkFutures judges the plan as a whole. The nodes it asks for may get any of the types and zones they list, so
// several outcomes are simulated: the first of everything, the last, and random ones.
func checkFutures(t fataler, w *world, p plan.Plan, pods map[string]*corev1.Pod) {
	t.Helper()
	chance := rand.New(rand.NewPCG(3, 4))
	picks := []func(int) int{
		func(int) int { return 0 },
		func(n int) int { return n - 1 },
		chance.IntN,
		chance.IntN,
	}
	for round, pick := range picks {
		s, byKey := w.standing(pick)
		var bindings []binding
		for _, placement := range p.Placements {
			sp := byKey[placement.Node]
			if sp == nil {
				t.Fatalf("pod %s is placed on %s, which is not there", placement.Pod.Key(), placement.Node)
			}
			bindings = append(bindings, binding{s.shapeOf(pods[string(placement.Pod.UID)]), sp})
		}
		for i := range p.Claims {
			options := w.outcomes(t, &p.Claims[i], fmt.Sprintf("new-%d", i))
			sp := s.add(options[pick(len(options))])
			w.runDaemons(s, sp, nil)
			for _, uid := range p.Claims[i].Pods {
				bindings = append(bindings, binding{s.shapeOf(pods[string(uid)]), sp})
			}
		}
		if why := s.bindable(bindings); why != "" {
			t.Fatalf("outcome %d of the plan: %s\n%s", round, why, outline(p))
		}
	}
}

// outcomes returns the Nodes that a planned claim may become.
func (w *world) outcomes(t fataler, c *plan.Claim, name string) []*corev1.Node {
	t.Helper()
	i := slices.IndexFunc(w.pools, func(p plan.Pool) bool { return p.NodePool.Name == c.NodePool })
	if i < 0 {
		t.Fatalf("a claim is of pool %q, which is not there", c.NodePool)
	}
	object, err := c.NodeClaim(w.pools[i].NodePool, name)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []*corev1.Node
	for _, typeName := range c.InstanceTypes {
		at := slices.IndexFunc(w.pools[i].Types, func(typ *cloud.InstanceType) bool { return typ.Name == typeName })
		if at < 0 {
			t.Fatalf("claim of pool %s names type %s, which the pool does not have", c.NodePool, typeName)
		}
		typ, before := w.pools[i].Types[at], len(nodes)
		for _, zone := range c.Zones {
			if _, ok := offeringOf(typ, zone, c.CapacityType); ok {
				nodes = append(nodes, nodeOf(object, typ, zone, c.CapacityType))
			}
		}
		if len(nodes) == before {
			t.Fatalf("type %s is offered in none of the claim's zones %v", typeName, c.Zones)
		}
	}
	return nodes
}
