package cluster

import karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"

// pools are the NodePools.
type pools struct {
	*shared
	feed *feed[*karpv1.NodePool]
}

func newPools(w *watches) *pools {
	p := &pools{shared: w.shared}
	p.feed = open(w, karpv1.SchemeGroupVersion, "nodepools", &karpv1.NodePool{}, nil, whole[*karpv1.NodePool], nameOf[*karpv1.NodePool], p.poolChanged)
	return p
}

// NodePool returns the NodePool with a name, or nil.
func (p *pools) NodePool(name string) *karpv1.NodePool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.feed.items[name]
}

// NodePools returns all NodePools ordered by name.
func (p *pools) NodePools() []*karpv1.NodePool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return sorted(p.feed.items)
}

func (p *pools) poolChanged(old, now *karpv1.NodePool, existed, exists bool) {
	edited := !existed || !exists || old.UID != now.UID || old.Generation != now.Generation ||
		old.IsTrue(karpv1.ConditionTypeReady) != now.IsTrue(karpv1.ConditionTypeReady)
	if !exists {
		now = old
	}
	p.changed()
	p.publish(Event{Kind: PoolChanged, Name: now.Name})
	if edited {
		p.publish(Event{Kind: PoolEdited, Name: now.Name})
	}
}
