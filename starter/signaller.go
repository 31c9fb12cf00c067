package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// endAgain is the delay before an ending that could not be signalled to a claim's workflow is signalled again.
const endAgain = 5 * time.Second

// signaller starts and signals the workflows of one cluster, for all edges.
type signaller struct {
	temporal client.Client
	cluster  workflows.Cluster
	// clusterUID distinguishes the cluster from another one with its name.
	clusterUID string
	// labelKeys are the provider's.
	labelKeys cloud.LabelKeys
}

// launch starts the Launch of a group of claims unless it is running.
func (s *signaller) launch(ctx context.Context, group workflows.LaunchGroup, adopted bool) error {
	options := workflows.LaunchOptions(s.cluster, group)
	in := workflows.LaunchInput{Cluster: s.cluster, ClusterUID: s.clusterUID, LaunchGroup: group, Adopted: adopted}
	if _, err := s.temporal.ExecuteWorkflow(ctx, options.Client(), workflows.LaunchType, in); err != nil {
		var running *serviceerror.WorkflowExecutionAlreadyStarted
		if errors.As(err, &running) {
			return nil
		}
		return fmt.Errorf("start %s: %w", options.ID, err)
	}
	return nil
}

// end signals an ending to a claim's workflow. If the workflow is missing, because the claim existed before Tenon or a
// person terminated the workflow, end starts it, with the instance that the claim's status names.
func (s *signaller) end(ctx context.Context, claim *karpv1.NodeClaim, ending workflows.Ending) error {
	in := workflows.ClaimInput(s.cluster, s.clusterUID, s.labelKeys, claim)
	return s.signal(ctx, workflows.NodeClaimOptions(in), workflows.NodeClaimType, in, workflows.SignalEnding, ending)
}

// provision signals Provisioning that there is something to plan.
func (s *signaller) provision(ctx context.Context, pending workflows.PodsPending) error {
	return s.signalProvisioning(ctx, workflows.SignalPodsPending, pending)
}

// evaluate signals Disruption to evaluate.
func (s *signaller) evaluate(ctx context.Context) error {
	return s.signalDisruption(ctx, workflows.SignalEvaluate, nil)
}

// refused signals Provisioning and Disruption which offerings to avoid.
func (s *signaller) refused(ctx context.Context, refused workflows.CapacityRefused) error {
	if err := s.signalProvisioning(ctx, workflows.SignalCapacityRefused, refused); err != nil {
		return err
	}
	return s.signalDisruption(ctx, workflows.SignalCapacityRefused, refused)
}

// tellDrain signals a fact to the drain of a node. It does nothing if there is no such drain.
func (s *signaller) tellDrain(ctx context.Context, node string, fact workflows.DrainWaiter) error {
	err := s.temporal.SignalWorkflow(ctx, s.cluster.DrainID(node), "", workflows.SignalDrainNotify, fact)
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("signal %s: %w", s.cluster.DrainID(node), err)
	}
	return nil
}

// approve starts the Approval of a proposal unless it is running.
func (s *signaller) approve(ctx context.Context, in workflows.ApprovalInput) error {
	options := workflows.ApprovalOptions(in)
	if _, err := s.temporal.ExecuteWorkflow(ctx, options.Client(), workflows.ApprovalType, in); err != nil {
		return fmt.Errorf("start %s: %w", options.ID, err)
	}
	return nil
}

// withdraw tells an Approval that its decision no longer holds. It does nothing if there is no such Approval.
func (s *signaller) withdraw(ctx context.Context, id, why string) error {
	err := s.temporal.SignalWorkflow(ctx, s.cluster.ApprovalID(id), "", workflows.SignalWithdraw, why)
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("signal %s: %w", s.cluster.ApprovalID(id), err)
	}
	return nil
}

func (s *signaller) signalProvisioning(ctx context.Context, signal string, fact any) error {
	return s.signal(ctx, workflows.ProvisioningOptions(s.cluster), workflows.ProvisioningType,
		workflows.ProvisioningInput{Cluster: s.cluster, ClusterUID: s.clusterUID}, signal, fact)
}

func (s *signaller) signalDisruption(ctx context.Context, signal string, fact any) error {
	return s.signal(ctx, workflows.DisruptionOptions(s.cluster), workflows.DisruptionType,
		workflows.DisruptionInput{Cluster: s.cluster, ClusterUID: s.clusterUID}, signal, fact)
}

// signal signals a workflow, and starts it if it is not running.
func (s *signaller) signal(ctx context.Context, options workflows.Start, workflowType string, input any, signal string, fact any) error {
	if _, err := s.temporal.SignalWithStartWorkflow(ctx, options.ID, signal, fact, options.Client(), workflowType, input); err != nil {
		return fmt.Errorf("signal %s to %s: %w", signal, options.ID, err)
	}
	return nil
}
