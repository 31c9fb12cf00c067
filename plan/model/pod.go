package model

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is what planning needs of a pod. It is immutable: an update in the API is a new Pod.
type Pod struct {
	UID       types.UID
	Namespace string
	Name      string

	// Class is what the pod asks of a node, shared by all pods that ask the same.
	Class *Class
	// Labels are what other pods' selectors see of this pod, shared by all pods that look the same.
	Labels *Labels
	// Mounts are the volumes that have to be available on the pod's node; nil if it has none.
	Mounts *Mounts
	// Claims are the pod's claims to devices, shared by all pods that have the same; nil if it has none.
	Claims *PodClaims

	// Node is the node the pod is bound to; empty while it has none.
	Node string
	// NominatedNode is the node on which the kube-scheduler means to place the pod after preempting others, or on which a
	// planner told it to expect the pod.
	NominatedNode string
	// NominatedAt is when the mirror first saw NominatedNode with its present value; zero without a NominatedNode.
	NominatedAt time.Time
	// OwnerKind and OwnerName name the controller, such as ReplicaSet web-5d9c7; empty for a bare pod.
	OwnerKind, OwnerName string

	Created time.Time
	// Started is status.startTime: when the kubelet first saw the pod.
	Started time.Time
	// Deletion is metadata.deletionTimestamp: when a deleted pod has to be gone; zero if the pod was not deleted.
	Deletion time.Time
	// GracePeriod is the pod's terminationGracePeriodSeconds.
	GracePeriod time.Duration

	Priority int32
	// DeletionCost is the annotation controller.kubernetes.io/pod-deletion-cost.
	DeletionCost int32
	// Misprotected is the value of the annotation karpenter.sh/do-not-disrupt if it is invalid; empty otherwise.
	Misprotected string
	// DoNotDisruptFor limits DoNotDisrupt, counted from Started; zero means no limit.
	DoNotDisruptFor time.Duration
	// DoNotDisrupt is the annotation karpenter.sh/do-not-disrupt (or the older karpenter.sh/do-not-evict).
	DoNotDisrupt bool

	// Ready is the pod's own condition.
	Ready bool
	// Unschedulable says that the kube-scheduler has tried, and found no node for the pod.
	Unschedulable bool
	// Unseen says that the pod is left to the default kube-scheduler, which has not written a condition for it yet.
	Unseen bool
	// Gated says that the pod has scheduling gates.
	Gated bool
	// Daemon says that a DaemonSet owns the pod.
	Daemon bool
	// Static says that the pod belongs to a kubelet: it is a mirror pod, or owned by its Node.
	Static bool
	// Terminal says that the pod has succeeded or failed.
	Terminal bool
	// Critical says that the pod is of class system-cluster-critical or system-node-critical.
	Critical bool
	// Virtual says that the pod does not exist: it stands for room that a CapacityBuffer keeps free. It is planned for
	// after all others, and never bound, evicted, nominated or reported.
	Virtual bool
}

// Key is namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

// Workload names the controller of pods; its kind and name are empty for bare pods.
type Workload struct{ namespace, kind, name string }

// Workload returns the controller that the pod is a replica of.
func (p *Pod) Workload() Workload { return Workload{p.Namespace, p.OwnerKind, p.OwnerName} }

// Terminating says that the pod has been deleted and is not gone yet.
func (p *Pod) Terminating() bool { return !p.Deletion.IsZero() }

// Provisionable says that the pod may need a node that does not exist: the kube-scheduler is to place it, and found no
// node. Snapshot.WaitingForNode decides whether the kube-scheduler is making room for it.
func (p *Pod) Provisionable() bool { return p.Unschedulable && p.Placeable() }

// Placeable says that the pod is bound to no node, and that the kube-scheduler is to find it one.
func (p *Pod) Placeable() bool {
	return p.Node == "" && !p.Gated && !p.Daemon && !p.Static && !p.Terminal && !p.Terminating()
}

// Reschedulable says that the pod would need another node if its node went away. A pod of a StatefulSet does even while it
// terminates, because its successor is created only when it is gone.
func (p *Pod) Reschedulable() bool {
	return !p.Daemon && !p.Static && !p.Terminal && (!p.Terminating() || p.OwnerKind == "StatefulSet")
}

