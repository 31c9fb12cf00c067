package starter

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// told remembers which facts were signalled already, so that the many events of one object cost one action. It is only
// a memory of this process: after a restart everything is said once more, which changes nothing.
type told struct {
	mu    sync.Mutex
	facts map[types.UID]string
}

// news reports whether a fact about an object has not been told yet.
func (t *told) news(uid types.UID, fact string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.facts[uid] != fact
}

// keep remembers a fact. The latest one of an object is kept.
func (t *told) keep(uid types.UID, fact string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.facts == nil {
		t.facts = map[types.UID]string{}
	}
	t.facts[uid] = fact
}

// retain forgets all objects but these.
func (t *told) retain(alive map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for uid := range t.facts {
		if !alive[uid] {
			delete(t.facts, uid)
		}
	}
}
