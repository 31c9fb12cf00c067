package plan_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// fataler is what testing and rapid have in common.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// check holds a plan against the rules of Kubernetes and Karpenter. It shares no code with the planner: pods are the
// API objects, and every node a claim may become, in each of its types and zones, is judged as the kube-scheduler would
// judge it. There has to be an order in which all pods can be bound where they are planned.
func check(t fataler, w *world, p plan.Plan) {
	t.Helper()
	pods := w.waiting()
	checkOnce(t, pods, p)
	for i := range p.Claims {
		var onto []*corev1.Pod
		for _, uid := range p.Claims[i].Pods {
			onto = append(onto, pods[string(uid)])
		}
		checkClaim(t, w, &p.Claims[i], onto)
	}
	checkLimits(t, w, p)
	checkInFlight(t, w, p, pods)
	checkFutures(t, w, p, pods)
}

// checkOnce checks that every waiting pod is in the plan once, and no other pod is.
func checkOnce(t fataler, pods map[string]*corev1.Pod, p plan.Plan) {
	t.Helper()
	seen := map[string]bool{}
	once := func(uid string) {
		if pods[uid] == nil {
			t.Fatalf("pod %s is planned and does not wait", uid)
		}
		if seen[uid] {
			t.Fatalf("pod %s is planned twice", uid)
		}
		seen[uid] = true
	}
	for i := range p.Claims {
		for _, uid := range p.Claims[i].Pods {
			once(string(uid))
		}
	}
	for _, placement := range p.Placements {
		once(string(placement.Pod.UID))
	}
	for _, u := range p.Unplaced {
		once(string(u.Pod.UID))
		if len(u.Reasons) == 0 || u.Reasons[0].Message == "" {
			t.Fatalf("pod %s is unplaced without a reason", u.Pod.Key())
		}
	}
	for uid, pod := range pods {
		if !seen[uid] {
			t.Fatalf("pod %s is forgotten", pod.Name)
		}
	}
}

// waiting returns the pods that need a node, by UID: those the kube-scheduler has given up on, and those on nodes that
// are going away.
func (w *world) waiting() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, pod := range w.pods {
		if waits(pod) {
			pods[string(pod.UID)] = pod
		}
	}
	for _, n := range w.nodes {
		for _, pod := range w.bound[n.Key()] {
			if (n.Deleting || n.Disrupted) && moves(pod, n) {
				pods[string(pod.UID)] = pod
			}
		}
	}
	return pods
}

func waits(pod *corev1.Pod) bool {
	unschedulable := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
	return unschedulable && pod.Spec.NodeName == "" && pod.Status.NominatedNodeName == "" && len(pod.Spec.SchedulingGates) == 0 &&
		pod.DeletionTimestamp == nil && pod.Annotations[corev1.MirrorPodAnnotationKey] == "" && !ownedBy(pod, "DaemonSet") && !ownedBy(pod, "Node")
}

// moves reports whether a pod would have to move if its node went away. A pod with do-not-disrupt does so only if its
// node ends within two minutes.
func moves(pod *corev1.Pod, n *plan.Node) bool {
	lost := !n.EndsAt.IsZero() && n.EndsAt.Before(now.Add(2*time.Minute))
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed &&
		!ownedBy(pod, "DaemonSet") && !ownedBy(pod, "Node") && pod.Annotations[corev1.MirrorPodAnnotationKey] == "" &&
		(lost || pod.Annotations[karpv1.DoNotDisruptAnnotationKey] != "true") && (pod.DeletionTimestamp == nil || ownedBy(pod, "StatefulSet"))
}

func ownedBy(pod *corev1.Pod, kind string) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == kind })
}

// checkClaim judges every node the claim may become.
func checkClaim(t fataler, w *world, c *plan.Claim, pods []*corev1.Pod) {
	t.Helper()
	if len(c.InstanceTypes) == 0 || len(c.InstanceTypes) > plan.MaxInstanceTypes || len(c.Zones) == 0 || len(pods) == 0 {
		t.Fatalf("claim with %d types, %d zones and %d pods", len(c.InstanceTypes), len(c.Zones), len(pods))
	}
	outcomes := w.outcomes(t, c, "new")
	requirements := w.poolOf(c.NodePool).NodePool.Spec.Template.Spec.Requirements
	for _, r := range requirements {
		distinct := map[string]bool{}
		for _, node := range outcomes {
			distinct[node.Labels[r.Key]] = true
		}
		if r.MinValues != nil && len(distinct) < *r.MinValues && !c.MinValuesRelaxed {
			t.Fatalf("claim chooses from %d values of %s, fewer than minValues: %v", len(distinct), r.Key, c.InstanceTypes)
		}
	}
	cheapest := -1.0
	for _, node := range outcomes {
		typ := w.poolOf(c.NodePool).typeNamed(node.Labels[corev1.LabelInstanceTypeStable])
		if price, _ := offeringOf(typ, node.Labels[corev1.LabelTopologyZone], c.CapacityType); cheapest < 0 || price < cheapest {
			cheapest = price
		}
		for _, r := range requirements {
			if !holds(node.Labels, r) {
				t.Fatalf("type %s breaks the pool's requirement %v: %v", typ.Name, r, node.Labels)
			}
		}
		checkAlone(t, w, node, pods)
	}
	if c.PricePerHour < cheapest*0.999 || c.PricePerHour > cheapest*1.001 {
		t.Fatalf("the claim's price is %v, its cheapest offering %v", c.PricePerHour, cheapest)
	}
}

