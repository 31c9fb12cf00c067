package cluster

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/tenon-sh/tenon/plan"
)

// Pod is what the mirror keeps of a pod: what planning and draining need. It is immutable.
type Pod struct {
	*plan.Pod
	// judged says that the kube-scheduler has looked at the pod.
	judged bool
	// moved is when the pod was bound or, if that is later, when it was deleted: the times of its pod events.
	moved time.Time
	// preempted says that the kube-scheduler has chosen the pod to make room for another.
	preempted bool
	// limits are the limits of the pod's containers, shared by all pods that have the same.
	limits *plan.Resources
	// progress is how far the pod is. Only those that watch it read it: it changes while the rest of the pod stays the same, and
	// the lock guards it.
	progress PodProgress
}

// PodProgress is how far a pod is on its way to serve.
type PodProgress struct {
	// Running says that the pod's phase is Running; otherwise it is Pending, or Unknown.
	Running bool
	// Bound and ReadySince are when the pod was bound to a node and when it became Ready, in seconds of Unix time; zero while it
	// is not.
	Bound, ReadySince int64
	// Served says that it has been Ready before.
	Served bool
}

// Limits are the limits of the pod's containers, counted as requests are.
func (p *Pod) Limits() plan.Resources {
	if p.limits == nil {
		return plan.Resources{}
	}
	return *p.limits
}

// progressOf returns how far a pod is.
func progressOf(pod *corev1.Pod) PodProgress {
	progress := PodProgress{Running: pod.Status.Phase == corev1.PodRunning}
	for _, condition := range pod.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case corev1.PodScheduled:
			progress.Bound = condition.LastTransitionTime.Unix()
		case corev1.PodReady:
			progress.ReadySince = condition.LastTransitionTime.Unix()
		}
	}
	progress.Served = progress.ReadySince != 0
	return progress
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (p *Pod) GetObjectMeta() metav1.Object { return named(p.Namespace, p.Name) }

// counts says that the pod's binding and leaving are pod events: those of DaemonSet pods and static pods are not.
func (p *Pod) counts() bool { return !p.Daemon && !p.Static }

// waits says that the pod is pending and the cluster has to find a place for it.
func (p *Pod) waits() bool {
	return p.Node == "" && !p.Daemon && !p.Static && !p.Gated && !p.Terminal && !p.Terminating()
}

// same says that the two versions do not differ in anything the mirror shows.
func (p *Pod) same(other *Pod) bool {
	return *p.Pod == *other.Pod && p.judged == other.judged && p.moved.Equal(other.moved) && p.preempted == other.preempted &&
		p.limits == other.limits
}

// podSelector excludes pods that have ended: they no longer hold anything of a node.
var podSelector = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// openPods prepares the watch of pods. Their store subscribes to it (pods.go).
func openPods(w *watches) *feed[*Pod] {
	return open(w, corev1.SchemeGroupVersion, "pods", &corev1.Pod{}, podSelector, reducePod, (*Pod).Key, nil)
}

func reducePod(interner *plan.Interner, obj any) (*Pod, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, unexpected(pod, obj)
	}
	reduced := &Pod{Pod: interner.Pod(pod), limits: interner.Limits(pod), progress: progressOf(pod)}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Reason == corev1.PodReasonPreemptionByScheduler {
			reduced.preempted = condition.Status == corev1.ConditionTrue
		}
		if condition.Type != corev1.PodScheduled {
			continue
		}
		reduced.judged = condition.Reason != corev1.PodReasonSchedulingGated
		if condition.Status == corev1.ConditionTrue {
			reduced.moved = condition.LastTransitionTime.Time
		}
	}
	if pod.DeletionTimestamp != nil {
		asked := pod.DeletionTimestamp.Time
		if grace := pod.DeletionGracePeriodSeconds; grace != nil {
			asked = asked.Add(-time.Duration(*grace) * time.Second)
		}
		if asked.After(reduced.moved) {
			reduced.moved = asked
		}
	}
	return reduced, nil
}

// byUID is the order in which pods are listed.
func byUID(a, b *plan.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) }
