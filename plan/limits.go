package plan

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// allowance is what a NodePool's limit on one resource leaves for new nodes. Cpu is in thousandths.
type allowance struct {
	name  string
	limit int64
	left  int64
	// remote says that the pods that wait are very unlikely to come near the limit.
	remote bool
}

// budgetOf works out what a pool's limits leave when all its nodes, those on their way and those on their way out
// included, are counted with their capacity.
func budgetOf(s *seller, snapshot *Snapshot) []allowance {
	limits := ResourcesOf(corev1.ResourceList(s.NodePool.Spec.Limits))
	var budget []allowance
	for _, name := range sortedKeys(resourceNames(s.NodePool.Spec.Limits)) {
		amount := limits.Get(name)
		budget = append(budget, allowance{name: name, limit: amount, left: amount})
	}
	if len(budget) == 0 {
		return nil
	}
	for _, n := range snapshot.Nodes {
		if n.Pool != s.name || n.Claim == "" {
			continue
		}
		capacity := n.Capacity
		if capacity.CPU == 0 {
			capacity = largestOf(s.Types, n)
		}
		for i := range budget {
			budget[i].left -= countOf(budget[i].name, capacity)
		}
	}
	return budget
}

// manifold is how many times more than pods ask for a plan may take of a resource without anybody wondering: machines that
// are bought for their memory have idle cores.
const manifold = 8

// tellRemote finds out which limits are remote. That is a guess about limits on cores and memory, and is taken back where
// it was wrong (see market.priceByLimits).
func (s *seller) tellRemote(machines []machine, pods int64, demand Resources) {
	var largest Resources
	for i := s.first; i < s.last; i++ {
		largest = largest.Max(machines[i].size)
	}
	for i := range s.budget {
		a := &s.budget[i]
		each := countOf(a.name, largest)
		a.remote = each <= 0 || a.left/each >= pods
		if a.name == string(corev1.ResourceCPU) || a.name == string(corev1.ResourceMemory) {
			a.remote = a.remote || a.left >= manifold*(demand.Get(a.name)+each)
		}
	}
}

// nothingRemote takes all guesses about limits back.
func (m *market) nothingRemote() {
	for _, s := range m.sellers {
		for i := range s.budget {
			s.budget[i].remote = false
		}
	}
}

// demandOf is how many pods may need a node, and what they request together. Pods that are too large for every machine
// will not use up any limit.
func demandOf(snapshot *Snapshot, machines []machine) (pods int64, sum Resources) {
	var largest Resources
	for i := range machines {
		largest = largest.Max(machines[i].size)
	}
	add := func(from []*Pod) {
		for _, pod := range from {
			if pod.Class.Requests.CPU > largest.CPU || pod.Class.Requests.Memory > largest.Memory {
				continue
			}
			pods++
			sum.CPU = saturatingAdd(sum.CPU, pod.Class.Requests.CPU)
			sum.Memory = saturatingAdd(sum.Memory, pod.Class.Requests.Memory)
		}
	}
	add(snapshot.Pending)
	for _, n := range snapshot.Nodes {
		if n.Deleting {
			add(n.Pods)
		}
	}
	return pods, sum
}

func resourceNames(limits karpv1.Limits) map[string]struct{} {
	names := map[string]struct{}{}
	for name := range limits {
		names[string(name)] = struct{}{}
	}
	return names
}

// countOf is how much of a limited resource one node of this capacity uses up.
func countOf(name string, capacity Resources) int64 {
	if name == string(karpv1.ResourceNodes) {
		return 1
	}
	return capacity.Get(name)
}

// largestOf is the largest capacity that a claim without a machine may still come to. What the claim requires of other
// labels than its instance type's, such as the capacity type, says nothing about that.
func largestOf(types []*cloud.InstanceType, n *Node) Resources {
	var largest Resources
	conditions := claimConditions(n)
	for _, typ := range types {
		ofType := slices.DeleteFunc(slices.Clone(conditions), func(c condition) bool {
			_, labelled := typ.Labels[c.key]
			return !labelled && c.key != corev1.LabelInstanceTypeStable
		})
		if ofType.admitsType(typ, nil) {
			largest = largest.Max(ResourcesOf(typ.Capacity))
		}
	}
	return largest
}

// affordable says how many nodes of this capacity the pool's limits allow.
func (s *seller) affordable(capacity Resources) int {
	count := int64(math.MaxInt32)
	for i := range s.budget {
		a := &s.budget[i]
		if each := countOf(a.name, capacity); each > 0 {
			count = min(count, max(0, a.left)/each)
		}
	}
	return int(count)
}

// spend takes n nodes of this capacity out of the budget.
func (s *seller) spend(capacity Resources, n int) {
	for i := range s.budget {
		s.budget[i].left -= countOf(s.budget[i].name, capacity) * int64(n)
	}
}

// String is for people: "limit cpu 1000 leaves 4".
func (a *allowance) String() string {
	return fmt.Sprintf("limit %s %s leaves %s", a.name, quantity(a.name, a.limit), quantity(a.name, max(0, a.left)))
}
