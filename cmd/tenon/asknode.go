package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/workflows"
)

func newWhyNodeCommand(flags *whyFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "node NAME",
		Short: "Say why a node stays, or why it goes or went",
		Long: `Says what keeps a node at this moment, for each reason for which nodes are taken away: whether the reason applies to it at
all, and else what is in the way, such as a budget, a PodDisruptionBudget, a pod, the price, or that it is too early. Where
the node is being removed, it says what that waits for.

NAME is that of a Node or of a NodeClaim. The worker is asked, since it has the whole cluster, prices and capacity in view;
asking changes nothing. Of a node that is gone the recorded reason is told, for as long as its workflow is kept.`,
		Example: "  tenon why node ip-10-0-1-2.ec2.internal\n  tenon why node default-7g5xk\n  tenon why node default-7g5xk -o json",
		Args:    oneNode,
		RunE:    withInquiry(flags, func(ctx context.Context, i *inquiry, name string) error { return i.node(ctx, name) }),
	}
}

// node tells the story of a node.
func (i *inquiry) node(ctx context.Context, name string) error {
	f := nodeFacts{name: name}
	if err := i.find(ctx, &f); err != nil {
		return err
	}
	switch {
	case f.node == nil && f.claim == nil:
		past, err := i.remembered(ctx, name)
		if err != nil {
			return err
		}
		if past == nil {
			return fmt.Errorf("there is no node or NodeClaim %s in this Kubernetes cluster, and no workflow of cluster %s remembers one", name, i.cluster)
		}
		f.past = past
	case f.claim != nil:
		answer, err := (ask.Asker{Temporal: i.temporal, Cluster: i.cluster}).Node(ctx, f.claim.Name)
		if err != nil {
			return err
		}
		f.answer, f.price = &answer, i.price(ctx, f.claim.Name)
		if answer.Replacement != "" {
			f.replacement = i.replacement(ctx, answer.Replacement)
		}
	}
	if f.node != nil {
		f.drain = i.drainOf(ctx, f.node)
	}
	return i.tell(f.story())
}

// find looks up the Node and the NodeClaim with a name, either of which may be missing.
func (i *inquiry) find(ctx context.Context, f *nodeFacts) error {
	var node corev1.Node
	switch err := i.kube.Get(ctx, kube.ObjectKey{Name: f.name}, &node); {
	case err == nil:
		f.node = &node
		f.claim, err = claimOf(ctx, i.kube, &node)
		return err
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read node %s: %w", f.name, err)
	}
	var claim karpv1.NodeClaim
	switch err := i.kube.Get(ctx, kube.ObjectKey{Name: f.name}, &claim); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read NodeClaim %s: %w", f.name, err)
	}
	f.claim = &claim
	if claim.Status.NodeName == "" {
		return nil
	}
	if err := i.kube.Get(ctx, kube.ObjectKey{Name: claim.Status.NodeName}, &node); err == nil {
		f.node = &node
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read node %s: %w", claim.Status.NodeName, err)
	}
	return nil
}

// metadataQuery is a query that the SDK itself answers, with what a workflow shows of itself in the Temporal UI.
const metadataQuery = "__temporal_workflow_metadata"

// replacement returns the state of a replacement; nil if nothing is known of it.
func (i *inquiry) replacement(ctx context.Context, id string) *replacementState {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	workflow := i.cluster.ReplacementID(id)
	described, err := i.temporal.DescribeWorkflowExecution(ctx, workflow, "")
	if err != nil {
		return nil
	}
	state := &replacementState{Workflow: workflow, Status: described.GetWorkflowExecutionInfo().GetStatus().String()}
	value, err := i.temporal.QueryWorkflow(ctx, workflow, "", metadataQuery)
	if err != nil {
		return state
	}
	var metadata sdkpb.WorkflowMetadata
	if err := value.Get(&metadata); err == nil {
		state.State, _, _ = strings.Cut(metadata.GetCurrentDetails(), "\n")
	}
	return state
}

// drainOf returns the drain of a node that is running, or that has ended and left the node cordoned; nil if there is
// none or it does not answer. It ignores the drain of an earlier node of the same name.
func (i *inquiry) drainOf(ctx context.Context, node *corev1.Node) *workflows.DrainStatus {
	d := drains{cluster: i.cluster, temporal: i.temporal}
	status, err := d.status(ctx, node.Name)
	if err != nil || status.Started.Before(node.CreationTimestamp.Time) || status.Outcome != "" && !node.Spec.Unschedulable {
		return nil
	}
	return &status
}

// remembered returns what workflows know of a node that is gone; nil if there is nothing.
func (i *inquiry) remembered(ctx context.Context, name string) (*pastNode, error) {
	query := fmt.Sprintf("%s = '%s' AND (%s = '%s' OR %s = '%s')", workflows.AttrCluster.GetName(), quotable(string(i.cluster)),
		workflows.AttrNode.GetName(), quotable(name), workflows.AttrNodeClaim.GetName(), quotable(name))
	page, err := i.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 50})
	if err != nil {
		return nil, fmt.Errorf("look for what is remembered of %s: %w", name, err)
	}
	var best *workflowpb.WorkflowExecutionInfo
	for _, execution := range page.GetExecutions() {
		// The life of the claim says more than its drain, and the latest one is meant.
		if best == nil || rankOf(execution) > rankOf(best) ||
			rankOf(execution) == rankOf(best) && execution.GetStartTime().AsTime().After(best.GetStartTime().AsTime()) {
			best = execution
		}
	}
	if best == nil {
		return nil, nil
	}
	return i.past(ctx, best), nil
}

func rankOf(execution *workflowpb.WorkflowExecutionInfo) int {
	switch execution.GetType().GetName() {
	case workflows.NodeClaimType:
		return 2
	case workflows.DrainType:
		return 1
	}
	return 0
}

// past reads what a workflow knows of a node.
func (i *inquiry) past(ctx context.Context, execution *workflowpb.WorkflowExecutionInfo) *pastNode {
	id, run := execution.GetExecution().GetWorkflowId(), execution.GetExecution().GetRunId()
	p := &pastNode{Workflow: id}
	attributes := execution.GetSearchAttributes().GetIndexedFields()
	for _, field := range []struct {
		at  *string
		key string
	}{
		{&p.Node, workflows.AttrNode.GetName()}, {&p.NodeClaim, workflows.AttrNodeClaim.GetName()},
		{&p.NodePool, workflows.AttrNodePool.GetName()}, {&p.Reason, workflows.AttrReason.GetName()},
	} {
		if payload := attributes[field.key]; payload != nil {
			_ = json.Unmarshal(payload.GetData(), field.at)
		}
	}
	if execution.GetCloseTime() != nil {
		p.Ended = execution.GetCloseTime().AsTime()
	}
	if execution.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		return p
	}
	var result struct {
		Reason  string `json:"reason"`
		Node    string `json:"node"`
		Drain   string `json:"drain"`
		Outcome string `json:"outcome"`
	}
	if err := i.temporal.GetWorkflow(ctx, id, run).Get(ctx, &result); err == nil {
		p.Reason, p.Node, p.Drain = cmp.Or(result.Reason, p.Reason), cmp.Or(result.Node, p.Node), cmp.Or(result.Drain, result.Outcome)
	}
	return p
}

// quotable makes a name safe in a query. Names of Kubernetes objects have no quotes; other words find nothing.
func quotable(name string) string { return strings.ReplaceAll(name, "'", "") }
