package activities

import (
	"context"
	"fmt"

	smithytime "github.com/aws/smithy-go/time"
	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// checkDrained checks once more a node that its drain left empty. Until the next activity begins Tenon does not watch the
// node: a person may have opened it, and Temporal may have been down meanwhile. If the node is open, checkDrained closes it
// again. It fails if pods have arrived, because they would be lost with the instance.
func (t *terminator) checkDrained(ctx context.Context, claim *karpv1.NodeClaim, in workflows.TerminateInput) error {
	name := nodeOf(claim, in)
	if !in.DrainsAgain || in.Outcome != workflows.Drained || name == "" || in.Instance == "" {
		return nil
	}
	node, err := t.objects.node(ctx, name, in.NodeUID)
	if err != nil || node == nil {
		return err
	}
	if !disrupted(node) {
		if node, err = t.objects.change(ctx, node, "cordon", cordonClaimed); err != nil {
			return err
		}
		if err = smithytime.SleepWithContext(ctx, bindingSettle); err != nil {
			return fmt.Errorf("wait for what the kube-scheduler is binding to %s: %w", name, err)
		}
	}
	on := nodeWatch{client: t.objects.WithWatch, node: node}
	if err := on.list(ctx); err != nil {
		return err
	}
	interner := new(plan.Interner)
	var pods []plan.DrainPod
	for _, pod := range on.pods {
		pods = append(pods, interner.DrainPod(pod))
	}
	// The drain took its time from Temporal's clock. Use the same clock, so that pods it no longer waited for do not count
	// here.
	left := plan.Drain(pods, plan.DrainTerms{Now: activity.GetInfo(ctx).StartedTime, Cordon: cordonTaint(true), Allocatable: interner.Node(node).Allocatable}).Left
	if left == 0 {
		return nil
	}
	// An earlier attempt may already have told EC2: pods that have come to an ending instance cannot be saved.
	found, err := t.cloud.Instances(ctx, cloud.Query{IDs: []string{in.Instance}})
	if err != nil {
		return cloudFailure("look for "+in.Instance, err)
	}
	if len(found) == 0 {
		return nil
	}
	t.events.tellBoth(node, claim, corev1.EventTypeWarning, eventOpenedWhileLeaving, fmt.Sprintf("%d pods have come to the node since it was drained, because somebody opened it; it is drained again.", left))
	return giveUp(workflows.FailureNotDrained, "%d pods have come to node %s since it was drained", left, name)
}

// nodeOf returns the name of the Node whose claim is ending, empty if none is known.
func nodeOf(claim *karpv1.NodeClaim, in workflows.TerminateInput) string {
	if in.Node == "" && claim != nil {
		return claim.Status.NodeName
	}
	return in.Node
}
