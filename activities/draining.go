package activities

import (
	"context"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// The reasons Karpenter gives while a drain lasts.
const (
	reasonDraining        = "Draining"
	reasonAwaitingVolumes = "AwaitingVolumeDetachment"
)

// drainer empties nodes for the workflows, and says on their claims what holds them up.
type drainer struct {
	drains  *Drains
	objects objects
	log     *zap.Logger
}

// Evict is Drains.Evict, and writes onto a claim that is being deleted what holds up its drain. A drain that nothing
// holds up is over before anybody looks, so it costs no write. The write only informs: its failure fails nothing.
func (d *drainer) Evict(ctx context.Context, in workflows.EvictInput) (workflows.EvictResult, error) {
	result, err := d.drains.Evict(ctx, in)
	if err != nil || in.Claim == "" || len(result.Blockers) == 0 || result.Digest == in.Known {
		return result, err
	}
	if err := d.tellDraining(ctx, in, result); err != nil {
		d.log.Warn("could not write the drain's state onto the claim", zap.String("claim", in.Claim), zap.String("node", in.Node), zap.Error(err))
	}
	return result, nil
}

// tellDraining sets the conditions of a claim whose drain is held up. They need no undoing: a claim that is being deleted
// can only go on to its end.
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

// Uncordon is Drains.Uncordon.
func (d *drainer) Uncordon(ctx context.Context, in workflows.UncordonInput) (struct{}, error) {
	return d.drains.Uncordon(ctx, in)
}

// Close keeps new pods off the node of a claim that will go, before its drain begins.
func (d *drainer) Close(ctx context.Context, node *corev1.Node) error {
	_, err := d.objects.change(ctx, node, "cordon", cordonClaimed)
	return err
}
