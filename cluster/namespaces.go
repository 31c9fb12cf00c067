package cluster

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// namespace is the labels of a namespace: affinity between pods selects namespaces by them.
type namespace struct {
	name   string
	labels map[string]string
}

func (n *namespace) key() string { return n.name }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (n *namespace) GetObjectMeta() metav1.Object { return named("", n.name) }

// openNamespaces prepares the watch of namespaces.
func (m *Mirror) openNamespaces(w *watches) {
	m.namespaces = open(w, corev1.SchemeGroupVersion, "namespaces", &corev1.Namespace{}, nil, reduceNamespace, (*namespace).key, m.namespaceChanged)
}

func reduceNamespace(interner *plan.Interner, obj any) (*namespace, error) {
	from, ok := obj.(*corev1.Namespace)
	if !ok {
		return nil, unexpected(from, obj)
	}
	return &namespace{name: interner.String(from.Name), labels: interner.Labels(from.Labels)}, nil
}

func (m *Mirror) namespaceChanged(old, now *namespace, existed, exists bool) {
	if existed && exists && maps.Equal(old.labels, now.labels) {
		return
	}
	m.namespaceLabels = nil
	m.changed()
}

// namespacesNow are the labels of all namespaces, shared by snapshots until one changes. The lock is held.
func (m *Mirror) namespacesNow() map[string]map[string]string {
	if m.namespaceLabels == nil {
		m.namespaceLabels = make(map[string]map[string]string, len(m.namespaces.items))
		for name, namespace := range m.namespaces.items {
			m.namespaceLabels[name] = namespace.labels
		}
	}
	return m.namespaceLabels
}
