package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// The two Deployments: web has many small pods, shop has fewer, larger ones that a PodDisruptionBudget guards.
const web, shop = "web", "shop"

// scaleOut creates the pods and waits until all of them run on nodes that were made for them.
func (s *story) scaleOut(ctx context.Context) error {
	guarded := s.Pods / 4
	objects := []client.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		deployment(web, s.Pods-guarded, "500m", "1Gi"),
		deployment(shop, guarded, "900m", "3Gi"),
	}
	for _, object := range objects {
		if err := s.apply(ctx, object); err != nil {
			return err
		}
	}
	s.step(fmt.Sprintf("%d pods created", s.Pods), fmt.Sprintf("%d × 500m/1Gi, %d × 900m/3Gi", s.Pods-guarded, guarded))
	if err := s.await(ctx, "claims for the pods", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		claims, _, err := s.claimsAndNodes(ctx)
		launched := 0
		for i := range claims {
			if claims[i].Status.ProviderID != "" {
				launched++
			}
		}
		return launched > 0 && launched == len(claims), fmt.Sprintf("%d claims, %d launched", len(claims), launched), err
	}); err != nil {
		return err
	}
	claims, _, err := s.claimsAndNodes(ctx)
	if err != nil {
		return err
	}
	s.step("nodes launched", fmt.Sprintf("%d: %s", len(claims), kinds(claims)))
	if err := s.awaitRunning(ctx, s.Pods); err != nil {
		return err
	}
	if err := s.cloud(ctx, "/_sim/cost", &s.peak); err != nil {
		return err
	}
	if s.peak.PricePerHour <= 0 {
		return fmt.Errorf("%d instances cannot cost %v $/hour", s.peak.Instances, s.peak.PricePerHour)
	}
	claims, nodes, err := s.claimsAndNodes(ctx)
	if err != nil {
		return err
	}
	if len(claims) != len(nodes) || len(claims) != s.peak.Instances {
		return fmt.Errorf("there must be one node and one instance for each claim: %d claims, %d nodes, %d instances", len(claims), len(nodes), s.peak.Instances)
	}
	s.step("all pods Running", fmt.Sprintf("%d pods on %d nodes, %.3f $/hour", s.Pods, len(nodes), s.peak.PricePerHour))
	return nil
}

