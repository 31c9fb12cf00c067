package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// drawing says what kinds of worlds are drawn.
type drawing struct {
	// replicas is the maximum number of waiting pods of a workload.
	replicas int
	// relations are rules about other pods that a workload may have.
	relations []func(*corev1.Pod)
	// preferences are rules that may stay unmet.
	preferences []func(*corev1.Pod)
	// settled worlds have no claims in flight.
	settled bool
	// unlimited pools have no limits. With anyChoice, pools accept any choice of types.
	unlimited, anyChoice bool
	// tiny worlds have two types in two zones, and two workloads.
	tiny bool
}

// allWishes draws pods that ask for everything there is.
func allWishes() drawing {
	return drawing{replicas: 12, relations: relations(), preferences: preferences()}
}

var (
	workloadNames = []string{"web", "cart", "db", "jobs", "mesh"}
	namespaces    = map[string]map[string]string{
		"default": {"kubernetes.io/metadata.name": "default"},
		"shop":    {"kubernetes.io/metadata.name": "shop", "team": "a"},
		"ops":     {"kubernetes.io/metadata.name": "ops", "team": "b"},
	}
)

// relations are rules that workloads have about themselves (mostly), and about each other.
func relations() []func(*corev1.Pod) {
	return []func(*corev1.Pod){
		spreads(zone, 1), spreads(zone, 1), spreads(zone, 2), spreads(hostname, 1), spreads(hostname, 1), spreads(hostname, 3),
		spreads(capacityType, 1), spreads("team", 1), spreads("slot", 1), spreads("slot", 2),
		spreads(zone, 1, minDomains(3)), spreads(zone, 1, minDomains(5)), spreads(hostname, 1, minDomains(4)),
		spreads(zone, 1, honorsTaints), spreads(zone, 1, ignoresAffinity), spreads(zone, 1, perVersion), spreads(hostname, 2, perVersion, honorsTaints),
		spreads(zone, 1, of("web", "cart")), spreads(hostname, 1, of("db")), spreads(zone, 1, of()),
		joins(zone, ""), joins(hostname, ""), joins(capacityType, ""), joins("team", ""),
		avoids(hostname, ""), avoids(hostname, ""), avoids(zone, ""), avoids("slot", ""), avoids(hostname, "", ofVersion),
		joins(zone, "web"), joins(hostname, "db"), joins(zone, "web", ofTeams()), joins(zone, "cart", inNamespaces("shop", "ops")),
		avoids(hostname, "web"), avoids(zone, "db"), avoids(hostname, "cart", ofTeams("a")), avoids(zone, "", ofOtherVersions),
		avoids(hostname, "jobs", inNamespaces("ops")), avoids(hostname, "web", ofTeams()),
	}
}

func preferences() []func(*corev1.Pod) {
	return []func(*corev1.Pod){
		spreads(zone, 1, anyway), spreads(hostname, 1, anyway), spreads("nowhere", 1, anyway),
		prefers(10, in(zone, "us-east-1a")), prefers(50, in(zone, "us-east-1z")), prefers(1, in(capacityType, "on-demand")),
		prefers(5, in(corev1.LabelArchStable, "arm64")), prefers(100, in("team", "b")),
		wouldJoin(10, zone, ""), wouldJoin(20, hostname, ""), wouldJoin(5, hostname, "db"),
		wouldAvoid(10, hostname, ""), wouldAvoid(100, zone, ""), wouldAvoid(7, hostname, "web", ofTeams()),
	}
}

