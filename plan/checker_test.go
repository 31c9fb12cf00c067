package plan_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

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

// check holds a plan against the rules of Kubernetes and Karpenter. It shares no code with the planner: pods are the API
// objects, and every node a claim may become, in each of its types and zones, is judged as the kube-scheduler would.
func check(t fataler, w *world, p plan.Plan) {
	t.Helper()
	pods := map[string]*corev1.Pod{}
	for _, pod := range w.pods {
		pods[string(pod.UID)] = pod
	}
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
	pools := map[string]plan.Pool{}
	for _, pool := range w.pools {
		pools[pool.NodePool.Name] = pool
	}
	for i := range p.Claims {
		c := &p.Claims[i]
		var onto []*corev1.Pod
		for _, uid := range c.Pods {
			once(string(uid))
			onto = append(onto, pods[string(uid)])
		}
		checkClaim(t, w, pools[c.NodePool], c, onto)
	}
	checkLimits(t, w, pools, p)
	onNode := map[string][]*corev1.Pod{}
	for _, placement := range p.Placements {
		once(string(placement.Pod.UID))
		onNode[placement.Node] = append(onNode[placement.Node], pods[string(placement.Pod.UID)])
	}
	for _, n := range w.nodes {
		if len(onNode[n.Key()]) > 0 {
			checkNode(t, n, onNode[n.Key()])
		}
	}
	for _, u := range p.Unplaced {
		once(string(u.Pod.UID))
		if len(u.Reasons) == 0 || u.Reasons[0].Message == "" {
			t.Fatalf("pod %s is unplaced without a reason", u.Pod.Key())
		}
	}
	for _, pod := range w.pods {
		if !seen[string(pod.UID)] {
			t.Fatalf("pod %s is forgotten", pod.Name)
		}
	}
}

// checkClaim judges every node the claim may become.
func checkClaim(t fataler, w *world, pool plan.Pool, c *plan.Claim, pods []*corev1.Pod) {
	t.Helper()
	if len(c.InstanceTypes) == 0 || len(c.InstanceTypes) > plan.MaxInstanceTypes || len(c.Zones) == 0 || len(pods) == 0 {
		t.Fatalf("claim with %d types, %d zones and %d pods", len(c.InstanceTypes), len(c.Zones), len(pods))
	}
	object, err := c.NodeClaim(pool.NodePool, "claim")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range pool.NodePool.Spec.Template.Spec.Requirements {
		distinct := map[string]bool{}
		for _, typ := range pool.Types {
			if slices.Contains(c.InstanceTypes, typ.Name) {
				distinct[typ.Labels[r.Key]] = true
			}
		}
		if r.MinValues != nil && len(distinct) < *r.MinValues {
			t.Fatalf("claim chooses from %d values of %s, fewer than minValues: %v", len(distinct), r.Key, c.InstanceTypes)
		}
	}
	cheapest := -1.0
	for _, name := range c.InstanceTypes {
		i := slices.IndexFunc(pool.Types, func(typ *cloud.InstanceType) bool { return typ.Name == name })
		if i < 0 {
			t.Fatalf("claim of pool %s names type %s, which the pool does not have", c.NodePool, name)
		}
		typ, offered := pool.Types[i], false
		for _, zone := range c.Zones {
			price, ok := offeringOf(typ, zone, c.CapacityType)
			if !ok {
				continue
			}
			offered = true
			if cheapest < 0 || price < cheapest {
				cheapest = price
			}
			node := nodeOf(object, typ, zone, c.CapacityType)
			for _, r := range pool.NodePool.Spec.Template.Spec.Requirements {
				if !holds(node.Labels, r) {
					t.Fatalf("type %s in %s breaks the pool's requirement %v: %v", name, zone, r, node.Labels)
				}
			}
			checkPods(t, node, append(slices.Clone(pods), daemonPods(w, node)...))
		}
		if !offered {
			t.Fatalf("type %s is offered in none of the claim's zones", name)
		}
	}
	if c.PricePerHour < cheapest*0.999 || c.PricePerHour > cheapest*1.001 {
		t.Fatalf("the claim's price is %v, its cheapest offering %v", c.PricePerHour, cheapest)
	}
}

func offeringOf(typ *cloud.InstanceType, zone, capacityType string) (float64, bool) {
	for _, o := range typ.Offerings {
		if o.Zone == zone && o.CapacityType == capacityType && o.Available {
			return o.Price, true
		}
	}
	return 0, false
}

