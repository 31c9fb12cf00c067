package activities

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// The mirror may be behind, and one worker's may be further behind than another's. What ends a machine is never concluded
// from it alone: an object whose name is known is read from the API server, and where none is, the mirror has to be fresh.

// leaving is the result for a claim that is on its way out, or gone if it is nil: what is to be drained, if its Node is
// there already.
func (a *Activities) leaving(ctx context.Context, claim *karpv1.NodeClaim, instance workflows.Instance) (workflows.JoinResult, error) {
	result := workflows.JoinResult{Failed: workflows.ReasonClaimDeleted}
	var node *corev1.Node
	if claim != nil && claim.Status.NodeName != "" {
		node = &corev1.Node{}
		if err := a.objects.Get(ctx, client.ObjectKey{Name: claim.Status.NodeName}, node); err != nil {
			return result, ignoreNotFound("read Node "+claim.Status.NodeName, err)
		}
		if node.Spec.ProviderID != instance.ProviderID {
			return result, nil // another machine has the name now
		}
	} else {
		if err := a.Mirror.Fresh(freshEnough); err != nil {
			return result, fmt.Errorf("look for the Node of %s: %w", instance.ProviderID, err)
		}
		node = a.Mirror.NodeByProviderID(instance.ProviderID)
	}
	if node != nil {
		result.Node, result.NodeUID = node.Name, string(node.UID)
	}
	return result, nil
}

// registerBy is when a claim's Node must have joined. Whoever begins to wait late, because no worker could see the
// cluster, gives it a while longer: it could not join either where the API server was away.
func registerBy(claim *karpv1.NodeClaim, now time.Time) time.Time {
	by := claim.Condition(karpv1.ConditionTypeLaunched).LastTransitionTime.Add(workflows.RegistrationTimeout)
	if least := now.Add(patience); by.Before(least) {
		return least
	}
	return by
}
