package cluster

import (
	"sync"

	"k8s.io/utils/clock"

	"github.com/tenon-sh/tenon/plan"
)

// shared is what all stores of one mirror have in common. Each store keeps one subject, all of them under one lock.
type shared struct {
	// clock is the time everything is measured by.
	clock clock.WithTicker
	// interner keeps what many objects say alike only once.
	interner *plan.Interner
	events

	// mu guards the contents of all stores, those of the feeds included: a snapshot is one consistent state.
	mu sync.RWMutex
	// snapshot is the one that Snapshot gave last; nil when something has changed since.
	snapshot *plan.Snapshot
}

// changed makes the next Snapshot build anew. The lock is held.
func (s *shared) changed() { s.snapshot = nil }
