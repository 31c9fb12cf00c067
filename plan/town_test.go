package plan_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// town is a cluster that runs: what is planned for it is built, and pods are bound by a kube-scheduler that prefers
// empty nodes. Its pods need only room.
type town struct {
	*world
	serial int
	moved  int
	// doubted is the number of nodes that Confirm kept at the last check.
	doubted int
}

func newTown(w *world) *town {
	w.bound = map[string][]*corev1.Pod{}
	return &town{world: w}
}

// build adds the node that a claim becomes: of the cheapest type, in the cheapest zone.
func (tn *town) build(t fataler, c *plan.Claim) *plan.Node {
	t.Helper()
	tn.serial++
	name := fmt.Sprintf("node-%05d", tn.serial)
	typ := tn.poolOf(c.NodePool).typeNamed(c.InstanceTypes[0])
	zone, least := "", 0.0
	for _, z := range c.Zones {
		if price, ok := offeringOf(typ, z, c.CapacityType); ok && (zone == "" || price < least) {
			zone, least = z, price
		}
	}
	object, err := c.NodeClaim(tn.poolOf(c.NodePool).NodePool, "claim-"+name)
	if err != nil {
		t.Fatal(err)
	}
	return tn.place(object, typ, zone, c.CapacityType, name)
}

func (tn *town) place(claim *karpv1.NodeClaim, typ *cloud.InstanceType, zone, capacity, name string) *plan.Node {
	labels := nodeOf(claim, typ, zone, capacity).Labels
	labels[hostname] = name
	n := &plan.Node{Name: name, Claim: claim.Name, Pool: claim.Labels[karpv1.NodePoolLabelKey], Labels: labels, InstanceType: typ.Name, Zone: zone, CapacityType: capacity,
		Capacity: plan.ResourcesOf(typ.Capacity), Allocatable: plan.ResourcesOf(typ.Allocatable), Launched: true, Registered: true, Initialized: true, Ready: true,
		Created: now, InitializedAt: now.Add(-1)}
	tn.nodes = append(tn.nodes, n)
	return n
}

func (tn *town) free(n *plan.Node) plan.Resources {
	free := n.Allocatable
	for _, pod := range tn.bound[n.Key()] {
		r := tn.interner().Pod(pod).Class.Requests
		free.CPU, free.Memory, free.Pods = free.CPU-r.CPU, free.Memory-r.Memory, free.Pods-1
	}
	return free
}

// bind binds a pod as a kube-scheduler does, and reports whether it could.
func (tn *town) bind(pod *corev1.Pod) bool {
	r := tn.interner().Pod(pod).Class.Requests
	var best *plan.Node
	most := -1.0
	for _, n := range tn.nodes {
		if n.Deleting {
			continue
		}
		free := tn.free(n)
		if free.CPU < r.CPU || free.Memory < r.Memory || free.Pods < 1 {
			continue
		}
		score := float64(free.CPU-r.CPU)/float64(n.Allocatable.CPU) + float64(free.Memory-r.Memory)/float64(n.Allocatable.Memory)
		if score > most {
			best, most = n, score
		}
	}
	if best == nil {
		return false
	}
	tn.settle(pod, best)
	return true
}

func (tn *town) settle(pod *corev1.Pod, n *plan.Node) {
	pod.Spec.NodeName = n.Name
	pod.Status.Conditions = nil
	tn.bound[n.Key()] = append(tn.bound[n.Key()], pod)
}

// begin launches the replacements of commands, and marks and returns the nodes that are removed.
func (tn *town) begin(t fataler, commands []plan.Command) map[string]bool {
	t.Helper()
	going := map[string]bool{}
	for i := range commands {
		id := fmt.Sprintf("r%d-%d", tn.serial, i)
		for j := range commands[i].Replacements {
			n := tn.build(t, &commands[i].Replacements[j])
			n.Replacement = id
		}
		for _, key := range commands[i].Nodes {
			if going[key] {
				t.Fatalf("node %s goes twice", key)
			}
			n := tn.nodeNamed(key)
			going[key], n.Replacement, n.Disrupted, n.Deleting = true, id, true, true
		}
	}
	return going
}

