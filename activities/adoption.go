package activities

import (
	"slices"
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// ReasonAnnotation is put on a Node by whoever decides that it goes, before its claim is deleted, and on the claim where
// there is no Node: the claim's workflow records it as the reason.
const ReasonAnnotation = "tenon.sh/removal-reason"

// launchGroup is the launch group a claim belongs to. One that nobody planned is a group of its own.
func launchGroup(claim *karpv1.NodeClaim) string {
	if group := claim.Annotations[karpv1.LaunchGroupAnnotationKey]; group != "" {
		return group
	}
	return "claim-" + string(claim.UID)
}

// UnlaunchedGroup is the launch group of a claim with all claims in it that still want an instance. They are adopted
// together: one after the other, each would have to be told from those whose launch is on its way.
func UnlaunchedGroup(claim *karpv1.NodeClaim, claims []*karpv1.NodeClaim) workflows.LaunchGroup {
	group := workflows.LaunchGroup{Group: launchGroup(claim), NodePool: claim.Labels[karpv1.NodePoolLabelKey]}
	for _, other := range claims {
		if other.Status.ProviderID == "" && launchGroup(other) == group.Group {
			group.Claims = append(group.Claims, workflows.ClaimRef{Name: other.Name, UID: string(other.UID)})
		}
	}
	slices.SortFunc(group.Claims, func(a, b workflows.ClaimRef) int { return strings.Compare(a.Name, b.Name) })
	return group
}

// ClaimInput is the input of the NodeClaim workflow for a launched claim, made from the claim alone. It is how a claim
// that was found without a workflow is adopted.
func ClaimInput(c workflows.Cluster, clusterUID string, claim *karpv1.NodeClaim) workflows.NodeClaimInput {
	return workflows.NodeClaimInput{
		Cluster: c, ClusterUID: clusterUID,
		Claim:      workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)},
		NodePool:   claim.Labels[karpv1.NodePoolLabelKey],
		Group:      claim.Annotations[karpv1.LaunchGroupAnnotationKey],
		Instance:   claimInstance(claim),
		DrainTells: true,
	}
}
