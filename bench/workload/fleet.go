package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

// fleetPool is the name of the pool that Fleet's nodes belong to.
const fleetPool = "default"

// old is the percentage of nodes from an older template.
const old = 1

// Use describes how full a fleet's nodes are.
type Use struct {
	// Least and Most bound the share of a node's cores or memory, whichever is scarcer, that pods request, apart from what
	// the machines' sizes leave over.
	Least, Most float64
	// Filled says that the remaining room is filled with further pods, and that no node is empty.
	Filled bool
}

// The uses of fleets: one that many pods have left, and one with hardly any room.
var (
	Loose = Use{Least: 0.4, Most: 0.95}
	Tight = Use{Least: 1, Most: 1, Filled: true}
)

// Fleet returns a cluster in which pods have come and gone: count nodes with podsPerNode pods each on average, of
// Deployments of thirty replicas. Unless the use is Filled, four in a hundred nodes run nothing. A sixth of the Deployments
// are spread over zones, a twelfth have their pods on separate hosts, a sixth have a PodDisruptionBudget that allows one
// eviction, and one in two hundred has one that allows none. One node in a hundred has drifted. The pool's budgets allow
// everything at once, so that every node is considered for every reason.
func Fleet(count, podsPerNode int, use Use, catalogue []*cloud.InstanceType) *compare.Question {
	d := newDraw(23)
	machines := wholesale(catalogue)
	apps := d.applications(max(12, count*podsPerNode/30))
	nodes := make([]compare.Node, count)
	busy, pods, filling := 0, 0, 0
	for i := range nodes {
		zone := fmt.Sprintf("us-east-1%c", 'a'+i%3)
		if i%25 == 24 && !use.Filled {
			nodes[i] = fleetNode(d, i, zone, machines[d.IntN(len(machines))])
			continue
		}
		busy++
		upTo := count * podsPerNode * busy / (count - count/25)
		if use.Filled {
			upTo = podsPerNode * busy
		}
		picked := d.pick(apps, max(1, upTo-pods-filling/busy), i%3)
		share := use.Least + (use.Most-use.Least)*d.Float64()
		machine := holding(machines, picked, share)
		if use.Filled {
			more := d.filling(apps, machine, picked, i%3)
			picked, filling = append(picked, more...), filling+len(more)
		}
		pods += len(picked)
		nodes[i] = fleetNode(d, i, zone, machine)
		for _, a := range picked {
			nodes[i].Pods = append(nodes[i].Pods, a.bound(nodes[i].Node.Name))
		}
	}
	pool := Pool(fleetPool, Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand), func(p *karpv1.NodePool) {
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	})
	q := Ask(fmt.Sprintf("fleet-%d", count), nil, catalogue, pool)
	q.Nodes = nodes
	for i, a := range apps {
		switch {
		case i%200 == 7:
			q.Budgets = append(q.Budgets, a.budget(0))
		case i%6 == 3:
			q.Budgets = append(q.Budgets, a.budget(1))
		}
	}
	return q
}

// application is a Deployment of the fleet.
type application struct {
	name        string
	cpu, memory int64 // thousandths of a core, MiB
	zonal, solo bool
	pods        int
	inZone      [3]int
}

func (d draw) applications(count int) []*application {
	apps := make([]*application, count)
	for i := range apps {
		k := one(d, web, web, services, jvm, batch)
		apps[i] = &application{name: fmt.Sprintf("%s-%04d", k.name, i), cpu: one(d, k.cpu...), memory: one(d, k.memory...), zonal: i%6 == 1, solo: i%12 == 5}
	}
	return apps
}

// pick draws pods for a node in a zone such that none of their rules is broken.
func (d draw) pick(apps []*application, count, zone int) []*application {
	var picked []*application
	for len(picked) < count {
		a := apps[d.IntN(len(apps))]
		if a.solo && slices.Contains(picked, a) || a.zonal && a.inZone[zone] > min(a.inZone[0], a.inZone[1], a.inZone[2]) {
			continue
		}
		a.inZone[zone]++
		picked = append(picked, a)
	}
	return picked
}

