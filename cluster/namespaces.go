package cluster

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// namespace is a Namespace, reduced to its labels, by which affinity between pods selects namespaces.
type namespace struct {
	name   string
	labels map[string]string
}

func (n *namespace) key() string { return n.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (n *namespace) GetObjectMeta() metav1.Object { return named("", n.name) }

// namespaces are the namespaces of the cluster.
type namespaces struct {
	*shared
	feed *feed[*namespace]
	// labels are what snapshots show of them; nil when one has changed.
	labels map[string]map[string]string
}

func newNamespaces(w *watches) *namespaces {
	n := &namespaces{shared: w.shared}
	n.feed = open(w, corev1.SchemeGroupVersion, "namespaces", &corev1.Namespace{}, nil, reduceNamespace, (*namespace).key, n.namespaceChanged)
	return n
}

func reduceNamespace(interner *plan.Interner, obj any) (*namespace, error) {
	from, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, unexpected(from, obj)
	}
	return &namespace{name: interner.String(from.Name), labels: interner.Labels(from.Labels)}, nil
}

func (n *namespaces) namespaceChanged(old, now *namespace, existed, exists bool) {
	if existed && exists && maps.Equal(old.labels, now.labels) {
		return
	}
	n.labels = nil
	n.changed()
}

// now returns the labels of all namespaces, shared by snapshots until one changes. The lock is held.
func (n *namespaces) now() map[string]map[string]string {
	if n.labels == nil {
		n.labels = make(map[string]map[string]string, len(n.feed.items))
		for name, namespace := range n.feed.items {
			n.labels[name] = namespace.labels
		}
	}
	return n.labels
}
