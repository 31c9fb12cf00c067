package activities

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// marks takes marks off nodes that nobody takes away: those of replacements that were terminated by a person, and those
// that Karpenter made before Tenon took over and never came back to. A node that somebody drains by hand carries the
// same taint, and may keep it afterwards. What tells the others: the Node names a replacement that is not the one it was
// launched for, or its claim says why it goes.
func (s *sweep) marks(ctx context.Context) error {
	var list corev1.NodeList
	if err := s.Kube.List(ctx, &list, client.HasLabels{karpv1.NodeRegisteredLabelKey}); err != nil {
		return fmt.Errorf("list Nodes: %w", err)
	}
	for i := range list.Items {
		node := &list.Items[i]
		listed := s.claims[node.Spec.ProviderID]
		if err := s.openOrphan(ctx, node); err != nil {
			return err
		}
		if listed == nil || !disrupted(node) || !node.DeletionTimestamp.IsZero() || node.Annotations[ReasonAnnotation] != "" {
			continue
		}
		claim, orphaned, err := s.orphanedMark(ctx, node, listed)
		if err != nil {
			return err
		}
		if !orphaned {
			continue
		}
		if err := s.serveOn(ctx, claim, node); err != nil {
			return err
		}
		s.tellBoth(node, claim, corev1.EventTypeWarning, "DisruptionAborted", "It was marked as going, and nobody was taking it away")
		s.result.Unmarked = append(s.result.Unmarked, node.Name)
	}
	return nil
}

// openOrphan opens a node that is kept closed for pods of a replacement that is over.
func (s *sweep) openOrphan(ctx context.Context, node *corev1.Node) error {
	id := node.Annotations[karpv1.ReplacementAnnotationKey]
	if id == "" || !expecting(node) || node.Labels[karpv1.NodeInitializedLabelKey] != "true" {
		return nil
	}
	if running, err := s.running(ctx, s.Cluster.ReplacementID(id)); running || err != nil {
		return err
	}
	if _, err := s.drains.change(ctx, node, "open", open); err != nil {
		return err
	}
	s.result.Unmarked = append(s.result.Unmarked, node.Name)
	return nil
}

// orphanedMark says whether nobody takes a marked node away, and returns its claim as it is now.
func (s *sweep) orphanedMark(ctx context.Context, node *corev1.Node, listed *karpv1.NodeClaim) (*karpv1.NodeClaim, bool, error) {
	replacement := node.Annotations[karpv1.ReplacementAnnotationKey]
	if !listed.IsTrue(karpv1.ConditionTypeDisruptionReason) && replacement == listed.Annotations[karpv1.ReplacementAnnotationKey] {
		return nil, false, nil
	}
	for _, id := range []string{s.Cluster.ReplacementID(replacement), s.Cluster.DrainID(node.Name)} {
		if running, err := s.running(ctx, id); running || err != nil {
			return nil, false, err
		}
	}
	// A replacement that ended between the two has deleted the claim.
	claim, err := s.claim(ctx, workflows.ClaimRef{Name: listed.Name, UID: string(listed.UID)})
	return claim, claim != nil && claim.DeletionTimestamp.IsZero(), err
}

// dropOrphan deletes a claim without an instance that was made for a replacement which is over.
func (s *sweep) dropOrphan(ctx context.Context, claim *karpv1.NodeClaim) (orphaned bool, err error) {
	id := claim.Annotations[karpv1.ReplacementAnnotationKey]
	if id == "" {
		return false, nil
	}
	for _, workflow := range []string{s.Cluster.ReplacementID(id), s.Cluster.LaunchID(launchGroup(claim))} {
		if running, err := s.running(ctx, workflow); running || err != nil {
			return running, err
		}
	}
	if launched, err := s.known(ctx, s.Cluster.LaunchID(launchGroup(claim))); launched || err != nil {
		return false, err
	}
	if err := s.dropReplacement(ctx, claim, "its replacement is over"); err != nil {
		return false, err
	}
	s.result.Dropped = append(s.result.Dropped, claim.Name)
	return true, nil
}
