package model

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// DrainPod is what a drain needs of a pod on the node.
type DrainPod struct {
	*Pod
	// DeletionGrace is the grace period of a deletion under way (metadata.deletionGracePeriodSeconds).
	DeletionGrace time.Duration
	// Finalizers keep the pod's object after its containers have stopped.
	Finalizers []string
	// Protection is the annotation that makes the pod DoNotDisrupt.
	Protection string
}

// DrainPod reduces a pod to what a drain needs.
func (i *Interner) DrainPod(pod *corev1.Pod) DrainPod {
	p := DrainPod{Pod: i.Pod(pod), Finalizers: slices.Clone(pod.Finalizers), Protection: karpv1.DoNotDisruptAnnotationKey}
	p.DeletionGrace = time.Duration(ValueOr(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	if pod.Annotations[karpv1.DoNotDisruptAnnotationKey] == "" {
		p.Protection = karpv1.DoNotEvictAnnotationKey
	}
	return p
}
