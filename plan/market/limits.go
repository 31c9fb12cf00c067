package market

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan/model"
)

// budgetOf computes what a pool's limits leave. All nodes of the pool count with their capacity, including those that are
// still coming up and those that are being removed.
func budgetOf(s *Seller, snapshot *model.Snapshot) []Allowance {
	limits := model.ResourcesOf(corev1.ResourceList(s.NodePool.Spec.Limits))
	var budget []Allowance
	for _, name := range slices.Sorted(maps.Keys(s.NodePool.Spec.Limits)) {
		amount := limits.Get(string(name))
		budget = append(budget, Allowance{Name: string(name), Limit: amount, Left: amount})
	}
	for _, n := range snapshot.Nodes {
		if len(budget) == 0 || n.Pool != s.Name || n.Claim == "" {
			continue
		}
		capacity := n.Capacity
		if capacity.CPU == 0 {
			capacity = largestOf(s.Types, n)
		}
		for i := range budget {
			budget[i].Left -= CountOf(budget[i].Name, capacity)
		}
	}
	return budget
}

// manifold is how many times more of a resource than pods ask for a plan may plausibly take: machines that are bought for
// their memory have idle cores.
const manifold = 8

// TellRemote marks the limits that the pods that wait are unlikely to come near. For limits on cores and memory that is a
// guess, which is taken back where it was wrong (see place.priceByLimits).
func TellRemote(m *Market, waiting []*model.Pod) {
	var asked model.Resources
	for _, pod := range waiting {
		asked.CPU = model.SaturatingAdd(asked.CPU, pod.Class.Requests.CPU)
		asked.Memory = model.SaturatingAdd(asked.Memory, pod.Class.Requests.Memory)
	}
	for _, s := range m.Sellers {
		var largest model.Resources
		for i := s.First; i < s.Last; i++ {
			largest = largest.Max(m.Machines[i].Size)
		}
		for i := range s.Budget {
			a := &s.Budget[i]
			each := CountOf(a.Name, largest)
			a.Remote = each <= 0 || a.Left/each >= int64(len(waiting))
			if a.Name == string(corev1.ResourceCPU) || a.Name == string(corev1.ResourceMemory) {
				a.Remote = a.Remote || a.Left/manifold >= model.SaturatingAdd(asked.Get(a.Name), each)
			}
		}
	}
}

// CountOf is how much of a limited resource one node of this capacity uses up.
func CountOf(name string, capacity model.Resources) int64 {
	if name == string(karpv1.ResourceNodes) {
		return 1
	}
	return capacity.Get(name)
}

// largestOf returns the largest capacity that a claim without a machine may still get. Requirements on labels that do not
// follow from the instance type, such as the capacity type, do not matter here.
func largestOf(types []*cloud.InstanceType, n *model.Node) model.Resources {
	var largest model.Resources
	for _, typ := range types {
		if !slices.ContainsFunc(n.Requirements, func(c model.Condition) bool {
			value, labelled := typeLabel(typ, c.Key)
			return labelled && !c.Admits(value, true)
		}) {
			largest = largest.Max(model.ResourcesOf(typ.Capacity))
		}
	}
	return largest
}

// Affordable says how many nodes of this capacity the pool's limits allow.
func (s *Seller) Affordable(capacity model.Resources) int {
	count := int64(math.MaxInt32)
	for i := range s.Budget {
		a := &s.Budget[i]
		if each := CountOf(a.Name, capacity); each > 0 {
			count = min(count, max(0, a.Left)/each)
		}
	}
	return int(count)
}

// spend charges n nodes of this capacity to the budget.
func (s *Seller) spend(capacity model.Resources, n int) {
	for i := range s.Budget {
		s.Budget[i].Left -= CountOf(s.Budget[i].Name, capacity) * int64(n)
	}
}

// String is for people: "limit cpu 1000 leaves 4".
func (a *Allowance) String() string {
	return fmt.Sprintf("limit %s %s leaves %s", a.Name, model.Quantity(a.Name, a.Limit), model.Quantity(a.Name, max(0, a.Left)))
}
