// Package duel holds what two planners are asked and what they answer, in words neither of them owns: a Question is made
// of Kubernetes objects and a catalogue, an Answer of machines, prices and pods.
package duel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Question is one cluster at one moment, and the pods that wait in it. Planners must not modify it.
type Question struct {
	// Name says what the question is about.
	Name string
	// Pods are those that no node runs yet.
	Pods []*corev1.Pod
	// Pools are the NodePools, all Ready, each with the name of a key of Types.
	Pools []*karpv1.NodePool
	// Types are what can be launched for each NodePool, by its name.
	Types map[string][]*cloud.InstanceType
	// Nodes are the nodes that are there.
	Nodes      []Node
	DaemonSets []*appsv1.DaemonSet
	Namespaces []*corev1.Namespace
	// Claims, Volumes, StorageClasses and CSINodes are what pods mount, and how.
	Claims         []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	CSINodes       []*storagev1.CSINode
	// Budgets are the PodDisruptionBudgets. Who asks only where pods go needs none.
	Budgets []*policyv1.PodDisruptionBudget
	// IgnorePreferences asks for the preference policy Ignore.
	IgnorePreferences bool
	// BestEffortMinValues asks for the policy BestEffort for minValues.
	BestEffortMinValues bool
	// NotNominated says that the kube-scheduler is not told which node was planned for a pod, as before Kubernetes 1.35. The
	// peer never tells it.
	NotNominated bool
	// At is when the question is asked; zero means an hour that all questions share.
	At time.Time
}

// Node is a node that joined long ago, with its claim and the pods that run on it.
type Node struct {
	Node  *corev1.Node
	Claim *karpv1.NodeClaim
	Pods  []*corev1.Pod
}

// Answer is what a planner makes of a Question.
type Answer struct {
	// Machines are the nodes it would create.
	Machines []Machine
	// Existing are the pods that go to nodes which are there: the node by the pod's namespace/name.
	Existing map[string]string
	// Unplaced are the pods nothing can be done for, by namespace/name, and why.
	Unplaced map[string]string
	// Took is the time from the question in the planner's own form to its answer.
	Took time.Duration
	// Mallocs is the number of allocations in that time.
	Mallocs uint64
}

// Machine is a node to create.
type Machine struct {
	Pool string
	// Types, Zones and CapacityTypes may be launched.
	Types         []string
	Zones         []string
	CapacityTypes []string
	// Price is that of the cheapest offering among them, in US dollars per hour.
	Price float64
	// Pods are namespace/name.
	Pods []string
}

// Decision is to take nodes away, when what is bought for it serves.
type Decision struct {
	// Reason is Empty, Drifted or Underutilized, as a disruption's budget names it.
	Reason string
	// Nodes are names of Nodes.
	Nodes []string
	Buy   []Machine
	// LargeFirst says that of the pods on the Nodes those that take a fourth of their node are evicted before the others.
	LargeFirst bool
}

// Cost is the price of all machines, in US dollars per hour.
func (a Answer) Cost() float64 {
	sum := 0.0
	for i := range a.Machines {
		sum += a.Machines[i].Price
	}
	return sum
}

// Placed is the number of pods that get a node.
func (a Answer) Placed() int {
	placed := len(a.Existing)
	for i := range a.Machines {
		placed += len(a.Machines[i].Pods)
	}
	return placed
}

// Missing are the pods that the answer forgets and those it names twice: there must be none.
func (q *Question) Missing(a Answer) []string {
	seen := make(map[string]int, len(q.Pods))
	for _, machine := range a.Machines {
		for _, pod := range machine.Pods {
			seen[pod]++
		}
	}
	for pod := range a.Existing {
		seen[pod]++
	}
	for pod := range a.Unplaced {
		seen[pod]++
	}
	var wrong []string
	for _, pod := range q.Pods {
		if seen[Key(pod)] != 1 {
			wrong = append(wrong, fmt.Sprintf("%s is there %d times", Key(pod), seen[Key(pod)]))
		}
	}
	return wrong
}

// Summary counts machines by type, the most expensive sum first, for people.
func (a Answer) Summary() string {
	type line struct {
		what  string
		count int
		price float64
	}
	lines := map[string]*line{}
	for _, m := range a.Machines {
		what := fmt.Sprintf("%s %s %v %v", m.Pool, m.Types[0], m.CapacityTypes, m.Zones)
		if lines[what] == nil {
			lines[what] = &line{what: what}
		}
		lines[what].count++
		lines[what].price += m.Price
	}
	text := ""
	for _, l := range slices.SortedFunc(maps.Values(lines), func(x, y *line) int {
		return cmp.Or(cmp.Compare(y.price, x.price), cmp.Compare(x.what, y.what))
	}) {
		text += fmt.Sprintf("%4d × %-60s $%.3f/h\n", l.count, l.what, l.price)
	}
	return text
}

// Key is a pod's namespace/name.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
