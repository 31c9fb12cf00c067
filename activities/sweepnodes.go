package activities

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tenon-sh/tenon/activities/readiness"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// nodes deletes Node objects that Tenon once registered and whose claim and instance are both gone.
func (s *sweep) nodes(ctx context.Context, list []*corev1.Node) {
	suspects := slices.DeleteFunc(slices.Clone(list), func(node *corev1.Node) bool {
		_, there := s.instances[node.Spec.ProviderID]
		return there || s.claims[node.Spec.ProviderID] != nil || s.now.Sub(node.CreationTimestamp.Time) < consistencyLag || readiness.Ready(node)
	})
	if len(suspects) == 0 {
		return
	}
	claimed := map[string]bool{}
	if err := s.objects.eachClaim(ctx, nil, func(claim *karpv1.NodeClaim) { claimed[claim.Status.ProviderID] = true }); err != nil {
		s.fail("Nodes nobody owns", err)
		return
	}
	for _, node := range suspects {
		if claimed[node.Spec.ProviderID] {
			continue
		}
		err := s.letGo(ctx, node)
		s.fail("Node "+node.Name, err)
		if err == nil {
			s.result.Nodes = append(s.result.Nodes, node.Name)
		}
	}
}

// letGo deletes a Node object that has no owner left, unless it has become ready.
func (s *sweep) letGo(ctx context.Context, node *corev1.Node) error {
	node, err := s.objects.node(ctx, node.Name, string(node.UID))
	if err != nil || node == nil || readiness.Ready(node) {
		return err
	}
	if _, err := s.objects.change(ctx, node, "take the finalizer off", func(node *corev1.Node) {
		controllerutil.RemoveFinalizer(node, karpv1.TerminationFinalizer)
	}); err != nil {
		return err
	}
	return ignoreNotFound("delete Node "+node.Name, s.objects.Delete(ctx, node, client.Preconditions{UID: &node.UID}))
}
