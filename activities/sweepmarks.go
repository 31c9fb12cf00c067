package activities

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// marks removes the marks from nodes that nobody is removing: those of replacements, removals and drains that a person
// terminated, and those that Karpenter made before Tenon took over and never came back to.
func (s *sweep) marks(ctx context.Context, list []*corev1.Node) {
	for _, node := range list {
		s.fail("Node "+node.Name, s.openOrphan(ctx, node))
		s.fail("Node "+node.Name, s.unmarkOrphan(ctx, node))
	}
}

// unmarkOrphan returns a node to service that is marked for removal and that nobody is removing.
func (s *sweep) unmarkOrphan(ctx context.Context, node *corev1.Node) error {
	listed := s.claims[node.Spec.ProviderID]
	if listed == nil || !disrupted(node) || !node.DeletionTimestamp.IsZero() || !listed.DeletionTimestamp.IsZero() {
		return nil
	}
	if kept, err := s.keptClosed(ctx, node, listed); kept || err != nil {
		return err
	}
	// Whatever has ended meanwhile has deleted the claim or removed the marks.
	claim, err := s.objects.claim(ctx, workflows.ClaimRef{Name: listed.Name, UID: string(listed.UID)})
	if err != nil || claim == nil || !claim.DeletionTimestamp.IsZero() {
		return err
	}
	now, err := s.objects.node(ctx, node.Name, string(node.UID))
	if err != nil || now == nil || !disrupted(now) || now.Annotations[karpv1.ReplacementAnnotationKey] != node.Annotations[karpv1.ReplacementAnnotationKey] {
		return err
	}
	s.events.tellBoth(now, claim, corev1.EventTypeWarning, eventDisruptionAborted, "It was marked for removal, and nothing was removing it")
	if err := s.undoer.serveOn(ctx, claim, now); err != nil {
		return err
	}
	s.result.Unmarked = append(s.result.Unmarked, node.Name)
	return nil
}

// keptClosed reports whether somebody wants a marked node closed: a running replacement or drain, a removal that Disruption
// has begun, or the person who had the node drained and kept it. A mark without a recorded origin may be a person's too,
// unless a replacement or the claim's DisruptionReason explains it.
func (s *sweep) keptClosed(ctx context.Context, node *corev1.Node, claim *karpv1.NodeClaim) (bool, error) {
	replacement := node.Annotations[karpv1.ReplacementAnnotationKey]
	if replacement != "" {
		if running, err := s.running(ctx, s.cluster.ReplacementID(replacement)); running || err != nil {
			return true, err
		}
	}
	drain := s.cluster.DrainID(node.Name)
	if running, err := s.running(ctx, drain); running || err != nil {
		return true, err
	}
	switch {
	case node.Annotations[karpv1.RemovalReasonAnnotationKey] != "":
		return s.removing(ctx)
	case node.Annotations[drainedAnnotation] != "":
		return s.executions.ended(ctx, drain)
	}
	return !claim.IsTrue(karpv1.ConditionTypeDisruptionReason) && replacement == claim.Annotations[karpv1.ReplacementAnnotationKey], nil
}

// removing reports whether Disruption is removing nodes right now.
func (s *sweep) removing(ctx context.Context) (bool, error) {
	return s.executions.doing(ctx, s.cluster.DisruptionID(), workflows.RemoveActivity.Name)
}

// unasked removes from claims what says that people are asked to approve something, where no workflow waits for them: a person
// has terminated it, or Temporal's database was lost. If the decision still holds, people are asked anew.
func (s *sweep) unasked(ctx context.Context, claims []*karpv1.NodeClaim) {
	for _, claim := range claims {
		for _, asked := range readApprovals(claim) {
			if asked.State != karpv1.ApprovalWaiting {
				continue
			}
			running, err := s.running(ctx, s.cluster.ApprovalID(asked.ID))
			if err == nil && !running {
				if err = s.approver.forget(ctx, claim, asked.ID, s.now); err == nil {
					s.result.Unasked = append(s.result.Unasked, claim.Name)
				}
			}
			s.fail("NodeClaim "+claim.Name, err)
		}
	}
}

// openOrphan opens a node that is reserved for the pods of a replacement which is over.
func (s *sweep) openOrphan(ctx context.Context, node *corev1.Node) error {
	id := node.Annotations[karpv1.ReplacementAnnotationKey]
	if id == "" || !readiness.Expecting(node) || node.Labels[karpv1.NodeInitializedLabelKey] != "true" {
		return nil
	}
	if running, err := s.running(ctx, s.cluster.ReplacementID(id)); running || err != nil {
		return err
	}
	if _, err := s.objects.change(ctx, node, "open", open); err != nil {
		return err
	}
	s.result.Unmarked = append(s.result.Unmarked, node.Name)
	return nil
}

// dropOrphan deletes a claim without an instance that was made for a replacement which is over.
func (s *sweep) dropOrphan(ctx context.Context, claim *karpv1.NodeClaim) (orphaned bool, err error) {
	id := claim.Annotations[karpv1.ReplacementAnnotationKey]
	if id == "" {
		return false, nil
	}
	for _, workflow := range []string{s.cluster.ReplacementID(id), s.cluster.LaunchID(claim.LaunchGroup())} {
		if running, err := s.running(ctx, workflow); running || err != nil {
			return running, err
		}
	}
	if launched, err := s.executions.known(ctx, s.cluster.LaunchID(claim.LaunchGroup())); launched || err != nil {
		return false, err
	}
	if err := s.undoer.dropReplacement(ctx, claim, "its replacement has ended"); err != nil {
		return false, err
	}
	s.result.Dropped = append(s.result.Dropped, claim.Name)
	return true, nil
}
