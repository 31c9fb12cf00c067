package cluster

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// promises are decisions to run pending pods on places, made before the pods are bound.
type promises struct {
	*shared
	places  *places
	waiting *waiting
	buffers *buffers
	byKey   map[string]promise
	// keyOf names the place each pod was planned for.
	keyOf map[types.UID]string
}

// promise is the pods that a place was planned for, and until when it counts as nominated at least.
type promise struct {
	pods  []types.UID
	until time.Time
}

func newPromises(s *shared, places *places, waiting *waiting, buffers *buffers) *promises {
	return &promises{shared: s, places: places, waiting: waiting, buffers: buffers, byKey: map[string]promise{}, keyOf: map[types.UID]string{}}
}

// Promise records that pending pods have been planned for a place, named as plan.Node.Key does, in addition to those
// promised before. The place counts as nominated at least until a moment, and until the pods are bound or gone, the
// place is gone, or another plan puts them elsewhere. Pods that were promised to another place move to this one. Only
// this process knows a promise, and it is never more than advice: whatever decides about a place plans the pending pods
// again.
func (p *promises) Promise(key string, pods []types.UID, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.promise(key, pods, until)
}

// Planned records the outcome of a plan for pending pods: those it placed are promised to their places at least until a
// moment; those it could not place lose their promise. Pods that it did not look at keep theirs.
func (p *promises) Planned(packed plan.Plan, until time.Time) {
	pods := map[string][]types.UID{}
	for _, placement := range packed.Placements {
		pods[placement.Node] = append(pods[placement.Node], placement.Pod.UID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, uids := range pods {
		p.promise(key, uids, until)
	}
	for i := range packed.Unplaced {
		p.keepPromise(packed.Unplaced[i].Pod.UID)
	}
}

// promise does the work of Promise. The lock is held.
func (p *promises) promise(key string, pods []types.UID, until time.Time) {
	for _, pod := range pods {
		if p.keyOf[pod] == key || !p.waiting.has(pod) && !p.buffers.has(pod) {
			continue
		}
		p.keepPromise(pod)
		p.keyOf[pod] = key
		made := p.byKey[key]
		made.pods = append(slices.Clone(made.pods), pod)
		p.byKey[key] = made
	}
	if made, some := p.byKey[key]; some {
		made.until = later(made.until, until)
		p.byKey[key] = made
	}
	p.places.touchKey(key)
}

// Promised returns the pending pods that are promised to a place, named as plan.Node.Key does, ordered by UID. It
// leaves out virtual pods, which never arrive.
func (p *promises) Promised(key string) []*Pod {
	p.mu.RLock()
	defer p.mu.RUnlock()
	var pods []*Pod
	for _, uid := range p.byKey[key].pods {
		if pod := p.waiting.pods[uid]; pod != nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return pods
}

// Promises says whether a pending pod is promised to a place.
func (p *promises) Promises(pod PodSeen) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, made := p.keyOf[pod.UID]
	return made
}

// keepPromise ends the promise to a pod that is bound, gone or planned anew. The lock is held.
func (p *promises) keepPromise(pod types.UID) {
	key, ok := p.keyOf[pod]
	if !ok {
		return
	}
	delete(p.keyOf, pod)
	made := p.byKey[key]
	made.pods = slices.DeleteFunc(slices.Clone(made.pods), func(uid types.UID) bool { return uid == pod })
	if len(made.pods) == 0 {
		delete(p.byKey, key)
	} else {
		p.byKey[key] = made
	}
	p.places.touchKey(key)
}

// retract drops everything promised for a place. The lock is held.
func (p *promises) retract(key string) {
	for _, pod := range p.byKey[key].pods {
		delete(p.keyOf, pod)
	}
	delete(p.byKey, key)
}

// promisesOf returns the pods still expected at a place, and until when it is nominated for them. Virtual pods never
// arrive: a place counts as reserved for them until it is initialized; after that its room is like any other. The lock
// is held.
func (p *promises) promisesOf(key string, initialized bool) ([]types.UID, time.Time) {
	made := p.byKey[key]
	if !initialized || len(made.pods) == 0 {
		return made.pods, made.until
	}
	pods := slices.DeleteFunc(slices.Clone(made.pods), p.buffers.has)
	if len(pods) == 0 {
		return nil, time.Time{}
	}
	return pods, made.until
}
