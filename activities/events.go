package activities

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Reasons of the Events that activities emit; docs/reference/events.md shows these comments.
const (
	// eventFailedScheduling says that a pod gets no node: the message has the reason of each NodePool, the nearest first.
	eventFailedScheduling = "FailedScheduling"
	// eventGrowthPaused says that two nodes were launched for a pod and the kube-scheduler bound it to neither: no more are
	// launched for it for a while.
	eventGrowthPaused = "GrowthPaused"
	// eventNoCompatibleTypes says that nothing can be launched of the NodePool now, whatever pods ask for: no instance type
	// meets its requirements and is available, or too few different ones for its minValues.
	eventNoCompatibleTypes = "NoCompatibleInstanceTypes"
	// eventNominated says which NodeClaim is launched for a pod, for at most ten pods of a plan.
	eventNominated = "Nominated"
	// eventClaimRefused says that the API server has refused NodeClaims of the NodePool.
	eventClaimRefused = "ClaimRefused"
	// eventInsufficientCapacity says that EC2 has refused capacity for everything that the NodeClaim allows. The claim is
	// removed, and its pods are planned for again.
	eventInsufficientCapacity = "InsufficientCapacityError"
	// eventTaintMissing says that a node has joined without the taint karpenter.sh/unregistered, so that pods may have come
	// to it too early: its image or user data do not set it.
	eventTaintMissing = "UnregisteredTaintMissing"
	// eventConsolidationApproved says why the node is removed or replaced, and what that saves.
	eventConsolidationApproved = "ConsolidationApproved"
	// eventDisruptionLaunching names the NodeClaims that are launched to replace the node.
	eventDisruptionLaunching = "DisruptionLaunching"
	// eventWaitingReadiness says that a replacement waits until the launched node serves.
	eventWaitingReadiness = "DisruptionWaitingReadiness"
	// eventDisruptionTerminating says that the node goes now, and why.
	eventDisruptionTerminating = "DisruptionTerminating"
	// eventDisruptionAborted says why the node stays after all, or why what was launched to replace it goes again.
	eventDisruptionAborted = "DisruptionAborted"
	// eventOpenedWhileLeaving says that somebody opened a drained node and pods came to it: it is drained again.
	eventOpenedWhileLeaving = "OpenedWhileLeaving"
	// eventEvicted says from which node a pod is evicted, and why.
	eventEvicted = "Evicted"
	// eventFailedDraining says which pods keep a drain from going on, and what holds each.
	eventFailedDraining = "FailedDraining"
	// eventHookSucceeded says that a hook of the NodePool has run for the node.
	eventHookSucceeded = "HookSucceeded"
	// eventHookFailed says that a hook of the NodePool has failed, and what follows: nothing, a drain that waits, or the node is
	// removed. Or it says why the NodePool's annotation with the hooks cannot be read.
	eventHookFailed = "HookFailed"
	// eventHookSkipped says that a hook did not run, because the deadline of the drain has come.
	eventHookSkipped = "HookSkipped"
	// eventFailedTermination says that the cloud does not terminate the instance, with its error. It is tried again.
	eventFailedTermination = "FailedTermination"
	// eventNodeHeld says that the instance is gone, but finalizers of others hold the Node.
	eventNodeHeld = "NodeHeld"
	// eventWorkflowStuck says that a workflow makes no progress with this build of the worker.
	eventWorkflowStuck = "WorkflowStuck"
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
