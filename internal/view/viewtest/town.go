// Package viewtest has a made-up cluster of any size that changes as a busy one does, for tests and measurements of views.
package viewtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

// Epoch is when a town begins.
var Epoch = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// Town is a made-up cluster. The same seed gives the same town.
type Town struct {
	random    *rand.Rand
	now       time.Time
	snapshot  plan.Snapshot
	classes   []*plan.Class
	workloads []*plan.Labels
	made      int
}

var (
	zones    = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	pools    = []string{"batch", "default", "web"}
	machines = []struct {
		name  string
		cores int64
		price float64
	}{{"c6a.2xlarge", 8, 0.306}, {"m5.xlarge", 4, 0.192}, {"m6g.4xlarge", 16, 0.616}, {"r5.2xlarge", 8, 0.504}}
)

// New returns a town with so many nodes and pods; one in a hundred pods waits for a node.
func New(seed uint64, nodes, pods int) *Town {
	t := &Town{random: rand.New(rand.NewPCG(seed, 1)), now: Epoch}
	for i := range 12 {
		cores := int64(100 * (1 + i%6))
		t.classes = append(t.classes, &plan.Class{ID: fmt.Sprint(i), Requests: plan.Resources{CPU: cores, Memory: cores * 4 << 20, Pods: 1}})
	}
	for i := range max(1, pods/40) {
		t.workloads = append(t.workloads, &plan.Labels{Namespace: fmt.Sprintf("team-%d", i%17), Set: map[string]string{"app": fmt.Sprintf("app-%d", i), "pod-template-hash": "5d9c7b"}})
	}
	for _, name := range pools {
		t.snapshot.NodePools = append(t.snapshot.NodePools, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: karpv1.NodePoolSpec{
			Disruption: karpv1.Disruption{Budgets: []karpv1.Budget{{Nodes: "10%"}}}}})
	}
	for range nodes {
		t.snapshot.Nodes = append(t.snapshot.Nodes, t.node())
	}
	for i := range pods {
		if pod := t.pod(); i%100 == 0 || nodes == 0 {
			pod.Unschedulable = i%200 == 0
			t.snapshot.Pending = append(t.snapshot.Pending, pod)
		} else {
			t.bind(pod, t.roomFor(pod))
		}
	}
	t.sort()
	return t
}

// Prices are those of the town's machines; spot costs 40 % of on demand.
func Prices() view.PriceList {
	list := view.PriceList{}
	for _, machine := range machines {
		for _, zone := range zones {
			list[cloud.OfferingKey{InstanceType: machine.name, Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand}] = machine.price
			list[cloud.OfferingKey{InstanceType: machine.name, Zone: zone, CapacityType: karpv1.CapacityTypeSpot}] = machine.price * 0.4
		}
	}
	return list
}

// Snapshot returns the town as it is. Nodes and pods that have not changed are the same pointers as before.
func (t *Town) Snapshot() *plan.Snapshot {
	s := t.snapshot
	s.Time = t.now
	s.Nodes, s.Pending = slices.Clone(s.Nodes), slices.Clone(s.Pending)
	return &s
}

// Reasons say of each pod for which there is no node that it is too large.
func (t *Town) Reasons() map[types.UID]string {
	reasons := map[types.UID]string{}
	for _, pod := range t.snapshot.Pending {
		if pod.Unschedulable {
			reasons[pod.UID] = "NodePool default: cpu 5000 is more than any instance type leaves for pods (382.97)"
		}
	}
	return reasons
}

// Step lets a second pass in which so many things happen: pods come, become ready, move and go, and nodes come and go.
func (t *Town) Step(events int) {
	t.now = t.now.Add(time.Second)
	for range events {
		t.happen()
	}
	t.sort()
}

