package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// replacedPods returns the pods on nodes that a Replacement has marked.
func replacedPods(snapshot *model.Snapshot) map[types.UID]bool {
	pods := map[types.UID]bool{}
	for _, node := range snapshot.Nodes {
		for _, pod := range node.Pods {
			if node.Replacement != "" && node.Disrupted {
				pods[pod.UID] = true
			}
		}
	}
	return pods
}

// withoutPods returns the snapshot without some of its pods.
func withoutPods(snapshot *model.Snapshot, gone map[types.UID]bool) *model.Snapshot {
	left := func(pods []*model.Pod) []*model.Pod {
		return slices.DeleteFunc(slices.Clone(pods), func(pod *model.Pod) bool { return gone[pod.UID] })
	}
	rest := *snapshot
	rest.Pending, rest.Nodes = left(snapshot.Pending), slices.Clone(snapshot.Nodes)
	for i, node := range rest.Nodes {
		rest.Nodes[i] = node.WithPods(left(node.Pods))
	}
	return &rest
}
