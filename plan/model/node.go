package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Reschedulable returns the pods that need another node when this one is removed.
func (n *Node) Reschedulable() []*Pod {
	return slices.DeleteFunc(slices.Clone(n.Pods), func(p *Pod) bool { return !p.Reschedulable() })
}

// LastingTaints returns the taints that keep pods off a node permanently. While a node of Tenon is not initialized, its
// startup taints and those that Kubernetes puts on a node which has just joined do not count: they will soon be removed. On
// other nodes the same taints mean that something is wrong.
func LastingTaints(n *Node) []corev1.Taint {
	passes := func(t corev1.Taint) bool { return passing(n, &t) }
	if n.Initialized || n.Claim == "" || !slices.ContainsFunc(n.Taints, passes) {
		return n.Taints
	}
	return slices.DeleteFunc(slices.Clone(n.Taints), passes)
}

func passing(n *Node, taint *corev1.Taint) bool {
	switch taint.Key {
	case corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, karpv1.UnregisteredTaintKey, "node.cloudprovider.kubernetes.io/uninitialized":
		return true
	}
	if strings.HasPrefix(taint.Key, "readiness.k8s.io/") {
		return true
	}
	return slices.ContainsFunc(n.StartupTaints, func(t corev1.Taint) bool { return t.MatchTaint(taint) })
}

// Node is a place where pods run or will run: a Node, the NodeClaim it comes from, or both. A Node without Claim is not
// Tenon's; a Node without Name is a claim whose machine has not joined yet. Values are immutable once in a Snapshot.
type Node struct {
	// Name and UID are the Kubernetes Node's; empty before it joins.
	Name string
	UID  types.UID
	// Claim and ClaimUID are the NodeClaim's; empty for a node without one.
	Claim    string
	ClaimUID types.UID
	// Pool is the NodePool's name; empty for nodes and claims that belong to none.
	Pool string
	// ProviderID is the cloud's name of the machine; empty before the launch.
	ProviderID string

	// Labels are the Node's. Until it registers, the labels that the claim promises override them.
	Labels map[string]string
	// Requirements are the claim's. They matter until the machine exists: they say what it may still become.
	Requirements Term
	// Requests are what the claim was made for, daemons included.
	Requests Resources
	// Taints are the Node's, or the claim's until it registers. StartupTaints are the claim's own list.
	Taints        []corev1.Taint
	StartupTaints []corev1.Taint
	// Capacity and Allocatable are the Node's, or what the claim expects; zero before the launch.
	Capacity    Resources
	Allocatable Resources
	// AttachLimits are how many volumes the node's CSI drivers can attach to it, by driver. A missing driver has no limit,
	// or has not reported it yet.
	AttachLimits map[string]int
	// Attached are the PersistentVolumes attached to the node, ordered by name.
	Attached []string

	InstanceType string
	Zone         string
	CapacityType string

	// Launched, Registered and Initialized are the claim's conditions. A node without claim is Registered, and
	// Initialized while it is Ready.
	Launched    bool
	Registered  bool
	Initialized bool
	// Ready is the Node's own condition.
	Ready bool
	// Deleting says that the Node or its claim was deleted, or that Disrupted holds: its pods have to go elsewhere.
	Deleting bool
	// Disrupted says that the node carries the taint karpenter.sh/disrupted.
	Disrupted bool
	// Cordoned says that the Node is unschedulable.
	Cordoned bool
	// EndsAt is when everything on the node ends, whatever protects it: the deadline of its drain, or what the cloud has
	// announced (NodeClaim.EndsAt). Zero means that no end is known.
	EndsAt time.Time
	// Terminating says that the cloud has been told to terminate the instance (condition InstanceTerminating).
	Terminating bool
	// DoNotDisrupt says that the Node or its claim carries karpenter.sh/do-not-disrupt, "true" or a duration, or the older
	// karpenter.sh/do-not-consolidate.
	DoNotDisrupt bool
	// Protection is the annotation that makes the node DoNotDisrupt; empty means karpenter.sh/do-not-disrupt.
	Protection string
	// DoNotDisruptUntil is when DoNotDisrupt ends; zero means never. A duration counts from the creation of the object that
	// carries it, because people see that as its age; kubectl shows nowhere when the node was initialized.
	DoNotDisruptUntil time.Time
	// Misprotected is the value of karpenter.sh/do-not-disrupt on the Node or its claim if it is invalid.
	Misprotected string
	// Drifted, DriftedFor and DriftedAt are the claim's condition Drifted while it is True: its reason, and since when.
	Drifted    bool
	DriftedFor string
	DriftedAt  time.Time
	// DriftHash is the claim's (NodeClaim.DriftHash), and Approvals are what people have been asked and have decided about its
	// disruption.
	DriftHash string
	Approvals []karpv1.Approval
	// ExpireAfter is how old the node may become; zero means that it does not expire.
	ExpireAfter time.Duration
	// ExpireOrder is a person's order to replace the node as if it had expired; nil if there is none. ExpireMisread says why
	// the annotation that holds it cannot be read.
	ExpireOrder   *karpv1.ExpireOrder
	ExpireMisread string
	// TerminationGracePeriod limits the node's drain; nil means no limit. It is the claim's own, not the pool's.
	TerminationGracePeriod *time.Duration
	// Replacement is the workflow that replaces the node, or for which it was launched (annotation tenon.sh/replacement on
	// the Node or the claim); empty if there is none.
	Replacement string

	// Created is when the claim was made, or the Node where there is no claim.
	Created time.Time
	// InitializedAt is when the condition Initialized became true.
	InitializedAt time.Time
	// LastPodEvent is when a pod last arrived on the node or left it.
	LastPodEvent time.Time
	// NominatedUntil is the time until which the node is protected because pods were just planned for it.
	NominatedUntil time.Time
	// Promised are the pending pods that were planned for the node and are not bound yet.
	Promised []types.UID

	// Pods are the pods bound to the node, terminal and terminating ones included, ordered by UID.
	Pods []*Pod
}

