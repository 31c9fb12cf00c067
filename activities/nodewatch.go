package activities

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeWatch follows one node and its pods. It lists the pods from the API server directly and watches from exactly that
// version, so that it misses no change in between.
type nodeWatch struct {
	client client.WithWatch
	node   *corev1.Node
	// latest is the last seen state of the node. gone means that it was deleted or replaced by another node of the same
	// name.
	latest *corev1.Node
	gone   bool
	pods   map[types.UID]*corev1.Pod
	// version is the resource version of the list of pods.
	version   string
	podEvents watch.Interface
	nodeEvent watch.Interface
}

// list reads all pods of the node from the API server.
func (w *nodeWatch) list(ctx context.Context) error {
	var pods corev1.PodList
	if err := w.client.List(ctx, &pods, client.MatchingFields{podNode: w.node.Name}); err != nil {
		return fmt.Errorf("list the pods of %s: %w", w.node.Name, err)
	}
	w.version = pods.ResourceVersion
	w.pods = make(map[types.UID]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		w.keep(&pods.Items[i])
	}
	return nil
}

// follow makes sure that both watches are open. If the watch on pods had ended, it lists the pods again and returns true
// for anew: what was planned over the old list no longer counts.
func (w *nodeWatch) follow(ctx context.Context) (anew bool, err error) {
	if w.podEvents == nil {
		if w.version == "" {
			if err := w.list(ctx); err != nil {
				return false, err
			}
			anew = true
		}
		events, err := w.client.Watch(ctx, &corev1.PodList{}, client.MatchingFields{podNode: w.node.Name}, from(w.version))
		if err != nil {
			w.version = ""
			return false, fmt.Errorf("watch the pods of %s: %w", w.node.Name, err)
		}
		w.podEvents = events
	}
	if w.nodeEvent == nil {
		var nodes corev1.NodeList
		named := client.MatchingFields{"metadata.name": w.node.Name}
		if err := w.client.List(ctx, &nodes, named); err != nil {
			return false, fmt.Errorf("read node %s: %w", w.node.Name, err)
		}
		if w.gone = len(nodes.Items) == 0 || nodes.Items[0].UID != w.node.UID; !w.gone {
			w.latest = &nodes.Items[0]
		}
		events, err := w.client.Watch(ctx, &corev1.NodeList{}, named, from(nodes.ResourceVersion))
		if err != nil {
			return false, fmt.Errorf("watch node %s: %w", w.node.Name, err)
		}
		w.nodeEvent = events
	}
	return anew, nil
}

// pod handles an event of the watch on pods. follow opens a watch again that has ended.
func (w *nodeWatch) pod(event watch.Event, open bool) {
	pod, ok := event.Object.(*corev1.Pod)
	switch {
	case !open || event.Type == watch.Error:
		stopWatch(w.podEvents)
		w.podEvents, w.version = nil, ""
	case !ok:
	case event.Type == watch.Deleted:
		delete(w.pods, pod.UID)
	default:
		w.keep(pod)
	}
}

// nodeChange handles an event of the watch on the node.
func (w *nodeWatch) nodeChange(event watch.Event, open bool) {
	node, ok := event.Object.(*corev1.Node)
	switch {
	case !open || event.Type == watch.Error:
		stopWatch(w.nodeEvent)
		w.nodeEvent = nil
	case ok && node.Name == w.node.Name:
		if w.gone = event.Type == watch.Deleted || node.UID != w.node.UID; !w.gone {
			w.latest = node
		}
	}
}

// keep stores a pod of the node without the fields that a drain does not read.
func (w *nodeWatch) keep(pod *corev1.Pod) {
	if pod.Spec.NodeName != w.node.Name {
		return
	}
	pod.ManagedFields = nil
	w.pods[pod.UID] = pod
}

func (w *nodeWatch) close() {
	stopWatch(w.podEvents)
	stopWatch(w.nodeEvent)
	w.podEvents, w.nodeEvent = nil, nil
}

// from returns the option to watch from the resource version of a list.
func from(version string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
}

// stopWatch stops a watch that may not be open.
func stopWatch(events watch.Interface) {
	if events != nil {
		events.Stop()
	}
}

// results returns the channel of a watch that may not be open; then the channel is nil and never delivers.
func results(events watch.Interface) <-chan watch.Event {
	if events == nil {
		return nil
	}
	return events.ResultChan()
}
