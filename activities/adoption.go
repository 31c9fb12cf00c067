package activities

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
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

// claimInstance is the instance that a launched claim names.
func claimInstance(claim *karpv1.NodeClaim) workflows.Instance {
	labels := claim.Labels
	return workflows.Instance{
		ID:           InstanceID(claim.Status.ProviderID),
		ProviderID:   claim.Status.ProviderID,
		InstanceType: labels[corev1.LabelInstanceTypeStable],
		Zone:         labels[corev1.LabelTopologyZone],
		CapacityType: labels[karpv1.CapacityTypeLabelKey],
		Reservation:  labels[awsv1.LabelCapacityReservationID],
		Image:        claim.Status.ImageID,
	}
}

// ownInstance is the instance of a claim whose life began with the given one. They differ where another controller had the
// Lease while our launch was under way, and has launched the claim as well: what the claim names counts, and the other
// instance, which no claim has, is terminated.
func (a *Activities) ownInstance(ctx context.Context, claim *karpv1.NodeClaim, began workflows.Instance) (workflows.Instance, error) {
	if claim == nil || claim.Status.ProviderID == "" || began.ID == "" || InstanceID(claim.Status.ProviderID) == began.ID {
		return began, nil
	}
	claims, err := a.objects.listClaims(ctx)
	if err != nil {
		return began, err
	}
	own := claimInstance(claim)
	a.Log.Warn("another controller has launched the claim as well", zap.String("claim", claim.Name), zap.String("instance", own.ID), zap.String("ours", began.ID))
	if slices.ContainsFunc(claims, func(other karpv1.NodeClaim) bool { return InstanceID(other.Status.ProviderID) == began.ID }) {
		return own, nil
	}
	return own, cloudFailure("terminate "+began.ID, a.Cloud.Terminate(ctx, []string{began.ID}))
}

// InstanceID is the last part of a provider id: i-0123 of aws:///us-east-1a/i-0123.
func InstanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
