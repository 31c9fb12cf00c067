package starter

import (
	"context"
	"sync"
	"time"

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

// first reports whether a fact about an object has not been told yet, and takes it as told. Who then fails to tell it
// drops it.
func (t *told) first(uid types.UID, fact string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.facts[uid] == fact {
		return false
	}
	if t.facts == nil {
		t.facts = map[types.UID]string{}
	}
	t.facts[uid] = fact
	return true
}

// drop forgets what was told about an object.
func (t *told) drop(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.facts, uid)
}

// has reports whether anything has been told about an object.
func (t *told) has(uid types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.facts[uid] != ""
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

// forgetGone drops every now and then what was told about objects that no longer exist.
func forgetGone(ctx context.Context, mirror Mirror, every time.Duration, all ...*told) error {
	for {
		if err := sleep(ctx, every); err != nil {
			return err
		}
		alive := map[types.UID]bool{}
		for _, claim := range mirror.Claims() {
			alive[claim.UID] = true
		}
		for _, node := range mirror.Nodes() {
			alive[node.UID] = true
		}
		for _, t := range all {
			t.retain(alive)
		}
	}
}
