package clustermetrics

import (
	"strconv"
	"sync"

	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// nodeLabels makes the labels of Nodes' metrics, once for each version of a Node.
type nodeLabels struct {
	mu    sync.Mutex
	names map[string]string
	known map[string]labelled
}

// labelled are the labels of a Node, and what they were made from.
type labelled struct {
	node    *corev1.Node
	managed bool
	labels  []*dto.LabelPair
}

// of returns the labels of a Node in the order of their names.
func (l *nodeLabels) of(node *corev1.Node, managed bool) []*dto.LabelPair {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names, l.known = metrics.NodeLabels(), map[string]labelled{}
	}
	if made, ok := l.known[node.Name]; ok && made.node == node && made.managed == managed {
		return made.labels
	}
	if len(l.known) > 100_000 {
		clear(l.known) // names of Nodes that are long gone
	}
	labels := []*dto.LabelPair{pair("managed", strconv.FormatBool(managed)), pair("node_name", node.Name), pair("phase", string(node.Status.Phase))}
	for key, name := range l.names {
		labels = append(labels, pair(name, node.Labels[key]))
	}
	labels = sortedPairs(labels)
	l.known[node.Name] = labelled{node, managed, labels}
	return labels
}
