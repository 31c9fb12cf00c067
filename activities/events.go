package activities

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Events is how people with kubectl hear of what happens. A client-go record.EventRecorder is one.
type Events interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// recorder tells people with kubectl what happens. One that has nobody to tell tells nobody.
type recorder struct{ to Events }

// tell says something of an object, or of what a reference names.
func (r recorder) tell(object runtime.Object, eventType, reason, message string) {
	if r.to != nil {
		r.to.Event(object, eventType, reason, message)
	}
}

// tellBoth says something of a node to who looks at the Node and to who looks at its claim. Either may be nil.
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