// Undisruptable says that the pod asks not to be moved at the given time.
func (p *Pod) Undisruptable(now time.Time) bool {
	if !p.DoNotDisrupt || p.Terminal || p.Terminating() {
		return false
	}
	until := p.DisruptableAt()
	return until.IsZero() || now.Before(until)
}

// DisruptableAt is when the pod's wish not to be disrupted ends; zero if it does not.
func (p *Pod) DisruptableAt() time.Time {
	if p.DoNotDisruptFor == 0 || p.Started.IsZero() {
		return time.Time{}
	}
	return p.Started.Add(p.DoNotDisruptFor)
}

// bootsIn is how long before its end a pod that asks not to be disrupted gets another place: as long as EC2 leaves a spot
// instance after its notice, and twice as long as a machine takes to serve. An earlier place would only cost money.
const bootsIn = 2 * time.Minute

// MovesAt returns the time from which a pod of a leaving node has to have another place, and whether it ever has to. A
// drain evicts most pods at once. It waits for a pod that asks not to be disrupted, until that request ends or the pod is
// about to be lost with its node, whichever is earlier; its new place is not needed before. ends is when the node ends,
// zero for never. A time in the past means now.
func (p *Pod) MovesAt(ends, now time.Time) (at time.Time, moves bool) {
	switch {
	case !p.Reschedulable():
		return time.Time{}, false
	case !p.Undisruptable(now):
		return now, true
	}
	at = p.DisruptableAt()
	if lost := ends.Add(-p.GracePeriod - bootsIn); !ends.IsZero() && (at.IsZero() || lost.Before(at)) {
		at = lost
	}
	return at, !at.IsZero()
}

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

// Labels are a pod's namespace and labels: all that a label selector can see of it.
type Labels struct {
	Namespace string
	Set       map[string]string
	// Key is equal for equal labels.
	Key string
}

// Class is everything a pod asks of the node it runs on. Two pods of one class can stand in for each other in every
// question that does not concern other pods. A Class is immutable and comparable by pointer within one Interner.
type Class struct {
	// Requests are the pod's requests as the kube-scheduler counts them: init containers, sidecars, overhead and
	// pod-level resources included, and one pod.
	Requests Resources
	// NodeSelector and NodeAffinity are the pod's required node selection; both have to hold.
	NodeSelector map[string]string
	NodeAffinity *corev1.NodeSelector
	// PreferredNodes are the preferred terms of the pod's node affinity.
	PreferredNodes []corev1.PreferredSchedulingTerm
	Tolerations    []corev1.Toleration
	HostPorts      []HostPort
	// Spread, Affinity and AntiAffinity relate the pod to others.
	Spread       []corev1.TopologySpreadConstraint
	Affinity     *corev1.PodAffinity
	AntiAffinity *corev1.PodAntiAffinity
	// ResourceClaims says that the pod asks for devices by dynamic resource allocation.
	ResourceClaims bool

	// ID identifies the class by content: equal in every process for equal shapes. It is not for people.
	ID string
}

// AsksDevice says whether a class asks for a device.
func AsksDevice(c *Class) bool { return c.ResourceClaims || c.Requests.HasDevice() }

// HostPort is a port of the node that a pod occupies.
type HostPort struct {
	// IP is the address the port is taken on, 0.0.0.0 for all of them.
	IP       string
	Port     int32
	Protocol corev1.Protocol
}

// Conflicts says that two pods cannot take these ports on one node.
func (h HostPort) Conflicts(other HostPort) bool {
	if h.Port != other.Port || h.Protocol != other.Protocol {
		return false
	}
	return h.IP == other.IP || h.IP == anyAddress || other.IP == anyAddress
}

const anyAddress = "0.0.0.0"

// DaemonSet is what planning needs of a DaemonSet: the shape of the pod it puts on every node that admits it.
type DaemonSet struct {
	Namespace string
	Name      string
	Class     *Class
	// Claims are those of each of its pods.
	Claims *PodClaims
}

// AntiTerms are the required terms of anti-affinity of a class.
func AntiTerms(class *Class) []corev1.PodAffinityTerm {
	if class.AntiAffinity == nil {
		return nil
	}
	return class.AntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}
