package cluster

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// Observer is told of each change of an object as the watches deliver it, in order: what was known and what is known now. What
// is new has no old version, what is gone no new one. It is called with the lock of the mirror held, so it must be quick and must
// not call the mirror.
type Observer interface {
	// PodChanged is told of pods that have not ended; one that ends is gone. A version that does not exist has a nil Pod.
	PodChanged(old, now PodSeen)
	ClaimChanged(old, now *karpv1.NodeClaim)
	NodeChanged(old, now *corev1.Node)
	PoolChanged(old, now *karpv1.NodePool)
	ClassChanged(old, now cloud.NodeClass)
}

// observe has an observer told of the changes that feeds deliver, before the stores are.
func (m *Mirror) observe(by Observer) {
	if by == nil {
		return
	}
	beforehand(m.pods.feed, func(old, now *Pod) { by.PodChanged(seenPod(old), seenPod(now)) })
	beforehand(m.claims.feed, func(old, now *promised) { by.ClaimChanged(claimObject(old), claimObject(now)) })
	beforehand(m.nodes.feed, func(old, now *machine) { by.NodeChanged(nodeObject(old), nodeObject(now)) })
	beforehand(m.pools.feed, by.PoolChanged)
	beforehand(m.classes.feed, by.ClassChanged)
}

// beforehand has a function called with each change of a feed before the feed's store is notified.
func beforehand[R any](of *feed[R], tell func(old, now R)) {
	next := of.changed
	of.changed = func(old, now R, existed, exists bool) {
		tell(old, now)
		next(old, now, existed, exists)
	}
}

// seenPod is a pod and how far it is.
func seenPod(pod *Pod) PodSeen {
	if pod == nil {
		return PodSeen{}
	}
	return PodSeen{pod, pod.progress}
}
