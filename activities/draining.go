package activities

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/logs"
	"github.com/tenon-sh/tenon/workflows"
)

// The reasons that Karpenter gives during a drain.
const (
	// reasonGraceElapsed says that the deadline of the drain had passed: what was left was deleted.
	reasonGraceElapsed = "TerminationGracePeriodElapsed"
	// reasonDraining says which pods are left, and what holds them.
	reasonDraining = "Draining"
	// reasonAwaitingVolumes says which volumes are still attached to the node.
	reasonAwaitingVolumes = "AwaitingVolumeDetachment"
)

// drainer drains nodes for the workflows, and writes on their claims what blocks the drain.
type drainer struct {
	drains  *Drains
	objects objects
	log     *zap.Logger
}

// Evict runs Drains.Evict, and writes onto a claim that is being deleted what blocks its drain. An unblocked drain is over
// before anybody looks, so it costs no write. The write is informational: if it fails, Evict does not.
func (d *drainer) Evict(ctx context.Context, in workflows.EvictInput) (workflows.EvictResult, error) {
	result, err := d.drains.Evict(ctx, in)
	if err != nil || in.Claim == "" || len(result.Blockers) == 0 || result.Digest == in.Known {
		return result, err
	}
	if err := d.tellDraining(ctx, in, result); err != nil {
		logs.Of(ctx, d.log).Warn("could not write the drain's state onto the claim", zap.String("claim", in.Claim), zap.String("node", in.Node), zap.Error(err))
	}
	return result, nil
}

// tellDraining sets the conditions of a claim whose drain is blocked. They need no undoing, because the deletion of a claim
// cannot be taken back.
func (d *drainer) tellDraining(ctx context.Context, in workflows.EvictInput, result workflows.EvictResult) error {
	claim, err := d.objects.claim(ctx, workflows.ClaimRef{Name: in.Claim})
	if err != nil || claim == nil || claim.DeletionTimestamp.IsZero() || claim.Status.NodeName != in.Node {
		return err
	}
	message := heldUp(result)
	return d.objects.changeStatus(ctx, claim, func(claim *karpv1.NodeClaim) {
		if result.Left > 0 {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDrained, Status: metav1.ConditionUnknown, Reason: reasonDraining, Message: message})
		} else {
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDrained, Status: metav1.ConditionTrue})
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeVolumesDetached, Status: metav1.ConditionUnknown, Reason: reasonAwaitingVolumes, Message: message})
		}
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeDisruptionReason, Status: metav1.ConditionTrue, Reason: in.Reason})
	})
}

// Uncordon runs Drains.Uncordon.
func (d *drainer) Uncordon(ctx context.Context, in workflows.UncordonInput) (struct{}, error) {
	return d.drains.Uncordon(ctx, in)
}

// Close keeps new pods off the node of a claim that will be removed, before its drain begins.
func (d *drainer) Close(ctx context.Context, node *corev1.Node) error {
	_, err := d.objects.change(ctx, node, "cordon", cordonClaimed)
	return err
}
