package activities

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

const (
	// placesEvery is how often it is looked for places for the pods of nodes that go with notice. Pods that have one are
	// evicted at once, and those of other nodes must not be sent to the same.
	placesEvery = time.Second
	// lastMoment is how long before the end of its instance a pod is evicted at the latest, its grace period aside: the
	// eviction takes a moment, and its budget may refuse it at first.
	lastMoment = 15 * time.Second
	// waitsUnannounced is how long after the end of its claim a pod waits for a place where nobody has said when its
	// instance ends: as long as two launches may take.
	waitsUnannounced = 10 * time.Minute
)

// places remembers, for all drains of a process, which pods have one.
type places struct {
	mirror      Mirror
	preferences plan.PreferencePolicy

	mu    sync.Mutex
	at    time.Time
	found map[types.UID]bool
}

// elsewhere says for which pods of nodes that go, by UID, another node that serves has room beside all that waits or is on
// its way there, and when the instance of a claim ends by what is known now. Where the cluster is not seen well enough, no
// pod has room.
func (p *places) elsewhere(claim string) (placed map[types.UID]bool, ends time.Time) {
	if noted := p.mirror.Claim(claim); noted != nil {
		ends = noted.EndsAt()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) >= placesEvery {
		p.found = nil
		if p.mirror.Fresh(freshEnough) == nil {
			p.found = placedPods(p.mirror.Snapshot(), p.preferences)
		}
		p.at = time.Now()
	}
	return p.found, ends
}

// placedPods plans with the nodes that serve and nothing else. Pods that were evicted a moment ago are not pending yet, and those
// the kube-scheduler has not looked at do not count as waiting: both take room all the same.
func placedPods(snapshot *plan.Snapshot, preferences plan.PreferencePolicy) map[types.UID]bool {
	arriving, _ := snapshot.Arriving()
	comes := map[types.UID]bool{}
	for _, pod := range arriving {
		comes[pod.UID] = true
	}
	serving := *snapshot
	serving.Nodes = slices.DeleteFunc(slices.Clone(snapshot.Nodes), func(n *plan.Node) bool { return !n.Initialized && !n.Leaving() })
	serving.Pending = slices.DeleteFunc(slices.Clone(snapshot.Pending), func(p *plan.Pod) bool { return comes[p.UID] })
	for _, pod := range arriving {
		waits := *pod
		waits.Node, waits.Deletion, waits.Unschedulable = "", time.Time{}, true
		serving.Pending = append(serving.Pending, &waits)
	}
	found := map[types.UID]bool{}
	for _, placement := range plan.Pack(plan.Input{Snapshot: &serving, Preferences: preferences, Nominates: true}).Placements {
		found[placement.Pod.UID] = true
	}
	return found
}
