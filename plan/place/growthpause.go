package place

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan/model"
)

// Basis is what growth rests on: other pools, or what can be bought for them, are another.
func Basis(pools []model.Pool) string {
	var basis []string
	for i := range pools {
		pool := pools[i].NodePool
		basis = append(basis, fmt.Sprintf("%s/%d", pool.UID, pool.Generation))
	}
	slices.Sort(basis)
	return fmt.Sprint(basis)
}

// packPaused plans, and buys nothing for pods whose growth is paused. What is there they may use.
func packPaused(in model.Input) model.Plan {
	packed := packForOthers(in)
	asked := map[types.UID]bool{}
	for i := range packed.Claims {
		for _, uid := range packed.Claims[i].Pods {
			if in.Growth[uid].Paused(in.Snapshot.Time) {
				asked[uid] = true
			}
		}
	}
	if len(asked) == 0 {
		return packed
	}
	rest := *in.Snapshot
	rest.Pending = nil
	var left []model.Unplaced
	for _, pod := range in.Snapshot.Pending {
		if !asked[pod.UID] {
			rest.Pending = append(rest.Pending, pod)
			continue
		}
		left = append(left, model.Unplaced{Pod: pod, Reasons: []model.Reason{{Message: message(in.Growth[pod.UID])}}})
	}
	in.Snapshot = &rest
	packed = packForOthers(in)
	packed.Unplaced = append(packed.Unplaced, left...)
	return packed
}

// message says in one sentence why growing is paused.
func message(g model.Growth) string {
	return fmt.Sprintf("growing for it is paused until %s: %d nodes came up for it, and it stayed on none of them", g.Until.UTC().Format(time.RFC3339), g.Nodes)
}
