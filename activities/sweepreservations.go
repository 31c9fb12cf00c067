package activities

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// reservations updates the labels of claims and Nodes whose instances have left their capacity reservation, since it ended
// or was cancelled, or were moved into one by a person. They run on at another price, and plans, drift and the choice of
// nodes to consolidate go by the labels.
func (s *sweep) reservations(ctx context.Context) {
	for _, id := range slices.Sorted(maps.Keys(s.claims)) {
		claim, instance := s.claims[id], s.instances[id]
		launched := claim.Condition(karpv1.ConditionTypeLaunched)
		// What EC2 describes of a young instance may be incomplete.
		if !claim.DeletionTimestamp.IsZero() || launched == nil || s.now.Sub(launched.LastTransitionTime.Time) < consistencyLag {
			continue
		}
		node := s.mirror.Node(claim.Status.NodeName)
		if node != nil && (!node.DeletionTimestamp.IsZero() || node.Labels[karpv1.NodeRegisteredLabelKey] != "true" || !s.moved(node.Labels, instance)) {
			node = nil
		}
		if node == nil && !s.moved(claim.Labels, instance) {
			continue
		}
		err := s.relabel(ctx, claim, node, instance)
		s.fail("NodeClaim "+claim.Name, err)
		if err == nil {
			s.result.Relabelled = append(s.result.Relabelled, claim.Name)
		}
	}
}

// moved reports whether labels name another capacity reservation than the one that an instance runs in. The zero Instance,
// and spot instances, are in none and never were.
func (s *sweep) moved(labels map[string]string, instance cloud.Instance) bool {
	capacity := labels[karpv1.CapacityTypeLabelKey]
	if instance.CapacityType != karpv1.CapacityTypeReserved && (instance.CapacityType != karpv1.CapacityTypeOnDemand || capacity != karpv1.CapacityTypeReserved) {
		return false
	}
	return capacity != instance.CapacityType || labels[s.cloud.Kind().Labels.ReservationID] != instance.Reservation
}

// relabel writes the capacity type and the reservation of an instance onto its claim and, unless it is nil, its Node.
func (s *sweep) relabel(ctx context.Context, listed *karpv1.NodeClaim, node *corev1.Node, instance cloud.Instance) error {
	claim, err := s.objects.claim(ctx, workflows.ClaimRef{Name: listed.Name, UID: string(listed.UID)})
	if err != nil || claim == nil {
		return err
	}
	kind, err := s.catalogue.instanceType(ctx, claim, instance.InstanceType)
	if err != nil {
		return err
	}
	if s.moved(claim.Labels, instance) {
		changed := claim.DeepCopy()
		changed.Labels[karpv1.CapacityTypeLabelKey] = instance.CapacityType
		labelReservation(s.cloud.Kind().Labels, changed.Labels, kind, instance.Reservation)
		if err := s.objects.Patch(ctx, changed, client.MergeFrom(claim)); err != nil {
			return ignoreNotFound(fmt.Sprintf("label NodeClaim %s", claim.Name), err)
		}
	}
	if node == nil {
		return nil
	}
	_, err = s.objects.change(ctx, node, "label", func(node *corev1.Node) {
		node.Labels[karpv1.CapacityTypeLabelKey] = instance.CapacityType
		labelReservation(s.cloud.Kind().Labels, node.Labels, kind, instance.Reservation)
	})
	return err
}