// nodeOf is the Node a claim becomes.
func nodeOf(claim *karpv1.NodeClaim, typ *cloud.InstanceType, zone, capacityType string) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: "some-host", corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: zone[:len(zone)-1],
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
	// What the kubelet still adds for those who use the names of old.
	labels["beta.kubernetes.io/arch"], labels["beta.kubernetes.io/os"] = labels[corev1.LabelArchStable], labels[corev1.LabelOSStable]
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "some-host", Labels: labels},
		Spec:       corev1.NodeSpec{Taints: claim.Spec.Taints},
		Status:     corev1.NodeStatus{Allocatable: typ.Allocatable},
	}
}

// holds judges a NodePool's requirement with Kubernetes' own matcher, and the two operators it does not know by theirs.
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

// daemonPods are the pods DaemonSets put on a node.
func daemonPods(w *world, node *corev1.Node) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, set := range w.daemonSets {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: set.Name}, Spec: set.Spec.Template.Spec}
		taken := func(other *corev1.Pod) bool {
			return len(pod.Spec.Containers[0].Ports) > 0 && len(other.Spec.Containers[0].Ports) > 0
		}
		// Of two DaemonSets that want the same port, only one gets onto the node.
		if admitted(node, pod) == "" && !slices.ContainsFunc(pods, taken) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// admitted says why the node's labels and taints keep a pod off, or nothing.
func admitted(node *corev1.Node, pod *corev1.Pod) string {
	matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node)
	if err != nil || !matches {
		return fmt.Sprintf("labels %v do not match (%v)", node.Labels, err)
	}
	hard := func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }
	if taint, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, pod.Spec.Tolerations, hard, false); untolerated {
		return "taint " + taint.ToString()
	}
	return ""
}

// checkPods judges pods on one node: labels, taints, resources and host ports.
func checkPods(t fataler, node *corev1.Node, pods []*corev1.Pod) {
	t.Helper()
	sum := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(pods)), resource.DecimalSI)}
	ports := map[string]string{}
	for _, pod := range pods {
		if why := admitted(node, pod); why != "" {
			t.Fatalf("pod %s may not be on node of type %s: %s", pod.Name, node.Labels[corev1.LabelInstanceTypeStable], why)
		}
		for name, quantity := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
		for _, container := range pod.Spec.Containers {
			for _, port := range container.Ports {
				if port.HostPort == 0 {
					continue
				}
				key := fmt.Sprint(port.Protocol, port.HostPort)
				if ports[key] != "" {
					t.Fatalf("pods %s and %s both take host port %s", ports[key], pod.Name, key)
				}
				ports[key] = pod.Name
			}
		}
	}
	for name, quantity := range sum {
		if allocatable := node.Status.Allocatable[name]; quantity.Cmp(allocatable) > 0 {
			t.Fatalf("%d pods take %s of %s on a node of type %s with %s",
				len(pods), quantity.String(), name, node.Labels[corev1.LabelInstanceTypeStable], allocatable.String())
		}
	}
}

// checkNode judges pods that were placed on a node which exists.
func checkNode(t fataler, n *plan.Node, placed []*corev1.Pod) {
	t.Helper()
	if n.Deleting || n.Disrupted || n.Cordoned {
		t.Fatalf("node %s takes pods and is going away", n.Key())
	}
	allocatable := n.Allocatable.List()
	for _, pod := range n.Pods {
		for name, quantity := range pod.Class.Requests.List() {
			rest := allocatable[name]
			rest.Sub(quantity)
			allocatable[name] = rest
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels},
		Spec: corev1.NodeSpec{Taints: n.Taints}, Status: corev1.NodeStatus{Allocatable: allocatable}}
	checkPods(t, node, placed)
}

// checkLimits judges the claims' largest types against what the pools' limits leave.
func checkLimits(t fataler, w *world, pools map[string]plan.Pool, p plan.Plan) {
	t.Helper()
	for name, pool := range pools {
		used := corev1.ResourceList{}
		add := func(capacity corev1.ResourceList) {
			capacity = capacity.DeepCopy()
			capacity[karpv1.ResourceNodes] = resource.MustParse("1")
			for resourceName, quantity := range capacity {
				total := used[resourceName]
				total.Add(quantity)
				used[resourceName] = total
			}
		}
		for _, n := range w.nodes {
			if n.Pool == name {
				add(n.Capacity.List())
			}
		}
		count := 0
		for i := range p.Claims {
			if p.Claims[i].NodePool != name {
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
			add(largest)
		}
		if err := pool.NodePool.Spec.Limits.ExceededBy(used); err != nil && count > 0 {
			t.Fatalf("pool %s: %v", name, err)
		}
	}
}