// filling draws further pods for a machine until a dozen in a row do not fit.
func (d draw) filling(apps []*application, machine *cloud.InstanceType, picked []*application, zone int) []*application {
	cpu, memory := machine.Allocatable.Cpu().MilliValue(), machine.Allocatable.Memory().Value()>>20
	for _, a := range picked {
		cpu, memory = cpu-a.cpu, memory-a.memory
	}
	var more []*application
	for misses := 0; misses < 12 && int64(len(picked)+len(more)) < machine.Allocatable.Pods().Value(); {
		a := d.pick(apps, 1, zone)[0]
		if a.cpu > cpu || a.memory > memory || a.solo && (slices.Contains(picked, a) || slices.Contains(more, a)) {
			a.inZone[zone]--
			misses++
			continue
		}
		cpu, memory, more = cpu-a.cpu, memory-a.memory, append(more, a)
	}
	return more
}

// bound returns another pod of the application, on a node.
func (a *application) bound(node string) *corev1.Pod {
	a.pods++
	labels := map[string]string{"app": a.name}
	p := pod("default", fmt.Sprintf("%s-%03d", a.name, a.pods), corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(a.cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(a.memory<<20, resource.BinarySI),
	}, labels)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.name, UID: "set-" + p.UID, Controller: &yes}}
	if a.zonal {
		spreading(corev1.LabelTopologyZone)(draw{}, p)
	}
	if a.solo {
		apart(draw{}, p)
	}
	p.Spec.NodeName = node
	p.CreationTimestamp = metav1.NewTime(moment.Add(-24 * time.Hour))
	started := metav1.NewTime(moment.Add(-24 * time.Hour))
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

// budget returns a PodDisruptionBudget that allows this many of the application's pods to be evicted at once.
func (a *application) budget(allows int32) *policyv1.PodDisruptionBudget {
	pods, most := int32(a.pods), intstr.FromInt32(allows)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: a.name, UID: types.UID("budget-" + a.name), Generation: 1},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}},
		Status: policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: 1, DisruptionsAllowed: allows, CurrentHealthy: pods, DesiredHealthy: pods - allows, ExpectedPods: pods},
	}
}

// wholesale returns the machines without devices that are sold on demand in each zone, with 4 to 192 cores, the cheapest
// first.
func wholesale(catalogue []*cloud.InstanceType) []*cloud.InstanceType {
	var machines []*cloud.InstanceType
	for _, t := range catalogue {
		if cores := t.Capacity.Cpu().Value(); cores >= 4 && cores <= 192 && !devices(t) && fixedPrice(t) > 0 {
			machines = append(machines, t)
		}
	}
	slices.SortFunc(machines, func(a, b *cloud.InstanceType) int {
		return cmp.Or(cmp.Compare(fixedPrice(a), fixedPrice(b)), cmp.Compare(a.Name, b.Name))
	})
	return machines
}

// fixedPrice returns a machine's price per hour, or 0 if it is not sold on demand in three zones.
func fixedPrice(t *cloud.InstanceType) float64 {
	zones, price := 0, 0.0
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType == karpv1.CapacityTypeOnDemand {
			zones, price = zones+1, o.Price
		}
	}
	if zones < 3 {
		return 0
	}
	return price
}

// holding returns the cheapest machine of which the pods take no more than a share, or the largest one if there is none.
func holding(machines []*cloud.InstanceType, picked []*application, share float64) *cloud.InstanceType {
	var cpu, memory int64
	for _, a := range picked {
		cpu, memory = cpu+a.cpu, memory+a.memory
	}
	for _, m := range machines {
		if float64(cpu) <= share*float64(m.Allocatable.Cpu().MilliValue()) && float64(memory) <= share*float64(m.Allocatable.Memory().Value()>>20) &&
			int64(len(picked)) <= m.Allocatable.Pods().Value() {
			return m
		}
	}
	return slices.MaxFunc(machines, func(a, b *cloud.InstanceType) int { return a.Allocatable.Cpu().Cmp(*b.Allocatable.Cpu()) })
}

// fleetNode returns a node that has existed for two days and may be consolidated.
func fleetNode(d draw, i int, zone string, t *cloud.InstanceType) compare.Node {
	before := metav1.NewTime(moment.Add(-48 * time.Hour))
	n := Joined(fmt.Sprintf("node-%04d", i), fleetPool, t, cloud.Offering{Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand}, before.Time)
	state := func(kind string) {
		n.Claim.Status.Conditions = append(n.Claim.Status.Conditions,
			metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: before})
	}
	state(karpv1.ConditionTypeConsolidatable)
	if d.IntN(100) < old {
		state(karpv1.ConditionTypeDrifted)
	}
	n.Claim.Status.LastPodEventTime = before
	return n
}
