package activities

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Events tells people with kubectl what happens. A client-go record.EventRecorder implements it.
type Events interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// recorder emits Events. With nil, it emits none.
type recorder struct{ to Events }

// tell emits an Event about an object, or about the object that a reference names.
func (r recorder) tell(object runtime.Object, eventType, reason, message string) {
	if r.to != nil {
		r.to.Event(object, eventType, reason, message)
	}
}

// tellBoth emits an Event about a node on both the Node and its claim. Either may be nil.
func (r recorder) tellBoth(node *corev1.Node, claim *karpv1.NodeClaim, eventType, reason, message string) {
	if node != nil {
		r.tell(node, eventType, reason, message)
	}
	if claim != nil {
		r.tell(claimReference(claim), eventType, reason, message)
	}
}

func claimReference(claim *karpv1.NodeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim", Name: claim.Name, UID: claim.UID}
}
