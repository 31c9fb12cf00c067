package cluster

import karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"

// openOverlays prepares the watch of NodeOverlays, which are followed where the cluster serves them.
func (m *Mirror) openOverlays(w *watches) {
	gv := karpv1alpha1.SchemeGroupVersion
	m.overlays = open(w, gv, "nodeoverlays", &karpv1alpha1.NodeOverlay{}, nil, whole[*karpv1alpha1.NodeOverlay], nameOf[*karpv1alpha1.NodeOverlay], m.overlayChanged)
	w.whenServed(gv, m.overlays.emptied)
}

// NodeOverlays returns all NodeOverlays ordered by name; none where they are not followed.
func (m *Mirror) NodeOverlays() []*karpv1alpha1.NodeOverlay {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.overlays == nil {
		return nil
	}
	return sorted(m.overlays.items)
}

// overlayChanged tells of an overlay, and of every NodePool where what can be launched may be another now. The lock is held.
func (m *Mirror) overlayChanged(old, now *karpv1alpha1.NodeOverlay, existed, exists bool) {
	m.events.publish(Event{Kind: OverlaysChanged})
	if existed && exists && old.UID == now.UID && old.Generation == now.Generation {
		return // only its status has changed
	}
	for name := range m.pools.items {
		m.events.publish(Event{Kind: PoolChanged, Name: name})
		m.events.publish(Event{Kind: PoolEdited, Name: name})
	}
}
