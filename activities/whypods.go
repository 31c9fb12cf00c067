package activities

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// WhyPods returns a sentence for each pod for which the kube-scheduler found no node: what one plan of all of them makes of
// it at the moment. It changes nothing, and it is no activity: the page of this worker asks it. Unlike WhyPod it does not
// know what Provisioning remembers, such as pauses of growth; what the cloud has refused, the provider knows itself.
func (a *answerer) WhyPods(ctx context.Context) (map[types.UID]string, error) {
	select {
	case a.plans <- struct{}{}:
		defer func() { <-a.plans }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := a.mirror.Fresh(freshEnough); err != nil {
		return nil, fmt.Errorf("plan for the pending pods: %w", err)
	}
	return sentences(plan.Pack(a.inputs.of(ctx, a.mirror.Snapshot(), nil))), nil
}

// sentences are what a plan says about each of its pods.
func sentences(packed plan.Plan) map[types.UID]string {
	said := map[types.UID]string{}
	for _, placement := range packed.Placements {
		said[placement.Pod.UID] = "it fits on " + placement.Node
	}
	for i := range packed.Claims {
		claim := &packed.Claims[i]
		for _, pod := range claim.Pods {
			said[pod] = fmt.Sprintf("the next plan launches a node for it: NodePool %s, %s %s", claim.NodePool, claim.CapacityType, claim.InstanceTypes[0])
		}
	}
	for _, left := range packed.Unplaced {
		said[left.Pod.UID] = reasons(left.Reasons)
	}
	return said
}
