package workflows

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// UnlaunchedGroup returns the launch group of a claim with all claims in it that still need an instance. They are adopted
// together: if adopted one by one, each would have to be distinguished from those whose launch is under way.
func UnlaunchedGroup(claim *karpv1.NodeClaim, claims []*karpv1.NodeClaim) LaunchGroup {
	group := LaunchGroup{Group: claim.LaunchGroup(), NodePool: claim.Labels[karpv1.NodePoolLabelKey]}
	for _, other := range claims {
		if other.Status.ProviderID == "" && other.LaunchGroup() == group.Group {
			group.Claims = append(group.Claims, ClaimRef{Name: other.Name, UID: string(other.UID)})
		}
	}
	slices.SortFunc(group.Claims, func(a, b ClaimRef) int { return strings.Compare(a.Name, b.Name) })
	return group
}

// ClaimInput returns the input of the NodeClaim workflow for a launched claim, derived from the claim alone. It serves to
// adopt a claim that has no workflow.
func ClaimInput(c Cluster, clusterUID string, keys cloud.LabelKeys, claim *karpv1.NodeClaim) NodeClaimInput {
	return NodeClaimInput{
		Cluster: c, ClusterUID: clusterUID,
		Claim:      ClaimRef{Name: claim.Name, UID: string(claim.UID)},
		NodePool:   claim.Labels[karpv1.NodePoolLabelKey],
		Group:      claim.Annotations[karpv1.LaunchGroupAnnotationKey],
		Instance:   ClaimInstance(keys, claim),
		DrainTells: true,
	}
}

// ClaimInstance returns the instance that a launched claim names.
func ClaimInstance(keys cloud.LabelKeys, claim *karpv1.NodeClaim) Instance {
	labels := claim.Labels
	return Instance{
		ID:           cloud.InstanceID(claim.Status.ProviderID),
		ProviderID:   claim.Status.ProviderID,
		InstanceType: labels[corev1.LabelInstanceTypeStable],
		Zone:         labels[corev1.LabelTopologyZone],
		CapacityType: labels[karpv1.CapacityTypeLabelKey],
		Reservation:  labels[keys.ReservationID],
		Image:        claim.Status.ImageID,

		PlacementGroup: labels[keys.PlacementGroup],
		Partition:      labels[keys.Partition],
	}
}
