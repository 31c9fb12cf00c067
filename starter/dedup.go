package starter

import (
	"context"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"k8s.io/apimachinery/pkg/types"
)

// dedup remembers which facts were already signalled, so that the many events of one object cost one action. The memory
// is this process's own: after a restart every fact is signalled once more, which changes nothing.
type dedup struct {
	mu    sync.Mutex
	facts map[types.UID]string
}

// isNew reports whether a fact about an object has not been signalled yet.
func (d *dedup) isNew(uid types.UID, fact string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts[uid] != fact
}

// markNew marks a fact about an object as signalled, and reports whether it was not before. Call forget if signalling
// it then fails.
func (d *dedup) markNew(uid types.UID, fact string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.facts[uid] == fact {
		return false
	}
	d.put(uid, fact)
	return true
}

// mark marks a fact about an object as signalled, in place of an earlier one.
func (d *dedup) mark(uid types.UID, fact string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.put(uid, fact)
}

// put records a fact. The lock is held.
func (d *dedup) put(uid types.UID, fact string) {
	if d.facts == nil {
		d.facts = map[types.UID]string{}
	}
	d.facts[uid] = fact
}

// forget drops the fact about an object.
func (d *dedup) forget(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.facts, uid)
}

// knows reports whether any fact about an object has been signalled.
func (d *dedup) knows(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts[uid] != ""
}

// retain forgets all objects but these.
func (d *dedup) retain(alive map[types.UID]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for uid := range d.facts {
		if !alive[uid] {
			delete(d.facts, uid)
		}
	}
}

// forgetGone regularly drops the facts about objects that no longer exist.
func forgetGone(ctx context.Context, mirror Mirror, every time.Duration, all ...*dedup) error {
	for {
		if err := smithytime.SleepWithContext(ctx, every); err != nil {
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
