package activities

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// packProvided plans, but buys nothing for pods that a Replacement sees to: those on nodes it has marked. They are planned
// for, so that nobody else gets the room that was bought for them; where there is none, the Replacement waits for it or
// is taken back, and their nodes serve on.
func packProvided(in plan.Input) plan.Plan {
	packed := plan.Pack(in)
	provided := providedFor(in.Snapshot)
	if len(provided) == 0 {
		return packed
	}
	bought := map[types.UID]bool{}
	for i := range packed.Claims {
		for _, pod := range packed.Claims[i].Pods {
			if provided[pod] {
				bought[pod] = true
			}
		}
	}
	if len(bought) > 0 {
		snapshot := *in.Snapshot
		snapshot.Nodes = withoutPods(snapshot.Nodes, bought)
		in.Snapshot = &snapshot
		packed = plan.Pack(in)
	}
	packed.Unplaced = slices.DeleteFunc(packed.Unplaced, func(u plan.Unplaced) bool { return provided[u.Pod.UID] })
	return packed
}

// providedFor are the pods on nodes that a Replacement has marked.
func providedFor(snapshot *plan.Snapshot) map[types.UID]bool {
	pods := map[types.UID]bool{}
	for _, node := range snapshot.Nodes {
		if node.Replacement == "" || !node.Disrupted {
			continue
		}
		for _, pod := range node.Pods {
			pods[pod.UID] = true
		}
	}
	return pods
}

// withoutPods are the nodes without some of their pods.
func withoutPods(nodes []*plan.Node, gone map[types.UID]bool) []*plan.Node {
	isGone := func(pod *plan.Pod) bool { return gone[pod.UID] }
	left := slices.Clone(nodes)
	for i, node := range left {
		if slices.ContainsFunc(node.Pods, isGone) {
			left[i] = node.WithPods(slices.DeleteFunc(slices.Clone(node.Pods), isGone))
		}
	}
	return left
}
