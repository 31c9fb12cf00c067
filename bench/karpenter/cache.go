package karpenter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// cache answers Karpenter's reads of pods, nodes and disruption budgets as its own cache in front of the API server does:
// from memory, with an index on the pods' nodes, and with a copy of each object unless the caller wants none. The fake
// client behind it goes through all objects, as JSON, for every read.
type cache struct {
	client.Client
	pods    []*corev1.Pod
	byNode  map[string][]*corev1.Pod
	nodes   map[string]*corev1.Node
	budgets []*policyv1.PodDisruptionBudget
}

// newCache returns a cache of pods and nodes in front of a client that answers everything else.
func newCache(rest client.Client) *cache {
	return &cache{Client: rest, byNode: map[string][]*corev1.Pod{}, nodes: map[string]*corev1.Node{}}
}

func (c *cache) addNode(n *corev1.Node) { c.nodes[n.Name] = n }

func (c *cache) addPod(p *corev1.Pod) {
	c.pods = append(c.pods, p)
	c.byNode[p.Spec.NodeName] = append(c.byNode[p.Spec.NodeName], p)
}

// Get implements client.Reader.
func (c *cache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	n, ok := o.(*corev1.Node)
	if !ok {
		return c.Client.Get(ctx, key, o, options...)
	}
	known, ok := c.nodes[key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	known.DeepCopyInto(n)
	return nil
}

// List implements client.Reader.
func (c *cache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	wanted := (&client.ListOptions{}).ApplyOptions(options)
	share := wanted.UnsafeDisableDeepCopy != nil && *wanted.UnsafeDisableDeepCopy
	switch list := list.(type) {
	case *corev1.NodeList:
		for _, n := range c.nodes {
			if wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(n.Labels)) {
				list.Items = append(list.Items, *copied(n, share))
			}
		}
		return nil
	case *policyv1.PodDisruptionBudgetList:
		for _, b := range c.budgets {
			list.Items = append(list.Items, *copied(b, share))
		}
		return nil
	case *corev1.PodList:
		pods := c.pods
		if wanted.FieldSelector != nil {
			node, exact := wanted.FieldSelector.RequiresExactMatch("spec.nodeName")
			if !exact {
				return fmt.Errorf("list pods by %s: there is no such index", wanted.FieldSelector)
			}
			pods = c.byNode[node]
		}
		for _, p := range pods {
			if (wanted.Namespace == "" || wanted.Namespace == p.Namespace) && (wanted.LabelSelector == nil || wanted.LabelSelector.Matches(labels.Set(p.Labels))) {
				list.Items = append(list.Items, *copied(p, share))
			}
		}
		return nil
	}
	return c.Client.List(ctx, list, options...)
}

// copied returns a copy, or the object itself if share is set.
func copied[T interface{ DeepCopy() T }](o T, share bool) T {
	if share {
		return o
	}
	return o.DeepCopy()
}
