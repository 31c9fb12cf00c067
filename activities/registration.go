package activities

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// register makes a Node that has just joined one of Tenon's: it adds the finalizer, the owner, and the claim's labels,
// annotations and taints, and removes the taint that has kept pods away until now. If pods are expected, another taint
// keeps pods away until they are nominated. Calling it twice changes nothing.
func register(node *corev1.Node, claim *karpv1.NodeClaim, expects bool) {
	controllerutil.AddFinalizer(node, karpv1.TerminationFinalizer)
	own(node, claim)
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, claim.Labels)
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	maps.Copy(node.Annotations, claim.Annotations)
	if node.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] != "true" && node.Labels[karpv1.NodeRegisteredLabelKey] != "true" {
		for _, taint := range slices.Concat(claim.Spec.Taints, claim.Spec.StartupTaints) {
			if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
				node.Spec.Taints = append(node.Spec.Taints, taint)
			}
		}
	}
	if expects && node.Labels[karpv1.NodeRegisteredLabelKey] != "true" {
		node.Spec.Taints = append(node.Spec.Taints, karpv1.ExpectingNoScheduleTaint())
	}
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.UnregisteredTaintKey })
	node.Labels[karpv1.NodeRegisteredLabelKey] = "true"
}

// open removes our own taint from a node.
func open(node *corev1.Node) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.ExpectingTaintKey })
}

// own makes the claim the Node's owner, so that the Node is deleted with the claim.
func own(node *corev1.Node, claim *karpv1.NodeClaim) {
	if owned(node, claim) {
		return
	}
	block := true
	node.OwnerReferences = append(node.OwnerReferences, metav1.OwnerReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodeClaim",
		Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: &block})
}

func owned(node *corev1.Node, claim *karpv1.NodeClaim) bool {
	return slices.ContainsFunc(node.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == claim.UID })
}

// Karpenter's reasons why a node is not registered or initialized.
const (
	// reasonNoNode says that the node has not joined the cluster.
	reasonNoNode = "NodeNotFound"
	// reasonNotReady says that the Node is not Ready, or has just joined.
	reasonNotReady = "NodeNotReady"
	// reasonStartupTaint says that a startup taint of the NodePool is still on the Node: whoever should remove it has not.
	reasonStartupTaint = "StartupTaintsExist"
	// reasonEphemeralTaint says that a taint which Kubernetes or the cloud provider removes is still on the Node.
	reasonEphemeralTaint = "KnownEphemeralTaintsExist"
)

// reasonResources says that a node that is otherwise ready lacks a requested resource, such as a device.
const reasonResources = "ResourceNotRegistered"

// reasonDevices says that a driver has not published the devices of a node that is otherwise ready.
const reasonDevices = "DRADriverPoolsNotPublished"

// unguarded reports whether a Node that joins lacks the taint that keeps pods away until it is registered. The user data of
// a Custom image may have omitted it.
func unguarded(node *corev1.Node) bool {
	return !readiness.Registered(node) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == karpv1.UnregisteredTaintKey })
}

// initialization returns why a registered Node cannot serve pods yet; an empty reason means that it can. The reasons are
// Karpenter's.
func initialization(node *corev1.Node, claim *karpv1.NodeClaim) (reason, message string) {
	if !readiness.Ready(node) {
		return reasonNotReady, "Node status is not Ready"
	}
	for _, taint := range claim.Spec.StartupTaints {
		if slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
			return reasonStartupTaint, fmt.Sprintf("StartupTaint %q still exists", taint.ToString())
		}
	}
	for _, taint := range node.Spec.Taints {
		if readiness.Ephemeral(taint) {
			return reasonEphemeralTaint, fmt.Sprintf("KnownEphemeralTaint %q still exists", taint.ToString())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(claim.Spec.Resources.Requests)) {
		requested, allocatable := claim.Spec.Resources.Requests[name], node.Status.Allocatable[name]
		if !requested.IsZero() && allocatable.IsZero() {
			return reasonResources, fmt.Sprintf("Resource %q was requested but not registered", name)
		}
	}
	return "", ""
}
