package cluster

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// overlays are the NodeOverlays.
type overlays struct {
	*shared
	pools *feed[*karpv1.NodePool]
	// feed is nil where they are not watched.
	feed *feed[*karpv1alpha1.NodeOverlay]
}

// newOverlays prepares the watch of NodeOverlays, if follow is set and where the cluster serves them.
func newOverlays(w *watches, pools *feed[*karpv1.NodePool], follow bool) *overlays {
	o := &overlays{shared: w.shared, pools: pools}
	if follow {
		gv := karpv1alpha1.SchemeGroupVersion
		o.feed = open(w, gv, "nodeoverlays", &karpv1alpha1.NodeOverlay{}, nil, whole[*karpv1alpha1.NodeOverlay], nameOf[*karpv1alpha1.NodeOverlay], o.overlayChanged)
		w.whenServed(gv, o.feed.emptied)
	}
	return o
}

// NodeOverlays returns all NodeOverlays ordered by name; none where they are not watched.
func (o *overlays) NodeOverlays() []*karpv1alpha1.NodeOverlay {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if o.feed == nil {
		return nil
	}
	return sorted(o.feed.items)
}

// overlayChanged publishes a change of an overlay and, unless only its status has changed, a change of every NodePool,
// because their offerings may have changed. The lock is held.
func (o *overlays) overlayChanged(old, now *karpv1alpha1.NodeOverlay, existed, exists bool) {
	o.publish(Event{Kind: OverlaysChanged})
	const devices = karpv1alpha1.DeviceTemplatesAnnotationKey // annotations do not count in the generation
	if existed && exists && old.UID == now.UID && old.Generation == now.Generation && old.Annotations[devices] == now.Annotations[devices] {
		return // only its status has changed
	}
	for name := range o.pools.items {
		o.publish(Event{Kind: PoolChanged, Name: name})
		o.publish(Event{Kind: PoolEdited, Name: name})
	}
}
