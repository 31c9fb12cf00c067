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
	byKey map[string]promise
	// keyOf names the place each pod was planned for.
	keyOf map[types.UID]string
}

type promise struct {
	pods  []types.UID
	until time.Time
}

func newPromises() promises {
	return promises{byKey: map[string]promise{}, keyOf: map[types.UID]string{}}
}

// Promise notes that pending pods have been planned for a place, named as plan.Node.Key does, beside those that were
// before. Until they are bound or gone, or the place is, or another plan puts them elsewhere, it counts as nominated, at
// least until a moment. Pods that were promised to another place change over. It is known to this process only and never
// more than advice: whoever decides over a place plans the pending pods again.
func (m *Mirror) Promise(key string, pods []types.UID, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.promise(key, pods, until)
}

// Planned notes what a plan made of pending pods: those that it placed are promised to their places at least until a
// moment, and those that it could not place to none. Pods that it did not look at keep what they were promised.
func (m *Mirror) Planned(packed plan.Plan, until time.Time) {
	pods := map[string][]types.UID{}
	for _, placement := range packed.Placements {
		pods[placement.Node] = append(pods[placement.Node], placement.Pod.UID)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, uids := range pods {
		m.promise(key, uids, until)
	}
	for i := range packed.Unplaced {
		m.keepPromise(packed.Unplaced[i].Pod.UID)
	}
}

// promise is Promise. The lock is held.
func (m *Mirror) promise(key string, pods []types.UID, until time.Time) {
	for _, pod := range pods {
		if m.promises.keyOf[pod] == key || !m.waiting.has(pod) && !m.buffers.has(pod) {
			continue
		}
		m.keepPromise(pod)
		m.promises.keyOf[pod] = key
		made := m.promises.byKey[key]
		made.pods = append(slices.Clone(made.pods), pod)
		m.promises.byKey[key] = made
	}
	if made, some := m.promises.byKey[key]; some {
		made.until = later(made.until, until)
		m.promises.byKey[key] = made
	}
	m.touchKey(key)
}

// Promised returns the pending pods that are promised to a place, named as plan.Node.Key does, ordered by UID. Virtual
// pods are not among them: they never come.
func (m *Mirror) Promised(key string) []*Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var pods []*Pod
	for _, uid := range m.promises.byKey[key].pods {
		if pod := m.waiting.pods[uid]; pod != nil {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return pods
}

// keepPromise ends the promise to a pod, because it is bound or gone, or planned anew. The lock is held.
func (m *Mirror) keepPromise(pod types.UID) {
	key, ok := m.promises.keyOf[pod]
	if !ok {
		return
	}
	delete(m.promises.keyOf, pod)
	made := m.promises.byKey[key]
	made.pods = slices.DeleteFunc(slices.Clone(made.pods), func(uid types.UID) bool { return uid == pod })
	if len(made.pods) == 0 {
		delete(m.promises.byKey, key)
	} else {
		m.promises.byKey[key] = made
	}
	m.touchKey(key)
}

// retract drops everything promised for a place. The lock is held.
func (m *Mirror) retract(key string) {
	for _, pod := range m.promises.byKey[key].pods {
		delete(m.promises.keyOf, pod)
	}
	delete(m.promises.byKey, key)
}

// promisesOf returns the pods still expected at a place and until when it is nominated for them. Virtual pods never come:
// what a place was made for counts as theirs until it is initialized, and then its room is as good as any. The lock is
// held.
func (m *Mirror) promisesOf(key string, initialized bool) ([]types.UID, time.Time) {
	made := m.promises.byKey[key]
	if !initialized || len(made.pods) == 0 {
		return made.pods, made.until
	}
	real := slices.DeleteFunc(slices.Clone(made.pods), m.buffers.has)
	if len(real) == 0 {
		return nil, time.Time{}
	}
	return real, made.until
}

// touchKey makes the next snapshot build the place with this key again. The lock is held.
func (m *Mirror) touchKey(key string) {
	claim, ok := m.places.claims[key]
	if !ok {
		m.touchNode(key)
		return
	}
	delete(m.places.builtClaims, key)
	if node := m.places.nodeOf(claim); node != "" {
		delete(m.places.builtNodes, node)
	}
	m.changed()
}
