package cluster

import (
	"sync"

	"k8s.io/utils/clock"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// shared is what all stores of one mirror have in common.
type shared struct {
	// clock is the source of time.
	clock clock.WithTicker
	// interner stores only once what many objects have in common.
	interner *plan.Interner
	// labelKeys are the keys of the provider's labels.
	labelKeys cloud.LabelKeys
	events

	// mu guards the contents of all stores, those of the feeds included: a snapshot is one consistent state.
	mu sync.RWMutex
	// snapshot is the last one that Snapshot built; nil when something has changed since.
	snapshot *plan.Snapshot
}

// changed makes Snapshot build a new one. The lock is held.
func (s *shared) changed() { s.snapshot = nil }