// drainByHand drains a node while a PodDisruptionBudget forbids it, then relaxes the budget and waits until the node is
// gone and its pods run elsewhere.
func (s *story) drainByHand(ctx context.Context) error {
	if err := s.apply(ctx, budget(0)); err != nil {
		return err
	}
	node, claim, err := s.guardedNode(ctx)
	if err != nil {
		return err
	}
	if _, err := s.tenon(ctx, "drain", node, "--note", "demo"); err != nil {
		return err
	}
	s.step("drain asked for", "tenon drain "+node)
	if err := s.await(ctx, "the drain to say what blocks it", time.Minute, func(ctx context.Context) (bool, string, error) {
		status, err := s.drainStatus(ctx, node)
		for _, blocker := range status.Blockers {
			if strings.Contains(blocker.By, shop) {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%d pods left, %d blockers", status.Left, len(status.Blockers)), err
	}); err != nil {
		return err
	}
	if left, err := s.running(ctx, map[string]string{"app": shop}); err != nil || left != s.Pods/4 {
		return fmt.Errorf("the budget allows no disruption, yet only %d of %d %s pods run (%w)", left, s.Pods/4, shop, err)
	}
	s.step("drain blocked", fmt.Sprintf("PodDisruptionBudget %s/%s, as it must", namespace, shop))
	if err := s.apply(ctx, budget(5)); err != nil {
		return err
	}
	if err := s.await(ctx, "the drained node to go", 3*time.Minute, func(ctx context.Context) (bool, string, error) {
		claims, nodes, err := s.claimsAndNodes(ctx)
		if err != nil {
			return false, "", err
		}
		for i := range claims {
			if claims[i].Name == claim {
				return false, "NodeClaim " + claim + " is there", nil
			}
		}
		for i := range nodes {
			if nodes[i].Name == node {
				return false, "Node " + node + " is there", nil
			}
		}
		return true, "", nil
	}); err != nil {
		return err
	}
	s.step("node drained and terminated", node)
	if err := s.awaitRunning(ctx, s.Pods); err != nil {
		return err
	}
	s.step("all pods Running again", fmt.Sprintf("%d pods", s.Pods))
	return nil
}

// scaleToZero scales both Deployments to zero and waits until no NodeClaim, Node or instance is left.
func (s *story) scaleToZero(ctx context.Context) error {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	patch := `{"spec":{"disruption":{"consolidateAfter":"5s","budgets":[{"nodes":"100%"}]}}}`
	if err := s.kube.Patch(ctx, pool, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("allow all empty nodes of NodePool default to go at once: %w", err)
	}
	for _, name := range []string{web, shop} {
		scaled := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if err := s.kube.Patch(ctx, scaled, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":0}}`))); err != nil {
			return fmt.Errorf("scale %s to zero: %w", name, err)
		}
	}
	s.step("scaled to zero", "empty nodes may go after 5 s")
	if err := s.await(ctx, "every node and instance to go", 4*time.Minute, func(ctx context.Context) (bool, string, error) {
		claims, nodes, err := s.claimsAndNodes(ctx)
		if err != nil {
			return false, "", err
		}
		var left bill
		if err := s.cloud(ctx, "/_sim/cost", &left); err != nil {
			return false, "", err
		}
		return len(claims)+len(nodes)+left.Instances == 0, fmt.Sprintf("%d claims, %d nodes, %d instances", len(claims), len(nodes), left.Instances), nil
	}); err != nil {
		return err
	}
	s.step("everything gone", "0 claims, 0 nodes, 0 instances, 0 $/hour")
	return nil
}

// awaitRunning waits until exactly want pods of the demo run.
func (s *story) awaitRunning(ctx context.Context, want int) error {
	return s.await(ctx, "all pods to run", 5*time.Minute, func(ctx context.Context) (bool, string, error) {
		running, err := s.running(ctx, nil)
		return running == want, fmt.Sprintf("%d of %d running", running, want), err
	})
}

// running counts the demo's pods that run and are not terminating.
func (s *story) running(ctx context.Context, labels map[string]string) (int, error) {
	var pods corev1.PodList
	if err := s.kube.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels(labels)); err != nil {
		return 0, fmt.Errorf("list pods: %w", err)
	}
	running := 0
	for i := range pods.Items {
		if pods.Items[i].Status.Phase == corev1.PodRunning && pods.Items[i].DeletionTimestamp.IsZero() {
			running++
		}
	}
	return running, nil
}

// guardedNode returns a node that runs a shop pod, and its NodeClaim.
func (s *story) guardedNode(ctx context.Context) (node, claim string, err error) {
	var pods corev1.PodList
	if err := s.kube.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": shop}); err != nil {
		return "", "", fmt.Errorf("list pods: %w", err)
	}
	claims, _, err := s.claimsAndNodes(ctx)
	if err != nil {
		return "", "", err
	}
	for i := range pods.Items {
		for j := range claims {
			if name := claims[j].Status.NodeName; name != "" && name == pods.Items[i].Spec.NodeName {
				return name, claims[j].Name, nil
			}
		}
	}
	return "", "", fmt.Errorf("no node runs a pod of %s", shop)
}

func (s *story) drainStatus(ctx context.Context, node string) (workflows.DrainStatus, error) {
	var status workflows.DrainStatus
	out, err := s.tenon(ctx, "drain", "status", node, "-o", "json")
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return status, fmt.Errorf("read the drain's status: %w", err)
	}
	return status, nil
}

// kinds returns the instance types of the claims, with the number of each.
func kinds(claims []karpv1.NodeClaim) string {
	count := map[string]int{}
	var order []string
	for i := range claims {
		kind := claims[i].Labels[corev1.LabelInstanceTypeStable]
		if count[kind]++; count[kind] == 1 {
			order = append(order, kind)
		}
	}
	for i, kind := range order {
		order[i] = fmt.Sprintf("%d × %s", count[kind], kind)
	}
	return strings.Join(order, ", ")
}

func deployment(name string, replicas int, cpu, memory string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	count := int32(replicas)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}}}},
			},
		},
	}
}

// budget returns a PodDisruptionBudget that allows away shop pods to be unavailable at once.
func budget(away int) *policyv1.PodDisruptionBudget {
	most := intstr.FromInt(away)
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: shop},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": shop}}},
	}
}
