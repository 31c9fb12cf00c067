package view

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/tenon-sh/tenon/plan"
)

// PodState is where a pod is in its life.
type PodState string

// The states of a pod. The first three are on a node.
const (
	PodReady       PodState = "Ready"
	PodNotReady    PodState = "NotReady"
	PodTerminating PodState = "Terminating"
	// PodGated says that the pod has scheduling gates.
	PodGated PodState = "Gated"
	// PodUnjudged says that the kube-scheduler has not looked at the pod yet.
	PodUnjudged PodState = "Unjudged"
	// PodPromised says that a plan has placed the pod on a node that is there or on its way.
	PodPromised PodState = "Promised"
	// PodWaits says that the kube-scheduler found no node for the pod, and that no plan has placed it.
	PodWaits PodState = "Waits"
	// PodDaemon says that the pod of a DaemonSet waits for its own node; no node is launched for it.
	PodDaemon PodState = "Daemon"
)

// Pod is a pod on a node, or one that waits for a node.
type Pod struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Owner is the workload, such as Deployment/web; empty for a bare pod.
	Owner string   `json:"owner,omitempty"`
	State PodState `json:"state"`
	// CPU is requested in thousandths of a core, Memory in bytes.
	CPU     int64     `json:"cpu"`
	Memory  int64     `json:"memory"`
	Created time.Time `json:"created"`
	// Node is where a waiting pod is expected: the NodeClaim that it is promised to or, without one, the Node. Pods on a node
	// leave it empty.
	Node string `json:"node,omitempty"`
	// Reason says why a pod waits.
	Reason string `json:"reason,omitempty"`
}

// Key is namespace/name.
func (p *Pod) Key() string { return p.Namespace + "/" + p.Name }

func podOf(p *plan.Pod) Pod {
	pod := Pod{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Owner: ownerOf(p), Created: p.Created}
	if p.Class != nil {
		pod.CPU, pod.Memory = p.Class.Requests.CPU, p.Class.Requests.Memory
	}
	switch {
	case p.Terminating():
		pod.State = PodTerminating
	case p.Ready:
		pod.State = PodReady
	default:
		pod.State = PodNotReady
	}
	return pod
}

// waitingPod is a pod without a node. promised is where a plan has placed it; reason is what a plan says about it, empty if
// none has looked at it.
func waitingPod(p *plan.Pod, promised, reason string) *Pod {
	pod := podOf(p)
	switch {
	case p.Terminating():
		pod.Reason = "it is being deleted and gets no node"
	case p.Gated:
		pod.State, pod.Reason = PodGated, "it has scheduling gates"
	case p.Daemon:
		pod.State, pod.Reason = PodDaemon, "it belongs to a DaemonSet: no node is launched for it"
	case promised != "":
		pod.State, pod.Node, pod.Reason = PodPromised, promised, "a plan was made for it: it is meant for "+promised
	case !p.Unschedulable:
		pod.State, pod.Reason = PodUnjudged, "the kube-scheduler has not judged it yet"
	default:
		pod.State, pod.Reason = PodWaits, reason
		if reason == "" {
			pod.Reason = "no plan has looked at it yet"
		}
	}
	return &pod
}

// ownerOf names a pod's workload. A ReplicaSet of a Deployment is named after its Deployment, and the pod's own label tells
// that it is one.
func ownerOf(p *plan.Pod) string {
	if p.OwnerKind == "" {
		return ""
	}
	if p.OwnerKind == "ReplicaSet" && p.Labels != nil {
		hash := p.Labels.Set[appsv1.DefaultDeploymentUniqueLabelKey]
		if name, is := strings.CutSuffix(p.OwnerName, "-"+hash); is && hash != "" {
			return "Deployment/" + name
		}
	}
	return p.OwnerKind + "/" + p.OwnerName
}
