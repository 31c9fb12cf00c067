package world

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Clear deletes the workloads, pods, claims of volumes and budgets in a namespace, without waiting until they are gone. It
// leaves the empty namespace: to delete one, the controller manager asks the API server twice about every kind there is,
// which takes longer than many a scenario.
func Clear(ctx context.Context, c client.Client, namespace string) error {
	for _, kind := range []client.Object{
		&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}, &appsv1.ReplicaSet{}, &batchv1.Job{}, &corev1.Pod{},
		&corev1.PersistentVolumeClaim{}, &policyv1.PodDisruptionBudget{},
	} {
		if err := c.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return fmt.Errorf("delete every %T in %s: %w", kind, namespace, err)
		}
	}
	return nil
}
