package workflows

import (
	"go.temporal.io/sdk/temporal"
)

// The workflow types, as the Temporal UI shows them.
const (
	ProvisioningType = "Provisioning"
	LaunchType       = "Launch"
	NodeClaimType    = "NodeClaim"
	DrainType        = "Drain"
	DisruptionType   = "Disruption"
	ReplacementType  = "Replacement"
	ApprovalType     = "Approval"
	SweepType        = "Sweep"

	ReplacementOrderType = "ReplacementOrder"
)

// Cluster is the name of the Kubernetes cluster that workflows belong to. One Temporal namespace serves many clusters:
// the task queue is the cluster's name, and every workflow id begins with it.
type Cluster string

// TaskQueue is the one task queue of the cluster's workflows and activities.
func (c Cluster) TaskQueue() string { return string(c) }

// Deployment is the Worker Deployment whose versions are the builds that work for the cluster.
func (c Cluster) Deployment() string { return string(c) }

// ProvisioningID is the id of the cluster's only Provisioning workflow.
func (c Cluster) ProvisioningID() string { return string(c) + "/provisioning" }

// LaunchID is the id of the Launch workflow of a launch group.
func (c Cluster) LaunchID(group string) string { return string(c) + "/launch/" + group }

// NodeClaimID is the id of the NodeClaim workflow of a claim.
func (c Cluster) NodeClaimID(claim string) string { return string(c) + "/nodeclaim/" + claim }

// DrainID is the id of the Drain workflow of a node.
func (c Cluster) DrainID(node string) string { return string(c) + "/drain/" + node }

// DisruptionID is the id of the cluster's only Disruption workflow.
func (c Cluster) DisruptionID() string { return string(c) + "/disruption" }

// ReplacementID is the id of a Replacement workflow. The short id is on the Nodes and claims it is about.
func (c Cluster) ReplacementID(id string) string { return string(c) + "/replacement/" + id }

// ApprovalID is the id of an Approval workflow. The short id is on the NodeClaims it is about.
func (c Cluster) ApprovalID(id string) string { return string(c) + "/approval/" + id }

// ReplacementOrderID is the id of the workflow of a person's order to replace nodes, which has a name of its own.
func (c Cluster) ReplacementOrderID(name string) string {
	return string(c) + "/replacement-order/" + name
}

// SweepID is the id of the cluster's sweep Schedule; each run's workflow id is this and a timestamp.
func (c Cluster) SweepID() string { return string(c) + "/sweep" }

// The search attributes, all Keywords. They are readable by everyone who may list workflows: names only, no secrets.
var (
	AttrCluster   = temporal.NewSearchAttributeKeyKeyword("TenonCluster")
	AttrNodePool  = temporal.NewSearchAttributeKeyKeyword("NodePool")
	AttrNodeClaim = temporal.NewSearchAttributeKeyKeyword("NodeClaim")
	AttrNode      = temporal.NewSearchAttributeKeyKeyword("Node")
	AttrInstance  = temporal.NewSearchAttributeKeyKeyword("Instance")
	AttrZone      = temporal.NewSearchAttributeKeyKeyword("Zone")
	AttrPhase     = temporal.NewSearchAttributeKeyKeyword("Phase")
	AttrReason    = temporal.NewSearchAttributeKeyKeyword("Reason")
)

// Attributes returns the names of the search attributes a Temporal namespace must have.
func Attributes() []string {
	return []string{AttrCluster.GetName(), AttrNodePool.GetName(), AttrNodeClaim.GetName(), AttrNode.GetName(), AttrInstance.GetName(),
		AttrZone.GetName(), AttrPhase.GetName(), AttrReason.GetName()}
}

// Reasons for which a node is removed. Each removal records exactly one of them.
const (
	// ReasonEmpty means that the node had no pods that need one.
	ReasonEmpty = "Empty"
	// ReasonExpired means that the node has reached the claim's expireAfter.
	ReasonExpired = "Expired"
	// ReasonClaimDeleted means that somebody deleted the NodeClaim, or its NodePool.
	ReasonClaimDeleted = "ClaimDeleted"
	// ReasonNodeDeleted means that somebody deleted the Node.
	ReasonNodeDeleted = "NodeDeleted"
	// ReasonManualDrain means that somebody ran tenon drain.
	ReasonManualDrain = "ManualDrain"
	// ReasonManualReplacement means that a person has ordered the node to be replaced (plan.DisruptionReasonOrdered).
	ReasonManualReplacement = "ManualReplacement"
	// ReasonLaunchTimeout means that no instance could be launched in time.
	ReasonLaunchTimeout = "LaunchTimeout"
	// ReasonRegistrationTimeout means that the instance ran and its Node has not joined the cluster in fifteen minutes.
	ReasonRegistrationTimeout = "RegistrationTimeout"
	// ReasonInsufficient means that EC2 refused capacity for everything that the claim allows.
	ReasonInsufficient = "InsufficientCapacity"
	// ReasonNodeClassNotReady means that the node class was not ready, or was gone, when the claim was to be launched.
	ReasonNodeClassNotReady = "NodeClassNotReady"
	// ReasonInstanceGone means that the instance is gone, and nobody announced it.
	ReasonInstanceGone = "InstanceGone"
	// ReasonPaused means that a person has paused launches before a claim got its instance.
	ReasonPaused = "ProvisioningPaused"
	// ReasonHookFailed means that a hook failed without which its NodePool wants no node to serve.
	ReasonHookFailed = "HookFailed"
	// ReasonClaimGone means that the NodeClaim vanished, for example because its finalizer was removed by hand.
	ReasonClaimGone = "ClaimGone"
	// ReasonClusterGone means that the cluster vanished and another one has its name.
	ReasonClusterGone = "ClusterGone"
)

// ReasonUnhealthy means that a node has been in a condition from which its instance will not recover, for longer than the
// provider tolerates. What runs on it is lost anyway, so its drain ends at once.
const ReasonUnhealthy = "Unhealthy"
