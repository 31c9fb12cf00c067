package workload

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/cloud"
)

// fleetPool is the name of the pool that Fleet's nodes belong to.
const fleetPool = "default"

// old is how many nodes of a hundred are of an older template.
const old = 1

// Fleet is a cluster in which pods have come and gone: so many nodes, with so many pods on each on average, of Deployments
// of thirty replicas. Four in a hundred nodes run nothing, and the pods of the others ask for between two fifths and nearly
// all of what their node has. A sixth of the Deployments are spread over zones, a twelfth have their pods on hosts of their
// own. One node in a hundred has drifted. Budgets allow everything at once, so that every node is looked at for every reason.
func Fleet(count, podsPerNode int, catalogue []*cloud.InstanceType) *duel.Question {
	d := newDraw(23)
	machines := wholesale(catalogue)
	apps := d.applications(max(12, count*podsPerNode/30))
	nodes := make([]duel.Node, count)
	busy, pods := 0, 0
	for i := range nodes {
		zone := fmt.Sprintf("us-east-1%c", 'a'+i%3)
		if i%25 == 24 {
			nodes[i] = fleetNode(d, i, zone, machines[d.IntN(len(machines))])
			continue
		}
		busy++
		upTo := count * podsPerNode * busy / (count - count/25)
		picked := d.pick(apps, upTo-pods, i%3)
		pods = upTo
		share := 0.4 + 0.55*d.Float64()
		nodes[i] = fleetNode(d, i, zone, holding(machines, picked, share))
		for _, a := range picked {
			nodes[i].Pods = append(nodes[i].Pods, a.bound(nodes[i].Node.Name))
		}
	}
	pool := Pool(fleetPool, Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand), func(p *karpv1.NodePool) {
		p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	})
	q := Ask(fmt.Sprintf("fleet-%d", count), nil, catalogue, pool)
	q.Nodes = nodes
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

// pick draws the pods of a node in a zone, such that no rule of theirs is broken.
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

// bound is one more pod of the application, on a node.
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

// wholesale are the machines of current families without devices that are sold on demand in each zone, 4 to 192 cores, the
// cheapest first.
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

// fixedPrice is a machine's price per hour, 0 where it is not sold on demand in three zones.
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

// holding is the cheapest machine of which the pods take no more than a share.
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

// fleetNode is a node that has been there for two days and may be consolidated.
func fleetNode(d draw, i int, zone string, t *cloud.InstanceType) duel.Node {
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