// checkAlone judges pods on a new node by the rules that look at that node alone.
func checkAlone(t fataler, w *world, node *corev1.Node, pods []*corev1.Pod) {
	t.Helper()
	s := newStage(nil)
	sp := s.add(node)
	w.runDaemons(s, sp, nil)
	for _, pod := range pods {
		sh := s.shapeOf(pod)
		if why := sp.refusesAlone(sh); why != "" {
			t.Fatalf("%d pods are planned for a node, and if it becomes %s in %s, pod %s does not get onto it: %s", len(pods),
				node.Labels[corev1.LabelInstanceTypeStable], node.Labels[corev1.LabelTopologyZone], pod.Name, why)
		}
		sp.put(sh)
	}
}

// checkInFlight judges placements on claims without a machine, whatever the claim becomes.
func checkInFlight(t fataler, w *world, p plan.Plan, pods map[string]*corev1.Pod) {
	t.Helper()
	for _, n := range w.nodes {
		if n.Name != "" || n.Launched {
			continue
		}
		var onto []*corev1.Pod
		for _, placement := range p.Placements {
			if placement.Node == n.Key() && !slices.Contains(n.Promised, placement.Pod.UID) {
				onto = append(onto, pods[string(placement.Pod.UID)])
			}
		}
		for _, node := range w.becomes(n) {
			checkAlone(t, w, node, onto)
		}
	}
}

func (w *world) poolOf(name string) pool {
	i := slices.IndexFunc(w.pools, func(p plan.Pool) bool { return p.NodePool.Name == name })
	if i < 0 {
		return pool{}
	}
	return pool(w.pools[i])
}

type pool plan.Pool

func (p pool) typeNamed(name string) *cloud.InstanceType {
	i := slices.IndexFunc(p.Types, func(typ *cloud.InstanceType) bool { return typ.Name == name })
	if i < 0 {
		return nil
	}
	return p.Types[i]
}

func offeringOf(typ *cloud.InstanceType, zone, capacityType string) (float64, bool) {
	for _, o := range typ.Offerings {
		if o.Zone == zone && o.CapacityType == capacityType && o.Available {
			return o.Price, true
		}
	}
	return 0, false
}

// nodeOf returns the Node that a claim becomes.
func nodeOf(claim *karpv1.NodeClaim, typ *cloud.InstanceType, zone, capacityType string) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: claim.Name, corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: zone[:len(zone)-1],
		karpv1.CapacityTypeLabelKey: capacityType,
	}
	for _, o := range typ.Offerings {
		if o.Zone == zone {
			labels["topology.k8s.aws/zone-id"] = o.ZoneID
		}
	}
	for key, value := range typ.Labels {
		labels[key] = value
	}
	for key, value := range claim.Labels {
		labels[key] = value
	}
	addOldNames(labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: claim.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: typ.Allocatable},
	}
}

// addOldNames adds the deprecated label names that the kubelet and the cloud provider still write.
func addOldNames(labels map[string]string) {
	for old, name := range map[string]string{
		"beta.kubernetes.io/arch": corev1.LabelArchStable, "beta.kubernetes.io/os": corev1.LabelOSStable, corev1.LabelInstanceType: corev1.LabelInstanceTypeStable,
		corev1.LabelFailureDomainBetaZone: corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaRegion: corev1.LabelTopologyRegion,
	} {
		if value, has := labels[name]; has {
			labels[old] = value
		}
	}
}

// holds judges a NodePool's requirement with Kubernetes' own matcher, and the two operators that the matcher lacks by
// their definition.
func holds(labels map[string]string, r karpv1.NodeSelectorRequirementWithMinValues) bool {
	operator, values := r.Operator, r.Values
	switch operator {
	case karpv1.NodeSelectorOpGte, karpv1.NodeSelectorOpLte:
		bound := resource.MustParse(values[0])
		if operator == karpv1.NodeSelectorOpGte {
			bound.Sub(resource.MustParse("1"))
			operator = corev1.NodeSelectorOpGt
		} else {
			bound.Add(resource.MustParse("1"))
			operator = corev1.NodeSelectorOpLt
		}
		values = []string{fmt.Sprint(bound.Value())}
	}
	selector := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: r.Key, Operator: operator, Values: values}}}}})
	matches, err := selector.Match(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	return matches && err == nil
}

// checkLimits judges the claims' largest types against what the pools' limits leave.
func checkLimits(t fataler, w *world, p plan.Plan) {
	t.Helper()
	for _, pool := range w.pools {
		used, count := w.usedOf(pool.NodePool.Name), 0
		for i := range p.Claims {
			if p.Claims[i].NodePool != pool.NodePool.Name {
				continue
			}
			count++
			largest := corev1.ResourceList{}
			for _, typ := range pool.Types {
				if !slices.Contains(p.Claims[i].InstanceTypes, typ.Name) {
					continue
				}
				for resourceName, quantity := range typ.Capacity {
					if most := largest[resourceName]; quantity.Cmp(most) > 0 {
						largest[resourceName] = quantity
					}
				}
			}
			use(used, largest)
		}
		if err := pool.NodePool.Spec.Limits.ExceededBy(used); err != nil && count > 0 {
			t.Fatalf("pool %s: %v", pool.NodePool.Name, err)
		}
	}
}

// usedOf returns what a pool's nodes count against its limits.
func (w *world) usedOf(pool string) corev1.ResourceList {
	used := corev1.ResourceList{}
	for _, n := range w.nodes {
		if n.Pool == pool {
			use(used, n.Capacity.List())
		}
	}
	return used
}

func use(used, capacity corev1.ResourceList) {
	add := func(name corev1.ResourceName, quantity resource.Quantity) {
		total := used[name]
		total.Add(quantity)
		used[name] = total
	}
	add(karpv1.ResourceNodes, resource.MustParse("1"))
	for name, quantity := range capacity {
		add(name, quantity)
	}
}
