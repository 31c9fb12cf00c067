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

// affordable says how many nodes of this capacity the pool's limits allow, and if none, which limit forbids it.
func (s *seller) affordable(capacity Resources) (int, string) {
	count := int64(math.MaxInt32)
	for i := range s.budget {
		a := &s.budget[i]
		each := countOf(a.name, capacity)
		if each <= 0 {
			continue
		}
		n := max(0, a.left) / each
		if n == 0 {
			return 0, a.String()
		}
		count = min(count, n)
	}
	return int(count), ""
}

// allows says whether the pool's limits leave room for a node of this capacity.
func (s *seller) allows(capacity Resources) bool {
	n, _ := s.affordable(capacity)
	return n > 0
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
