package ec2sim

import (
	"errors"
	"sync"
	"time"
)

// guard is the account's only lock. Every change is made under the lock, after everything that is due has happened, and
// is in the journal before the lock is released.
type guard struct {
	mu      sync.Mutex
	now     func() time.Time
	settle  func(now time.Time) // applies everything that is due by then
	journal *journal
}

// change runs f on settled state and commits its changes.
func (g *guard) change(f func(now time.Time) error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.settle(now)
	err := f(now)
	return errors.Join(err, g.journal.commit())
}

// look runs f on settled state. f must not change anything.
func (g *guard) look(f func(now time.Time)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.settle(now)
	f(now)
}