func drawWorld(t *rapid.T, d drawing) *world {
	w := &world{namespaces: namespaces, bound: map[string][]*corev1.Pod{}}
	catalogue, most := drawCatalogue(t, d), 5
	if d.tiny {
		most = 2
	}
	for i := range rapid.IntRange(1, most/2+1).Draw(t, "pools") {
		w.pools = append(w.pools, plan.Pool{NodePool: drawPool(t, d, fmt.Sprintf("pool-%d", i)), Types: catalogue})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "daemonsets") {
		name := fmt.Sprintf("daemon-%d", i)
		w.addDaemonSet(name, drawDaemon(t, name).Spec)
	}
	for i := range rapid.IntRange(0, most-1).Draw(t, "nodes") {
		n := drawNode(t, d, w.pools[0].NodePool, catalogue, i)
		if w.nodeFor(n, func(int) int { return 0 }) != nil {
			w.nodes = append(w.nodes, n)
		}
	}
	for _, name := range workloadNames[:rapid.IntRange(1, most).Draw(t, "workloads")] {
		drawWorkload(t, d, w, name)
	}
	return w
}

// drawCatalogue leaves some types out, and some offerings without capacity.
func drawCatalogue(t *rapid.T, d drawing) []*cloud.InstanceType {
	if d.tiny {
		return []*cloud.InstanceType{
			machineSpec{name: "m6i.large", cores: 2, memory: 8, pods: 29, price: 0.096, zones: threeZones[:2]}.instanceType(),
			machineSpec{name: "m6g.2xlarge", arch: "arm64", cores: 8, memory: 32, pods: 58, price: 0.308, zones: threeZones[:2]}.instanceType(),
		}
	}
	catalogue := smallCatalogue()
	if rapid.Bool().Draw(t, "all types") {
		return catalogue
	}
	kept := catalogue[:0]
	missing := oneOf(t, "zone that is short of spot", append(threeZones, ""))
	for _, typ := range catalogue {
		if rapid.IntRange(0, 2).Draw(t, "has type") == 0 {
			continue
		}
		for o := range typ.Offerings {
			if typ.Offerings[o].Zone == missing && typ.Offerings[o].CapacityType == "spot" {
				typ.Offerings[o].Available = false
			}
		}
		kept = append(kept, typ)
	}
	if len(kept) == 0 {
		return smallCatalogue()
	}
	return kept
}

