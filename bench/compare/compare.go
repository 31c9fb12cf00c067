// Package compare defines the questions for two planners and their answers, in terms that belong to neither: a Question is made
// of Kubernetes objects and a catalogue, an Answer of machines, prices and pods.
package compare

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

// Question is one cluster at one moment, with its waiting pods. Planners must not modify it.
type Question struct {
	// Name describes the question.
	Name string
	// Pods are those that no node runs yet.
	Pods []*corev1.Pod
	// Pools are the NodePools, all of them Ready; the name of each is a key of Types.
	Pools []*karpv1.NodePool
	// Types are the instance types that each NodePool may launch, by its name.
	Types map[string][]*cloud.InstanceType
	// Nodes are the existing nodes.
	Nodes      []Node
	DaemonSets []*appsv1.DaemonSet
	Namespaces []*corev1.Namespace
	// Claims, Volumes, StorageClasses and CSINodes describe the storage that pods mount.
	Claims         []*corev1.PersistentVolumeClaim
	Volumes        []*corev1.PersistentVolume
	StorageClasses []*storagev1.StorageClass
	CSINodes       []*storagev1.CSINode
	// Budgets are the PodDisruptionBudgets. They matter only when nodes are to be removed.
	Budgets []*policyv1.PodDisruptionBudget
	// IgnorePreferences asks for the preference policy Ignore.
	IgnorePreferences bool
	// BestEffortMinValues asks for the policy BestEffort for minValues.
	BestEffortMinValues bool
	// NotNominated says that the kube-scheduler is not told which node was planned for a pod, as before Kubernetes 1.35. The
	// Karpenter never tells it.
	NotNominated bool
	// At is the time of the question; zero means a time that all questions share.
	At time.Time
}

// Node is a node that joined long ago, with its claim and its running pods.
type Node struct {
	Node  *corev1.Node
	Claim *karpv1.NodeClaim
	Pods  []*corev1.Pod
}

// Answer is a planner's answer to a Question.
type Answer struct {
	// Machines are the nodes to create.
	Machines []Machine
	// Existing maps the namespace/name of each pod that goes to an existing node to that node.
	Existing map[string]string
	// Unplaced maps the namespace/name of each pod that cannot be placed to the reason.
	Unplaced map[string]string
	// Took is the time from the question in the planner's own form to its answer.
	Took time.Duration
	// Mallocs is the number of allocations in that time.
	Mallocs uint64
}

// Machine is a node to create.
type Machine struct {
	Pool string
	// Types, Zones and CapacityTypes are the alternatives for the launch.
	Types         []string
	Zones         []string
	CapacityTypes []string
	// Price is the price of the cheapest offering among them, in US dollars per hour.
	Price float64
	// Pods are named by namespace/name.
	Pods []string
}

// Decision is to remove nodes once the machines bought for it serve.
type Decision struct {
	// Reason is Empty, Drifted or Underutilized, as in a disruption budget.
	Reason string
	// Nodes are names of Nodes.
	Nodes []string
	Buy   []Machine
	// LargeFirst says that pods that take a fourth of their node are evicted before the others.
	LargeFirst bool
}

// Cost returns the price of all machines, in US dollars per hour.
func (a Answer) Cost() float64 {
	sum := 0.0
	for i := range a.Machines {
		sum += a.Machines[i].Price
	}
	return sum
}

// Placed returns the number of pods that get a node.
func (a Answer) Placed() int {
	placed := len(a.Existing)
	for i := range a.Machines {
		placed += len(a.Machines[i].Pods)
	}
	return placed
}

// Missing returns the pods that the answer omits or names twice: there must be none.
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

// Summary lists the machines by type for people, the most expensive total first.
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

// Key returns a pod's namespace/name.
func Key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
