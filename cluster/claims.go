package cluster

import (
	"context"
	"maps"
	"slices"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// assumption is a claim that this process knows before the watch has delivered it.
type assumption struct {
	claim   *promised
	version string
	until   time.Time
}

// claims are the NodeClaims: those the watch has delivered, and those announced before it.
type claims struct {
	*shared
	feed  *feed[*promised]
	nodes *feed[*machine]
	// places hold the version of each claim that counts; the other stores are notified of its changes from here.
	places   *places
	promises *promises
	grown    *grown
	overdue  *overdue
	// assumed are the claims that take precedence over what the watch has delivered, for at most assumeFor.
	assumed   map[string]assumption
	assumeFor time.Duration
}

// follow subscribes the store to its watch.
func (c *claims) follow() *claims {
	c.feed.changed, c.feed.pulse.advanced = c.claimChanged, c.claimsAdvanced
	return c
}

// Claim returns the NodeClaim with a name, assumed ones included, or nil.
func (c *claims) Claim(name string) *karpv1.NodeClaim {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return claimObject(c.places.claims[name])
}

// ClaimByProviderID returns the NodeClaim whose status names a provider id, or nil.
func (c *claims) ClaimByProviderID(id string) *karpv1.NodeClaim {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return claimObject(c.places.claims[first(c.places.claimsOf[id])])
}

// ClaimByInstance returns the NodeClaim of an instance id, or nil. It is for callers that do not know the zone and so
// cannot form the provider id.
func (c *claims) ClaimByInstance(id string) *karpv1.NodeClaim {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return claimObject(c.places.claims[first(c.places.claimsByInstance[id])])
}

// ClaimOfNode returns the NodeClaim that a Node belongs to, or nil.
func (c *claims) ClaimOfNode(name string) *karpv1.NodeClaim {
	c.mu.RLock()
	defer c.mu.RUnlock()
	node, ok := c.nodes.items[name]
	if !ok {
		return nil
	}
	return claimObject(c.places.claimOf(node))
}

// Claims returns all NodeClaims ordered by name, assumed ones included.
func (c *claims) Claims() []*karpv1.NodeClaim {
	c.mu.RLock()
	defer c.mu.RUnlock()
	claims := make([]*karpv1.NodeClaim, 0, len(c.places.claims))
	for _, name := range slices.Sorted(maps.Keys(c.places.claims)) {
		claims = append(claims, c.places.claims[name].claim)
	}
	return claims
}

// AwaitClaims waits until the mirror has seen every change of NodeClaims up to a resourceVersion, which the API server
// returned for a claim that was created or changed elsewhere. For an empty version it returns at once.
func (c *claims) AwaitClaims(ctx context.Context, resourceVersion string) error {
	if resourceVersion == "" {
		return nil
	}
	return c.Await(ctx, func() (bool, error) {
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.feed.pulse.reached(resourceVersion), nil
	}, Event{Kind: claimsSeen})
}

// Assume makes claims visible that were just created or changed through the API; pass them as the API server returned
// them. Each takes precedence over what the watch has delivered until the watch has passed its resourceVersion. A claim
// that the watch has already passed is ignored. The arguments are not kept.
func (c *claims) Assume(claims ...*karpv1.NodeClaim) {
	for _, claim := range claims {
		reduced, err := reduceClaim(c.interner, claim.DeepCopy())
		if err != nil {
			continue
		}
		c.assume(reduced)
	}
}

// assume makes one claim visible.
func (c *claims) assume(claim *promised) {
	name, version := claim.claim.Name, claim.claim.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed.pulse.reached(version) {
		return
	}
	if older, ok := c.assumed[name]; ok && atLeast(older.version, version) {
		return
	}
	if known, ok := c.feed.items[name]; ok && atLeast(known.claim.ResourceVersion, version) {
		return
	}
	c.assumed[name] = assumption{claim: claim, version: version, until: c.clock.Now().Add(c.assumeFor)}
	c.refresh(name)
}

// Forget withdraws an assumption: from now on the watch decides about the claim.
func (c *claims) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.assumed, name)
	c.refresh(name)
}

// claimsAdvanced ends the assumptions that the watch has passed. The lock is held.
func (c *claims) claimsAdvanced() {
	for name, assumed := range c.assumed {
		if c.feed.pulse.reached(assumed.version) {
			delete(c.assumed, name)
			c.refresh(name)
		}
	}
	c.publish(Event{Kind: claimsSeen})
}

// expireAssumptions ends the assumptions that nothing has confirmed in time. The lock is held.
func (c *claims) expireAssumptions(now time.Time) {
	for name, assumed := range c.assumed {
		if now.After(assumed.until) {
			delete(c.assumed, name)
			c.refresh(name)
		}
	}
}

// claimChanged handles a claim that the watch has delivered. The lock is held.
func (c *claims) claimChanged(old, now *promised, _, exists bool) {
	changed := old
	if exists {
		changed = now
		if assumed, ok := c.assumed[now.claim.Name]; ok && atLeast(now.claim.ResourceVersion, assumed.version) {
			delete(c.assumed, now.claim.Name)
		}
	}
	c.refresh(changed.claim.Name)
}

// refresh decides which version of a claim counts, and notifies the other stores if that has changed. The lock is held.
func (c *claims) refresh(name string) {
	old, now := c.places.claims[name], c.feed.items[name]
	if assumed, ok := c.assumed[name]; ok {
		now = assumed.claim
	}
	if old == now {
		return
	}
	if initialized(now) && !initialized(old) {
		if old != nil {
			c.grown.cameUp(now)
		}
		c.overdue.learn(now)
	}
	if now == nil {
		c.promises.retract(name)
	}
	c.places.putClaim(name, now)
	c.publish(Event{Kind: ClaimChanged, Name: name})
}