func drawPool(t *rapid.T, d drawing, name string) *karpv1.NodePool {
	options := []func(*karpv1.NodePool){
		onDemand(),
		requires(capacityType, corev1.NodeSelectorOpIn, "spot"),
		requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m"),
		requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "5"),
		requires("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpLte, "16"),
		requires("karpenter.k8s.aws/instance-cpu", karpv1.NodeSelectorOpGte, "4"),
		requires(zone, corev1.NodeSelectorOpNotIn, "us-east-1a"),
		requires(zone, corev1.NodeSelectorOpIn, "us-east-1b"),
		requires("team", corev1.NodeSelectorOpIn, "a"),
		requires("team", corev1.NodeSelectorOpIn, "a", "b", "c"),
		requires("team", corev1.NodeSelectorOpExists),
		requires("slot", corev1.NodeSelectorOpIn, "1", "2", "3", "4", "5"),
		tainted("dedicated"), tainted("fussy", corev1.TaintEffectPreferNoSchedule),
		func(pool *karpv1.NodePool) {
			pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoExecute}}
		},
		weighs(10),
		func(pool *karpv1.NodePool) { pool.Spec.Template.Labels = map[string]string{"tier": "gold"} },
	}
	if !d.unlimited {
		options = append(options, limit(corev1.ResourceCPU, "24"), limit(karpv1.ResourceNodes, "3"))
	}
	if !d.anyChoice {
		options = append(options, minValues("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpExists, 3))
	}
	pool := nodePool(name)
	for range rapid.IntRange(0, 3).Draw(t, "pool options") {
		oneOf(t, "pool option", options)(pool)
	}
	return pool
}

// drawNode draws a running node, or a claim without a machine.
func drawNode(t *rapid.T, d drawing, pool *karpv1.NodePool, catalogue []*cloud.InstanceType, i int) *plan.Node {
	typ := oneOf(t, "node type", catalogue)
	o := oneOf(t, "node offering", typ.Offerings)
	name := fmt.Sprintf("node-%d", i)
	n := &plan.Node{Claim: "claim-" + name, Pool: "pool-0", InstanceType: typ.Name}
	if !d.settled && rapid.IntRange(0, 3).Draw(t, "in flight") == 0 {
		zones, kinds := []string{o.Zone}, []string{typ.Name, oneOf(t, "other type", catalogue).Name}
		if other := typ.Offerings[0].Zone; other != o.Zone {
			zones = append(zones, other)
		}
		n.InstanceType = ""
		n.Labels, n.Taints, n.StartupTaints = claimLabels(pool), pool.Spec.Template.Spec.Taints, pool.Spec.Template.Spec.StartupTaints
		n.Labels[capacityType] = o.CapacityType
		if len(zones) == 1 {
			n.Labels[zone] = o.Zone
		}
		n.Requirements = model.Term{among(corev1.LabelInstanceTypeStable, kinds...), among(zone, zones...), among(capacityType, o.CapacityType)}
		return n
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.Claim, Labels: map[string]string{karpv1.NodePoolLabelKey: "pool-0"}}}
	for _, key := range []string{"team", "slot"} {
		if value := rapid.SampledFrom([]string{"", "a", "1"}).Draw(t, "node "+key); value != "" {
			claim.Labels[key] = value
		}
	}
	n.Name, n.Labels = name, nodeOf(claim, typ, o.Zone, o.CapacityType).Labels
	n.Labels[hostname] = name
	n.Capacity, n.Allocatable = plan.ResourcesOf(typ.Capacity), plan.ResourcesOf(typ.Allocatable)
	n.Zone, n.CapacityType = o.Zone, o.CapacityType
	n.Launched, n.Registered, n.Initialized, n.Ready = true, true, true, true
	switch rapid.IntRange(0, 7).Draw(t, "state") {
	case 0:
		n.Cordoned = true
		n.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	case 1:
		n.Deleting = true
		if in := oneOf(t, "ends in", []time.Duration{0, time.Minute, 24 * time.Hour}); in > 0 {
			n.EndsAt = now.Add(in)
		}
	case 2:
		n.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
	case 3:
		n.Initialized = false
		n.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

// claimLabels returns the labels of every claim of a pool.
func claimLabels(pool *karpv1.NodePool) map[string]string {
	labels := map[string]string{karpv1.NodePoolLabelKey: pool.Name}
	maps.Copy(labels, pool.Spec.Template.Labels)
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if !strings.Contains(r.Key, "/") && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	return labels
}

// drawWorkload adds a Deployment: some of its pods wait, others run where there is room.
func drawWorkload(t *rapid.T, d drawing, w *world, name string) {
	shape := drawPod(t, name)
	shape.Namespace = oneOf(t, "namespace", []string{"default", "default", "shop", "ops"})
	app(name)(shape)
	for range rapid.IntRange(0, 2).Draw(t, "relations") {
		if len(d.relations) > 0 {
			oneOf(t, "relation", d.relations)(shape)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "preferences") {
		if len(d.preferences) > 0 {
			oneOf(t, "preference", d.preferences)(shape)
		}
	}
	two := rapid.IntRange(0, 3).Draw(t, "versions") == 0
	replica := func(kind string, i int) *corev1.Pod {
		pod := shape.DeepCopy()
		pod.Name = fmt.Sprintf("%s-%s-%d", name, kind, i)
		pod.UID = types.UID("uid-" + pod.Name)
		pod.Labels["version"] = "1"
		if two && i%2 == 1 {
			pod.Labels["version"] = "2"
		}
		return pod
	}
	for i := range rapid.IntRange(1, d.replicas).Draw(t, "replicas") {
		w.pods = append(w.pods, replica("new", i))
	}
	if len(w.nodes) == 0 {
		return
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "running") {
		pod := replica("old", i)
		pod.Status.Conditions = nil
		n := oneOf(t, "runs on", w.nodes)
		if n.Name == "" || !w.hasRoom(n, pod) {
			continue
		}
		pod.Spec.NodeName = n.Name
		switch rapid.IntRange(0, 9).Draw(t, "pod state") {
		case 0:
			pod.DeletionTimestamp = &metav1.Time{Time: now}
		case 1:
			pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}
		}
		w.bound[n.Key()] = append(w.bound[n.Key()], pod)
	}
}

// hasRoom reports whether a pod could have been bound to a node if other pods' rules did not matter.
func (w *world) hasRoom(n *plan.Node, pod *corev1.Pod) bool {
	s := newStage(nil)
	node := w.nodeFor(n, nil)
	node.Spec.Taints = nil
	sp := s.add(node)
	w.runDaemons(s, sp, nil)
	for _, other := range append(slices.Clone(w.bound[n.Key()]), pod) {
		sh := s.shapeOf(other)
		if sp.refusesAlone(sh) != "" {
			return false
		}
		sp.put(sh)
	}
	return true
}

// oneOf draws a value and logs only its index, because values are long.
func oneOf[T any](t *rapid.T, label string, values []T) T {
	return values[rapid.IntRange(0, len(values)-1).Draw(t, label)]
}

// drawPod draws what a pod asks of its node.
func drawPod(t *rapid.T, name string) *corev1.Pod {
	pod := newPod(name, oneOf(t, "cpu", []string{"0", "100m", "500m", "1", "1700m", "3", "7"}),
		oneOf(t, "memory", []string{"0", "64Mi", "1Gi", "3Gi", "11Gi", "40Gi"}))
	options := []func(*corev1.Pod){
		selects(corev1.LabelArchStable, "arm64"),
		selects(zone, "us-east-1b"), selects(zone, "us-east-1c"), selects(zone, "us-east-1a"),
		selects(capacityType, "on-demand"),
		selects("team", "a"), selects("team", "b"), selects("tier", "gold"),
		needs(expr("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpNotIn, "m")),
		needs(expr("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpGt, "7")),
		needs(both(expr("karpenter.k8s.aws/instance-cpu", corev1.NodeSelectorOpLt, "9"), expr("team", corev1.NodeSelectorOpExists))),
		needs(expr("karpenter.k8s.aws/instance-gpu-count", corev1.NodeSelectorOpDoesNotExist)),
		needs(both(in(zone, "us-east-1c"), in(capacityType, "spot")), in(corev1.LabelArchStable, "arm64")),
		needs(expr("team", corev1.NodeSelectorOpNotIn, "a")),
		needs(in(hostname, "node-0")),
		func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpEqual})
		},
		func(pod *corev1.Pod) {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
		},
		takesPort(8080),
		asks("nvidia.com/gpu", "1"),
		func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}}}}
		},
	}
	for range rapid.IntRange(0, 2).Draw(t, "pod options") {
		oneOf(t, "pod option", options)(pod)
	}
	return pod
}

// drawDaemon draws the pod of a DaemonSet. It is bound to no zones and no labels that pools leave open, because the
// planner counts such DaemonSets wherever a machine may get the label.
func drawDaemon(t *rapid.T, name string) *corev1.Pod {
	pod := newPod(name, oneOf(t, "cpu", []string{"0", "100m", "500m"}), oneOf(t, "memory", []string{"0", "64Mi", "1Gi"}))
	oneOf(t, "daemon option", []func(*corev1.Pod){
		func(*corev1.Pod) {},
		selects(corev1.LabelArchStable, "arm64"), selects(capacityType, "on-demand"), selects("tier", "gold"),
		needs(expr("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpNotIn, "m")),
		tolerates(""), takesPort(8080),
	})(pod)
	return pod
}

// addDaemonSet adds a DaemonSet whose pods have the spec.
func (w *world) addDaemonSet(name string, spec corev1.PodSpec) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: types.UID(name)}}
	set.Spec.Template.Spec = spec
	w.daemonSets = append(w.daemonSets, set)
	w.daemons = append(w.daemons, w.interner().DaemonSet(set))
}
