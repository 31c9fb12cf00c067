package workflows

import (
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Start says how a workflow is started: what the Temporal UI shows of it, and what happens if its id is taken. The starter,
// which starts workflows from outside, and workflows that start children use the same value, so that a claim looks the same
// whoever started it.
type Start struct {
	ID         string
	TaskQueue  string
	Summary    string
	Attributes []temporal.SearchAttributeUpdate
	// Memo says to which object the workflow belongs, for those who list workflows.
	Memo map[string]any
	// Priority is one of the priorities of this package.
	Priority int
	// Again allows a second run after an earlier one has ended; a running one always keeps the id.
	Again bool
}

// The memo keys of workflows that belong to one object. The sweep uses them to find workflows whose object is gone.
const (
	// MemoUID is the UID of the NodeClaim or, for a Drain, of the Node.
	MemoUID = "uid"
	// MemoClusterUID distinguishes the cluster from another of the same name.
	MemoClusterUID = "clusterUID"
)

// LaunchOptions says how the Launch of a group is started. It may run again: its token is made from its id and claims, so a
// second run finds what the first one launched.
func LaunchOptions(c Cluster, g LaunchGroup) Start {
	return Start{ID: c.LaunchID(g.Group), TaskQueue: c.TaskQueue(), Again: true, Priority: priorityPending,
		Summary: fmt.Sprintf("launch %d for NodePool %s", len(g.Claims), orNone(g.NodePool)),
		Attributes: []temporal.SearchAttributeUpdate{
			AttrCluster.ValueSet(string(c)), AttrNodePool.ValueSet(g.NodePool), AttrPhase.ValueSet("Launching")}}
}

// NodeClaimOptions says how the NodeClaim workflow of a claim is started.
func NodeClaimOptions(in NodeClaimInput) Start {
	return Start{ID: in.Cluster.NodeClaimID(in.Claim.Name), TaskQueue: in.Cluster.TaskQueue(), Again: true, Priority: priorityPending,
		Memo:    map[string]any{MemoUID: in.Claim.UID, MemoClusterUID: in.ClusterUID},
		Summary: fmt.Sprintf("%s %s in %s for NodePool %s", in.Instance.CapacityType, in.Instance.InstanceType, in.Instance.Zone, orNone(in.NodePool)),
		Attributes: []temporal.SearchAttributeUpdate{
			AttrCluster.ValueSet(string(in.Cluster)), AttrNodePool.ValueSet(in.NodePool), AttrNodeClaim.ValueSet(in.Claim.Name),
			AttrInstance.ValueSet(in.Instance.ID), AttrZone.ValueSet(in.Instance.Zone), AttrPhase.ValueSet(PhaseJoining)}}
}

// DrainOptions says how the Drain of a node is started.
func DrainOptions(in DrainInput) Start {
	return Start{ID: in.Cluster.DrainID(in.Node), TaskQueue: in.Cluster.TaskQueue(), Again: true, Priority: priorityOf(in.Reason),
		Memo:    map[string]any{MemoUID: in.NodeUID, MemoClusterUID: in.ClusterUID},
		Summary: fmt.Sprintf("drain %s: %s", in.Node, in.Reason),
		Attributes: []temporal.SearchAttributeUpdate{
			AttrCluster.ValueSet(string(in.Cluster)), AttrNodePool.ValueSet(in.NodePool), AttrNodeClaim.ValueSet(in.Claim),
			AttrNode.ValueSet(in.Node), AttrPhase.ValueSet(PhaseDraining), AttrReason.ValueSet(in.Reason)}}
}

// ProvisioningOptions says how the cluster's Provisioning is started.
func ProvisioningOptions(c Cluster) Start {
	return Start{ID: c.ProvisioningID(), TaskQueue: c.TaskQueue(), Again: true, Priority: priorityPending, Summary: "nodes for pending pods",
		Attributes: []temporal.SearchAttributeUpdate{AttrCluster.ValueSet(string(c))}}
}

// DisruptionOptions says how the cluster's Disruption is started.
func DisruptionOptions(c Cluster) Start {
	return Start{ID: c.DisruptionID(), TaskQueue: c.TaskQueue(), Again: true, Priority: priorityTidying, Summary: "nodes that are no longer needed",
		Attributes: []temporal.SearchAttributeUpdate{AttrCluster.ValueSet(string(c))}}
}

// ReplacementOptions says how a Replacement is started. Its id is used once: a second run would begin again what the first
// one has undone.
func ReplacementOptions(in ReplacementInput) Start {
	first := in.Nodes[0]
	return Start{ID: in.Cluster.ReplacementID(in.ID), TaskQueue: in.Cluster.TaskQueue(), Priority: priorityOf(in.Reason),
		Summary: fmt.Sprintf("%s: %d nodes go, %d come", in.Reason, len(in.Nodes), len(in.Claims)),
		Attributes: []temporal.SearchAttributeUpdate{
			AttrCluster.ValueSet(string(in.Cluster)), AttrNodePool.ValueSet(first.NodePool), AttrNodeClaim.ValueSet(first.Claim.Name),
			AttrNode.ValueSet(first.Node), AttrPhase.ValueSet(PhaseReplacing), AttrReason.ValueSet(in.Reason)}}
}

// ApprovalOptions says how an Approval is started. It may run again: what has expired may be proposed again.
func ApprovalOptions(in ApprovalInput) Start {
	first := in.Nodes[0]
	return Start{ID: in.Cluster.ApprovalID(in.ID), TaskQueue: in.Cluster.TaskQueue(), Again: true, Priority: priorityTidying,
		Memo:    map[string]any{MemoClusterUID: in.ClusterUID},
		Summary: fmt.Sprintf("%s: %d nodes wait for approval", in.Reason, len(in.Nodes)),
		Attributes: []temporal.SearchAttributeUpdate{
			AttrCluster.ValueSet(string(in.Cluster)), AttrNodePool.ValueSet(first.NodePool), AttrNodeClaim.ValueSet(first.Claim.Name),
			AttrNode.ValueSet(first.Node), AttrPhase.ValueSet(PhaseWaiting), AttrReason.ValueSet(in.Reason)}}
}

// ReplacementOrderOptions says how the workflow of a person's order to replace nodes is started. name distinguishes the order
// from all others.
func ReplacementOrderOptions(in ReplacementOrderInput, name string) Start {
	return Start{ID: in.Cluster.ReplacementOrderID(name), TaskQueue: in.Cluster.TaskQueue(), Priority: priorityOrdered,
		Summary:    fmt.Sprintf("replace %d nodes, ordered by %s", len(in.Nodes), orNone(in.By)),
		Attributes: []temporal.SearchAttributeUpdate{AttrCluster.ValueSet(string(in.Cluster)), AttrReason.ValueSet(ReasonManualReplacement)}}
}

// Client returns the options for starting the workflow from outside.
func (s Start) Client() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID:                       s.ID,
		TaskQueue:                s.TaskQueue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    s.reuse(),
		StaticSummary:            s.Summary,
		Memo:                     s.Memo,
		Priority:                 temporal.Priority{PriorityKey: s.Priority},
		TypedSearchAttributes:    temporal.NewSearchAttributes(s.Attributes...),
	}
}

// child returns a context for starting the workflow as a child that outlives its parent.
func (s Start) child(ctx workflow.Context) workflow.Context {
	return workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            s.ID,
		TaskQueue:             s.TaskQueue,
		WorkflowIDReusePolicy: s.reuse(),
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WaitForCancellation:   true,
		StaticSummary:         s.Summary,
		Memo:                  s.Memo,
		Priority:              temporal.Priority{PriorityKey: s.Priority},
		TypedSearchAttributes: temporal.NewSearchAttributes(s.Attributes...),
	})
}

func (s Start) reuse() enumspb.WorkflowIdReusePolicy {
	if s.Again {
		return enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}
	return enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
}

func orNone(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}
