package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// joinPatience is how long a machine may take to become a Ready node.
	joinPatience = 10 * time.Minute
	// podNamespace is the namespace of the pod that is evicted.
	podNamespace = "default"
	// podImage does nothing; Kubernetes uses it for its own sandbox containers.
	podImage = "registry.k8s.io/pause:3.10"
)

// joins waits until the instance of a step is a Ready node, and drains it: it closes the node, and evicts the run's own pod
// through the eviction API. It leaves other pods, such as those of DaemonSets, alone.
func joins(step string) func(context.Context, *live) outcome {
	return func(ctx context.Context, l *live) outcome {
		if l.nodes == nil {
			return skip("no cluster given (--kubeconfig)")
		}
		s := l.state.find(step)
		if s == nil || s.Answer == nil || len(s.Answer.Instances) == 0 {
			return skip("%q has no instance", step)
		}
		began := l.now()
		node, err := l.readyNode(ctx, s.Answer.Instances[0])
		if err != nil {
			return fail("%v", err)
		}
		joined := l.now().Sub(s.SentAt).Round(time.Second)
		if node.Labels[tagKey] != l.run {
			return fail("node %s lacks the label of its user data", node.Name)
		}
		refusals, err := l.drain(ctx, node)
		if err != nil {
			return fail("node %s joined %v after its launch, but: %v", node.Name, joined, err)
		}
		return pass("node %s was Ready %v after its launch, and drained in %v with %d refusals", node.Name, joined, l.now().Sub(began).Round(time.Second), refusals)
	}
}

// readyNode waits for the Node of an instance, whose providerID ends with the instance's id.
func (l *live) readyNode(ctx context.Context, id string) (*corev1.Node, error) {
	var node *corev1.Node
	err := l.await(ctx, "a Ready node of "+id, joinPatience, look, func() (bool, error) {
		nodes, err := l.nodes.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: tagKey + "=" + l.run})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		for i := range nodes.Items {
			if !strings.HasSuffix(nodes.Items[i].Spec.ProviderID, "/"+id) {
				continue
			}
			node = &nodes.Items[i]
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
					return true, nil
				}
			}
		}
		return false, nil
	})
	return node, err
}

// drain drains a node, and returns how often a PodDisruptionBudget refused the eviction.
func (l *live) drain(ctx context.Context, node *corev1.Node) (refusals int, err error) {
	pod, err := l.pod(ctx, node)
	if err != nil {
		return 0, err
	}
	closed, err := json.Marshal(map[string]any{"spec": map[string]any{"unschedulable": true}})
	if err != nil {
		return 0, fmt.Errorf("encode patch: %w", err)
	}
	if _, err := l.nodes.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, closed, metav1.PatchOptions{}); err != nil {
		return 0, fmt.Errorf("close the node: %w", err)
	}
	err = l.await(ctx, "the pod to be evicted", endPatience, look, func() (bool, error) {
		err := l.nodes.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))},
		})
		if apierrors.IsTooManyRequests(err) {
			refusals++
			return false, nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return false, fmt.Errorf("evict: %w", err)
		}
		return true, nil
	})
	if err != nil {
		return refusals, err
	}
	return refusals, l.await(ctx, "the pod to be gone", endPatience, look, func() (bool, error) {
		_, err := l.nodes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("look at the pod: %w", err)
		}
		return false, nil
	})
}

// pod puts a pod on the node and waits until it runs.
func (l *live) pod(ctx context.Context, node *corev1.Node) (*corev1.Pod, error) {
	pods := l.nodes.CoreV1().Pods(podNamespace)
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: podNamespace, Name: tagKey + "-" + node.Name, Labels: map[string]string{tagKey: l.run}},
		Spec: corev1.PodSpec{
			NodeName: node.Name, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{Name: "pause", Image: podImage}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("put a pod on the node: %w", err)
	}
	err = l.await(ctx, "the pod to run", startPatience, look, func() (bool, error) {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("look at the pod: %w", err)
		}
		return now.Status.Phase == corev1.PodRunning, nil
	})
	return pod, err
}

// removePods deletes the pods that a failed drain has left.
func (l *live) removePods(ctx context.Context) error {
	if l.nodes == nil {
		return nil
	}
	pods := l.nodes.CoreV1().Pods(podNamespace)
	found, err := pods.List(ctx, metav1.ListOptions{LabelSelector: tagKey + "=" + l.run})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for _, pod := range found.Items {
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete pod: %w", err)
		}
	}
	return nil
}
