package place

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// Placed returns the pods, by UID, for which serving nodes have room when planned with those nodes alone. Pods that
// were just evicted are not pending yet, and pods that the kube-scheduler has not looked at do not count as waiting.
// Both take room all the same.
func Placed(snapshot *model.Snapshot, preferences model.PreferencePolicy) map[types.UID]bool {
	arriving, _ := snapshot.Arriving()
	comes := map[types.UID]bool{}
	for _, pod := range arriving {
		comes[pod.UID] = true
	}
	serving := *snapshot
	serving.Nodes = slices.DeleteFunc(slices.Clone(snapshot.Nodes), func(n *model.Node) bool { return !n.Initialized && !n.Leaving() })
	serving.Pending = slices.DeleteFunc(slices.Clone(snapshot.Pending), func(p *model.Pod) bool { return comes[p.UID] })
	for _, pod := range arriving {
		waits := *pod
		waits.Node, waits.Deletion, waits.Unschedulable = "", time.Time{}, true
		serving.Pending = append(serving.Pending, &waits)
	}
	placed := map[types.UID]bool{}
	for _, placement := range Pack(model.Input{Snapshot: &serving, Preferences: preferences, Nominates: true}).Placements {
		placed[placement.Pod.UID] = true
	}
	return placed
}
