package cluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// machine is a Node in the API's form and in that of planning.
type machine struct {
	node *corev1.Node
	plan *plan.Node
}

func (m *machine) key() string { return m.node.Name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (m *machine) GetObjectMeta() metav1.Object { return m.node }

// openNodes prepares the watch of Nodes. Their store subscribes to it (nodes.go).
func openNodes(w *watches) *feed[*machine] {
	return open(w, corev1.SchemeGroupVersion, "nodes", &corev1.Node{}, nil, reduceNode, (*machine).key, nil)
}

// reduceNode keeps a Node without the fields that only the kubelet and kubectl need, which are most of it.
func reduceNode(interner *plan.Interner, obj any) (*machine, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return nil, unexpected(node, obj)
	}
	node.ManagedFields = nil
	node.Status.Images = nil
	node.Status.Config = nil
	reduced := &machine{node: node, plan: interner.Node(node)}
	// Both are read-only from here on, so they share one map.
	node.Labels = reduced.plan.Labels
	return reduced, nil
}

// nodeObject is a Node in the API's form; nil for none.
func nodeObject(node *machine) *corev1.Node {
	if node == nil {
		return nil
	}
	return node.node
}
