package ec2sim

import (
	"errors"
	"sync"
	"time"
)

// guard is the one lock of the account. Whoever changes something does it under the lock, on state in which everything that is
// due has happened, and what was changed is in the journal before the lock is given back.
type guard struct {
	mu      sync.Mutex
	now     func() time.Time
	settle  func(now time.Time) // lets everything happen that is due by then
	journal *journal
}

// change runs f on settled state and commits what it changed.
func (g *guard) change(f func(now time.Time) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.settle(now)
	err := f(now)
	return errors.Join(err, g.journal.commit())
}

// look runs f, which changes nothing, on settled state.
func (g *guard) look(f func(now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.settle(now)
	f(now)
}
