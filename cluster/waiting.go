package cluster

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// judging is how long Tenon waits for the kube-scheduler to look at a new pod. Another scheduler's pods may never be
// looked at.
const judging = 10 * time.Second

// waiting are the pods without a node, and when they arrive.
type waiting struct {
	*shared
	pods map[types.UID]*Pod
	// ordered are the pods by UID; nil when they have changed.
	ordered []*plan.Pod
	// active is when a pod last arrived, or was last found to need a node.
	active time.Time
	// unjudged are the pods that the kube-scheduler has not looked at, with their arrival times; arrivals are the same
	// in order, but may include pods that it has looked at since.
	unjudged map[types.UID]time.Time
	arrivals []arrival
	// hopeless counts the pods for which the kube-scheduler found no node, by what they have in common with their
	// siblings.
	hopeless map[plan.Siblings]int
	// mounted counts the pods that mount a claim, by its namespace and name.
	mounted map[string]int
	// claimed counts the pods that use a ResourceClaim, by its namespace and name.
	claimed map[string]int
}

type arrival struct {
	pod      types.UID
	siblings plan.Siblings
	at       time.Time
}

func newWaiting(s *shared) *waiting {
	return &waiting{shared: s, pods: map[types.UID]*Pod{}, unjudged: map[types.UID]time.Time{}, hopeless: map[plan.Siblings]int{}, mounted: map[string]int{},
		claimed: map[string]int{}}
}

func (w *waiting) has(pod types.UID) bool { return w.pods[pod] != nil }

// update records a pod's change at a time. Either version may be nil. It returns whether a pod newly asks for a node,
// and whether a pod was settled that the scheduler had not looked at.
func (w *waiting) update(at time.Time, old, now *Pod) (asks, settled bool) {
	w.ordered = nil
	if old != nil {
		if _, kept := w.pods[old.UID]; kept {
			w.count(old, -1)
		}
		delete(w.pods, old.UID)
	}
	if now != nil && now.Node == "" {
		w.pods[now.UID] = now
		w.count(now, 1)
	}
	waits := now != nil && now.waits()
	came := waits && (old == nil || !old.waits() || old.UID != now.UID)
	// A finding for one pod holds for its siblings; repeating it for the rest is no news.
	found := waits && now.Provisionable() && (old == nil || !old.Provisionable())
	asks = came || found && w.hopeless[now.Siblings()] < 2
	if asks {
		w.active = at
	}
	if old != nil && (!waits || now.judged || now.UID != old.UID) {
		_, settled = w.unjudged[old.UID]
		delete(w.unjudged, old.UID)
	}
	if came && !now.judged {
		w.unjudged[now.UID] = at
		w.arrivals = append(w.arrivals, arrival{pod: now.UID, siblings: now.Siblings(), at: at})
	}
	return asks, settled
}

func (w *waiting) count(pod *Pod, by int) {
	if siblings := pod.Siblings(); pod.Provisionable() && siblings.Any() {
		if w.hopeless[siblings] += by; w.hopeless[siblings] == 0 {
			delete(w.hopeless, siblings)
		}
	}
	for _, name := range pod.Mounts.Names() {
		key := pod.Namespace + "/" + name
		if w.mounted[key] += by; w.mounted[key] == 0 {
			delete(w.mounted, key)
		}
	}
	for _, entry := range pod.Claims.All() {
		key := pod.Namespace + "/" + entry.Claim
		if w.claimed[key] += by; w.claimed[key] == 0 {
			delete(w.claimed, key)
		}
	}
}

// mounts says whether a pod mounts a claim.
func (w *waiting) mounts(claim string) bool { return w.mounted[claim] > 0 }

// claims says whether a pod uses a ResourceClaim.
func (w *waiting) claims(claim string) bool { return w.claimed[claim] > 0 }

// oldestUnjudged returns the arrival time of the oldest pod that the scheduler has not looked at but still may. It
// leaves out siblings of pods for which the scheduler found no node.
func (w *waiting) oldestUnjudged(now time.Time) (time.Time, bool) {
	for len(w.arrivals) > 0 {
		oldest := w.arrivals[0]
		if at, open := w.unjudged[oldest.pod]; open && at.Equal(oldest.at) && now.Sub(at) < judging &&
			w.hopeless[oldest.siblings] == 0 {
			return at, true
		}
		w.arrivals = w.arrivals[1:]
	}
	w.arrivals = nil
	return time.Time{}, false
}

// list returns the pods in the order that plan.Snapshot requires.
func (w *waiting) list() []*plan.Pod {
	if w.ordered == nil {
		w.ordered = make([]*plan.Pod, 0, len(w.pods))
		for _, pod := range w.pods {
			w.ordered = append(w.ordered, pod.Pod)
		}
		slices.SortFunc(w.ordered, byUID)
	}
	return w.ordered
}

// Provisionable counts the pods that need a node that does not exist.
func (w *waiting) Provisionable() int {
	w.mu.RLock()
	defer w.mu.RUnlock()
	count := 0
	for _, pod := range w.pods {
		if pod.Provisionable() {
			count++
		}
	}
	return count
}

// QuietPods waits until the current burst of pods seems complete: for the time idle no pod has arrived or been found to
// need a node, and the kube-scheduler has looked at all that arrived. It returns at the latest after most. It does not
// wait for pods that the scheduler has not looked at within ten seconds.
func (w *waiting) QuietPods(ctx context.Context, idle, most time.Duration) error {
	subscription := w.subscribe(nil, []Event{{Kind: judged}})
	defer subscription.Close()
	end := w.clock.Now().Add(most)
	for {
		now := w.clock.Now()
		due := w.quietAt(now, idle)
		if due.After(end) {
			due = end
		}
		if !now.Before(due) {
			return nil
		}
		timer := w.clock.NewTimer(due.Sub(now))
		select {
		case <-timer.C():
		case <-subscription.C:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// quietAt is when the burst will be complete if nothing more happens. Call it again after a judged event.
func (w *waiting) quietAt(now time.Time, idle time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	due := w.active.Add(idle)
	if oldest, waits := w.oldestUnjudged(now); waits {
		if given := oldest.Add(judging); given.After(due) {
			due = given
		}
	}
	return due
}
