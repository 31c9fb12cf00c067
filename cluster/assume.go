package cluster

import (
	"context"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// assumption is a claim this process knows of before the watch has delivered it.
type assumption struct {
	claim   *promised
	version string
	until   time.Time
}

// Assume makes claims visible that were just created or changed through the API, as the API server returned them. Each
// counts in front of what the watch has delivered until the watch has passed its resourceVersion. A claim the watch has
// already passed is left to the watch. The arguments are not kept.
func (m *Mirror) Assume(claims ...*karpv1.NodeClaim) {
	for _, claim := range claims {
		reduced, err := reduceClaim(m.interner, claim.DeepCopy())
		if err != nil {
			continue
		}
		m.assume(reduced)
	}
}

func (m *Mirror) assume(claim *promised) {
	name, version := claim.claim.Name, claim.claim.ResourceVersion
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims.pulse.reached(version) {
		return
	}
	if older, ok := m.assumed[name]; ok && atLeast(older.version, version) {
		return
	}
	if known, ok := m.claims.items[name]; ok && atLeast(known.claim.ResourceVersion, version) {
		return
	}
	m.assumed[name] = assumption{claim: claim, version: version, until: m.clock.Now().Add(m.assumeFor)}
	m.refreshClaim(name)
}

// Forget takes an assumption back: the watch's word holds for the claim at once.
func (m *Mirror) Forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.assumed, name)
	m.refreshClaim(name)
}

// claimsAdvanced ends the assumptions that the watch has passed. The lock is held.
func (m *Mirror) claimsAdvanced() {
	for name, assumed := range m.assumed {
		if m.claims.pulse.reached(assumed.version) {
			delete(m.assumed, name)
			m.refreshClaim(name)
		}
	}
	m.events.publish(Event{Kind: claimsSeen})
}

// expireAssumptions ends the assumptions nothing has confirmed in time. The lock is held.
func (m *Mirror) expireAssumptions(now time.Time) {
	for name, assumed := range m.assumed {
		if now.After(assumed.until) {
			delete(m.assumed, name)
			m.refreshClaim(name)
		}
	}
}

// AwaitClaims returns when the mirror has seen every change of NodeClaims up to a resourceVersion, as returned by the
// API server for a claim that was created or changed elsewhere. An empty version is always seen.
func (m *Mirror) AwaitClaims(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" {
		return nil
	}
	return m.Await(ctx, func() (bool, error) {
		m.mu.RLock()
		defer m.mu.RUnlock()
		return m.claims.pulse.reached(resourceVersion), nil
	}, Event{Kind: claimsSeen})
}