// carryOut carries out all commands at once. It returns how many pods found no room at first.
func (tn *town) carryOut(t fataler, commands []plan.Command) (late int) {
	t.Helper()
	going := tn.begin(t, commands)
	for i := range commands {
		tn.doubted += len(plan.Confirm(tn.input(), commands[i]))
	}
	var large, small, left []*corev1.Pod
	for key := range going {
		for _, pod := range tn.bound[key] {
			if takesMuch(pod, tn.nodeNamed(key)) {
				large = append(large, pod)
			} else {
				small = append(small, pod)
			}
		}
		delete(tn.bound, key)
	}
	tn.nodes = slices.DeleteFunc(tn.nodes, func(n *plan.Node) bool { return going[n.Key()] })
	for _, moving := range [][]*corev1.Pod{large, small} {
		slices.SortFunc(moving, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
		rand.New(rand.NewPCG(1, uint64(len(moving)))).Shuffle(len(moving), func(i, j int) { moving[i], moving[j] = moving[j], moving[i] })
		for _, pod := range moving {
			tn.moved++
			if !tn.bind(pod) {
				left = append(left, pod)
			}
		}
	}
	tn.provision(t, left)
	return len(left)
}

// takesMuch reports whether a pod takes a fourth of a node or more, and is therefore evicted before others.
func takesMuch(pod *corev1.Pod, n *plan.Node) bool {
	requests := pod.Spec.Containers[0].Resources.Requests
	return 4*requests.Cpu().MilliValue() >= n.Allocatable.CPU || 4*requests.Memory().Value() >= n.Allocatable.Memory
}

// provision buys nodes for pods.
func (tn *town) provision(t fataler, pods []*corev1.Pod) {
	t.Helper()
	if len(pods) == 0 {
		return
	}
	byUID := map[string]*corev1.Pod{}
	for _, pod := range pods {
		pod.Spec.NodeName = ""
		pod.Status.Conditions = newPod("x", "1", "1").Status.Conditions
		byUID[string(pod.UID)] = pod
	}
	tn.pods = pods
	in := tn.input()
	in.Nominates = true
	p := plan.Pack(in)
	tn.pods = nil
	for _, placement := range p.Placements {
		tn.settle(byUID[string(placement.Pod.UID)], tn.nodeNamed(placement.Node))
	}
	for i := range p.Claims {
		n := tn.build(t, &p.Claims[i])
		for _, uid := range p.Claims[i].Pods {
			tn.settle(byUID[string(uid)], n)
		}
	}
	if len(p.Unplaced) > 0 {
		t.Fatalf("pod %s finds no node: %v", p.Unplaced[0].Pod.Key(), p.Unplaced[0].Reasons)
	}
}

func (tn *town) nodeNamed(key string) *plan.Node {
	return tn.nodes[slices.IndexFunc(tn.nodes, func(n *plan.Node) bool { return n.Key() == key })]
}

func (tn *town) price() float64 {
	sum := 0.0
	for _, n := range tn.nodes {
		price, _ := offeringOf(tn.poolOf(n.Pool).typeNamed(n.InstanceType), n.Zone, n.CapacityType)
		sum += price
	}
	return sum
}

// scaleDown deletes pods, and the nodes left empty.
func (tn *town) scaleDown(keep func(*corev1.Pod) bool) {
	for _, n := range tn.nodes {
		tn.bound[n.Key()] = slices.DeleteFunc(tn.bound[n.Key()], func(pod *corev1.Pod) bool { return !keep(pod) })
	}
	tn.nodes = slices.DeleteFunc(tn.nodes, func(n *plan.Node) bool { return len(tn.bound[n.Key()]) == 0 })
}

// kwokCatalogue is a market of three shapes whose prices have no discount for size.
func kwokCatalogue() []*cloud.InstanceType {
	var catalogue []*cloud.InstanceType
	for _, family := range []struct {
		name   string
		memory float64
	}{{"c", 2}, {"s", 4}, {"m", 8}} {
		for _, cores := range []float64{1, 2, 4, 8, 16} {
			if memory := family.memory * cores; memory >= 4 {
				catalogue = append(catalogue, machineSpec{name: fmt.Sprintf("%s-%dx.large", family.name, int(cores)), cores: cores, memory: memory / 0.925, pods: 16 * int64(cores),
					price: 0.025*cores + 0.001*memory, kinds: []string{"on-demand"}}.instanceType())
			}
		}
	}
	return catalogue
}

// When a third of the pods go, the cluster shrinks to little more than what the rest would cost from scratch, with few
// moves.
func TestTownShrinks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 5))
		tn := newTown(&world{pools: []plan.Pool{{NodePool: nodePool("default", onDemand()), Types: kwokCatalogue()}}})
		tn.provision(t, slices.Concat(manyPods(500, "small", "900m", "3100Mi"), manyPods(500, "large", "3500m", "28Gi")))
		before := tn.price()
		gone := map[string]bool{}
		for _, kind := range []string{"small", "large"} {
			for _, i := range r.Perm(500)[:150] {
				gone[fmt.Sprintf("%s-%04d", kind, i)] = true
			}
		}
		tn.scaleDown(func(pod *corev1.Pod) bool { return !gone[pod.Name] })
		rounds, late := 0, 0
		for ; rounds < 12; rounds++ {
			d := plan.Disrupt(tn.input())
			if len(d.Commands) == 0 {
				break
			}
			late += tn.carryOut(t, d.Commands)
		}
		scratch := newTown(&world{pools: tn.pools})
		scratch.provision(t, tn.clones())
		t.Logf("%.2f $/h before, %.2f after %d rounds, %d moves, %d pods had to wait, %d nodes doubted; %.2f from scratch", before, tn.price(), rounds, tn.moved, late, tn.doubted, scratch.price())
		if tn.price() > 1.03*scratch.price() {
			t.Errorf("the rest costs %.2f $/h, and %.2f from scratch", tn.price(), scratch.price())
		}
		if tn.moved > 250 || late > 15 {
			t.Errorf("%d pods moved, %d of them had to wait", tn.moved, late)
		}
		if tn.doubted > 3 {
			t.Errorf("%d nodes were to stay at the last look", tn.doubted)
		}
		if rounds == 12 {
			t.Error("it does not come to rest")
		}
	}
}

// clones returns copies of the pods without a node.
func (tn *town) clones() []*corev1.Pod {
	var clones []*corev1.Pod
	for _, pods := range tn.bound {
		for _, pod := range pods {
			clones = append(clones, pod.DeepCopy())
		}
	}
	slices.SortFunc(clones, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return clones
}