func (t *Town) happen() {
	if len(t.snapshot.Nodes) == 0 {
		t.snapshot.Nodes = append(t.snapshot.Nodes, t.node())
		return
	}
	at := t.random.IntN(len(t.snapshot.Nodes))
	node := t.snapshot.Nodes[at]
	switch what := t.random.IntN(20); {
	case what == 0:
		t.snapshot.Nodes = append(t.snapshot.Nodes, t.node())
	case what == 1 && node.Deleting: // it is gone, and its pods wait
		for _, pod := range node.Pods {
			moved := *pod
			moved.Node, moved.UID, moved.Ready = "", t.uid(), false
			t.snapshot.Pending = append(t.snapshot.Pending, &moved)
		}
		t.snapshot.Nodes = slices.Delete(t.snapshot.Nodes, at, at+1)
	case what == 1:
		leaving := *node
		leaving.Deleting = true
		t.snapshot.Nodes[at] = &leaving
	case what < 5:
		t.snapshot.Pending = append(t.snapshot.Pending, t.pod())
	case what < 9 && len(t.snapshot.Pending) > 0:
		i := t.random.IntN(len(t.snapshot.Pending))
		bound := *t.snapshot.Pending[i]
		t.snapshot.Pending = slices.Delete(t.snapshot.Pending, i, i+1)
		t.bind(&bound, at)
	case what < 12 && len(node.Pods) > 0:
		t.replace(at, slices.Delete(slices.Clone(node.Pods), 0, 1))
	case len(node.Pods) > 0:
		i := t.random.IntN(len(node.Pods))
		changed := *node.Pods[i]
		changed.Ready = !changed.Ready
		kept := slices.Clone(node.Pods)
		kept[i] = &changed
		t.replace(at, kept)
	}
}

func (t *Town) replace(at int, pods []*plan.Pod) {
	changed := *t.snapshot.Nodes[at]
	changed.Pods = pods
	t.snapshot.Nodes[at] = &changed
}

func (t *Town) bind(pod *plan.Pod, at int) {
	pod.Node, pod.Ready, pod.Unschedulable = t.snapshot.Nodes[at].Name, true, false
	t.replace(at, append(slices.Clone(t.snapshot.Nodes[at].Pods), pod))
}

// roomFor returns a node that has room for a pod; any node where a few tries find none.
func (t *Town) roomFor(pod *plan.Pod) (at int) {
	for range 16 {
		at = t.random.IntN(len(t.snapshot.Nodes))
		left := t.snapshot.Nodes[at].Allocatable.CPU
		for _, there := range t.snapshot.Nodes[at].Pods {
			left -= there.Class.Requests.CPU
		}
		if left >= pod.Class.Requests.CPU {
			break
		}
	}
	return at
}

func (t *Town) uid() types.UID {
	t.made++
	return types.UID(fmt.Sprintf("%08d", t.made))
}

func (t *Town) node() *plan.Node {
	uid := t.uid()
	machine, pool, zone := machines[t.random.IntN(len(machines))], pools[t.random.IntN(len(pools))], zones[t.random.IntN(len(zones))]
	capacity := karpv1.CapacityTypeOnDemand
	if t.random.IntN(2) == 0 {
		capacity = karpv1.CapacityTypeSpot
	}
	name := fmt.Sprintf("ip-10-%d-%d-%d.ec2.internal", t.made>>16, t.made>>8&255, t.made&255)
	return &plan.Node{Name: name, UID: uid, Claim: fmt.Sprintf("%s-%s", pool, uid), ClaimUID: uid, Pool: pool, ProviderID: "aws:///" + zone + "/i-" + string(uid),
		InstanceType: machine.name, Zone: zone, CapacityType: capacity, Launched: true, Registered: true, Initialized: true, Ready: true,
		Labels:  map[string]string{corev1.LabelArchStable: "amd64", corev1.LabelTopologyZone: zone, corev1.LabelInstanceTypeStable: machine.name, karpv1.NodePoolLabelKey: pool},
		Created: t.now.Add(-time.Duration(t.random.IntN(72*60)) * time.Minute), Allocatable: plan.Resources{CPU: machine.cores*1000 - 80, Memory: machine.cores * 4 << 30, Pods: 58}}
}

func (t *Town) pod() *plan.Pod {
	i := t.random.IntN(len(t.workloads))
	labels, uid := t.workloads[i], t.uid()
	return &plan.Pod{UID: uid, Namespace: labels.Namespace, Name: fmt.Sprintf("%s-5d9c7b-%s", labels.Set["app"], uid), Labels: labels,
		OwnerKind: "ReplicaSet", OwnerName: labels.Set["app"] + "-5d9c7b", Class: t.classes[i%len(t.classes)], Created: t.now, Unschedulable: true}
}

// sort orders the lists as the mirror does.
func (t *Town) sort() {
	slices.SortFunc(t.snapshot.Nodes, func(a, b *plan.Node) int { return strings.Compare(a.Key(), b.Key()) })
	slices.SortFunc(t.snapshot.Pending, func(a, b *plan.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
}
