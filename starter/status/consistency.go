package status

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// minShare is the share of what was bought that a node must have, in percent. It is Karpenter's.
	minShare = 90
	// eventInconsistent says that a node has clearly less of a resource than was bought, as Karpenter's.
	eventInconsistent = "FailedConsistencyCheck"
	// reasonInconsistent says that a node has clearly less of a resource than was bought.
	reasonInconsistent = "ConsistencyCheckFailed"
)

// shortfall returns a message about the first resource requested by the claim of which its node has clearly less than
// was bought; empty if there is none. Pods that were planned for the node wait for what it lacks, and nothing else
// tells why.
func shortfall(claim *karpv1.NodeClaim, n *plan.Node) string {
	if !n.Initialized {
		return ""
	}
	bought := plan.ResourcesOf(claim.Status.Capacity)
	for _, name := range slices.Sorted(maps.Keys(claim.Spec.Resources.Requests)) {
		want, has := bought.Get(string(name)), n.Capacity.Get(string(name))
		if want > 0 && 100*has < minShare*want {
			return fmt.Sprintf("expected %s of resource %s, but found %s (%.1f%% of expected)", amount(bought, name), name, amount(n.Capacity, name), 100*float64(has)/float64(want))
		}
	}
	return ""
}

// amount returns the quantity of a resource, formatted for people.
func amount(of plan.Resources, name corev1.ResourceName) string {
	quantity := of.List()[name]
	return quantity.String()
}