// Key identifies the node for as long as it lives: the claim's name, or the Node's if there is no claim.
func (n *Node) Key() string { return cmp.Or(n.Claim, n.Name) }

// Managed says that the node comes from a NodeClaim of a NodePool.
func (n *Node) Managed() bool { return n.Claim != "" && n.Pool != "" }

// Nominated says that pods were planned for the node so recently that they may still be on their way.
func (n *Node) Nominated(now time.Time) bool { return now.Before(n.NominatedUntil) }

// Undisruptable says that the node asks not to be disrupted at the given time.
func (n *Node) Undisruptable(now time.Time) bool {
	return n.DoNotDisrupt && (n.DoNotDisruptUntil.IsZero() || now.Before(n.DoNotDisruptUntil))
}

// Unsettled says that the node is a claim whose machine is not known yet.
func (n *Node) Unsettled() bool { return n.Name == "" && !n.Launched }

// ExpiresAt is when the node expires; zero if it does not.
func (n *Node) ExpiresAt() time.Time {
	if n.ExpireAfter == 0 {
		return time.Time{}
	}
	return n.Created.Add(n.ExpireAfter)
}

// Consolidatable says whether the condition Consolidatable holds for a node: it is initialized, and no pod has arrived or
// left for the pool's consolidateAfter. If only time is missing, when is the time from which it will hold. It never holds
// for nodes of static pools, or of pools that never consolidate.
func (n *Node) Consolidatable(pool *karpv1.NodePool, now time.Time) (holds bool, when time.Time) {
	after := pool.Spec.Disruption.ConsolidateAfter
	if after.IsNever() || pool.Spec.Replicas != nil || !n.Initialized {
		return false, time.Time{}
	}
	if quiet := Later(n.InitializedAt, n.LastPodEvent).Add(*after.Duration); now.Before(quiet) {
		return false, quiet
	}
	return true, time.Time{}
}

// WithPods returns a copy of the node that holds these pods.
func (n *Node) WithPods(pods []*Pod) *Node {
	if slices.Equal(n.Pods, pods) {
		return n
	}
	clone := *n
	clone.Pods = pods
	return &clone
}

// Later is the later of two moments.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
