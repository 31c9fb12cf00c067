package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// packForOthers plans for all pods, and buys nothing for those that a Replacement sees to. They are planned for all the
// same, so that nobody else gets the room that was bought for them; where there is none, the Replacement waits for it or is
// taken back, and their nodes serve on.
func packForOthers(in model.Input) model.Plan {
	packed := PackAll(in)
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
		packed = PackAll(in)
	}
	packed.Unplaced = slices.DeleteFunc(packed.Unplaced, func(u model.Unplaced) bool { return provided[u.Pod.UID] })
	return packed
}

// providedFor are the pods on nodes that a Replacement has marked.
func providedFor(snapshot *model.Snapshot) map[types.UID]bool {
	var pods map[types.UID]bool
	for _, node := range snapshot.Nodes {
		if node.Replacement == "" || !node.Disrupted {
			continue
		}
		for _, pod := range node.Pods {
			if pods == nil {
				pods = map[types.UID]bool{}
			}
			pods[pod.UID] = true
		}
	}
	return pods
}

// withoutPods are the nodes without some of their pods.
func withoutPods(nodes []*model.Node, gone map[types.UID]bool) []*model.Node {
	isGone := func(pod *model.Pod) bool { return gone[pod.UID] }
	left := slices.Clone(nodes)
	for i, node := range left {
		if slices.ContainsFunc(node.Pods, isGone) {
			left[i] = node.WithPods(slices.DeleteFunc(slices.Clone(node.Pods), isGone))
		}
	}
	return left
}
