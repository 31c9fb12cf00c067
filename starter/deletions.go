package starter

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// eventExpiring says when the drain of a node deletes whatever is left on it. The reason is Karpenter's.
const eventExpiring = "TerminationGracePeriodExpiring"

// deletions notifies the workflows of claims that are being deleted, and Provisioning about the pods that lose their
// nodes.
type deletions struct {
	mirror    Mirror
	kube      kube.Client
	workflows *signaller
	events    record.EventRecorder
	leaving   *leaving
	told      *dedup
}

// tell notifies a claim's workflow that the claim is being deleted, and of the deadline of its drain. It returns when
// to look again because more of the node's pods need another place then.
func (d *deletions) tell(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	first := d.told.isNew(claim.UID, workflows.ReasonClaimDeleted)
	if first {
		deadline := claim.DrainDeadline(claim.DeletionTimestamp.Time)
		if err := d.noteDeadline(ctx, claim, deadline); err != nil {
			return 0, err
		}
		ending := workflows.Ending{Reason: d.recordedReason(ctx, claim), Deadline: deadline, Deleting: true}
		if err := d.workflows.end(ctx, claim, ending); err != nil {
			return 0, err
		}
		d.told.mark(claim.UID, workflows.ReasonClaimDeleted)
	}
	now := time.Now()
	more, next := d.leaving.losesMore(claim, now)
	if more || first && d.leaving.leavesPods(claim, now) {
		d.leaving.add(claim.ResourceVersion)
	}
	return next, nil
}

// recordedReason returns why a claim is being deleted: the reason noted on the claim or on its Node by whoever deleted
// it, and otherwise ReasonClaimDeleted. The mirror may show the deletion before the earlier note on the Node, so the
// API server is asked if the mirror has no note.
func (d *deletions) recordedReason(ctx context.Context, claim *karpv1.NodeClaim) string {
	if reason := claim.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
		return reason
	}
	if node := d.mirror.Node(claim.Status.NodeName); node != nil {
		if reason := node.Annotations[karpv1.RemovalReasonAnnotationKey]; reason != "" {
			return reason
		}
		var now corev1.Node
		if err := d.kube.Get(ctx, kube.ObjectKeyFromObject(node), &now); err == nil && now.UID == node.UID && now.Annotations[karpv1.RemovalReasonAnnotationKey] != "" {
			return now.Annotations[karpv1.RemovalReasonAnnotationKey]
		}
	}
	return workflows.ReasonClaimDeleted
}

// noteDeadline writes the drain's deadline onto the claim, where Karpenter's users look for it, and records Events.
func (d *deletions) noteDeadline(ctx context.Context, claim *karpv1.NodeClaim, deadline time.Time) error {
	if deadline.IsZero() || claim.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return nil
	}
	noted := claim.DeepCopy()
	if noted.Annotations == nil {
		noted.Annotations = map[string]string{}
	}
	noted.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] = deadline.UTC().Format(time.RFC3339)
	if err := d.kube.Patch(ctx, noted, kube.MergeFrom(claim)); err != nil {
		return kube.IgnoreNotFound(fmt.Errorf("note the drain deadline on NodeClaim %s: %w", claim.Name, err))
	}
	if d.events != nil {
		message := "All pods will be deleted by " + noted.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey]
		d.events.Event(noted, corev1.EventTypeWarning, eventExpiring, message)
		if node := d.mirror.Node(claim.Status.NodeName); node != nil {
			d.events.Event(node, corev1.EventTypeWarning, eventExpiring, message)
		}
	}
	return nil
}
