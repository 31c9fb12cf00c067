package disrupt

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// withSuccessors is the snapshot as a Replacement means it: the pods of nodes that it takes away are promised to the
// nodes that it has launched for them. Without that, whoever reckons with those pods would see them on whatever nodes
// have room, and keep these from being replaced in their turn.
func withSuccessors(s *model.Snapshot) *model.Snapshot {
	moving := map[string][]types.UID{}
	for _, n := range s.Nodes {
		if n.Replacement == "" || !n.Leaving() {
			continue
		}
		for _, pod := range n.Pods {
			if pod.Reschedulable() {
				moving[n.Replacement] = append(moving[n.Replacement], pod.UID)
			}
		}
	}
	return with(s, func(n *model.Node) bool { return !n.Leaving() && len(moving[n.Replacement]) > 0 }, func(successor *model.Node) {
		successor.Promised = slices.Concat(successor.Promised, moving[successor.Replacement])
	})
}

// with is the snapshot with some of its nodes changed.
func with(s *model.Snapshot, changes func(*model.Node) bool, change func(*model.Node)) *model.Snapshot {
	rest := *s
	rest.Nodes = slices.Clone(s.Nodes)
	for i, n := range rest.Nodes {
		if changes(n) {
			changed := *n
			change(&changed)
			rest.Nodes[i] = &changed
		}
	}
	return &rest
}
