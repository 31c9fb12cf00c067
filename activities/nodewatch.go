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

// nodeWatch follows one node and its pods: it lists the pods in the API server itself, and follows them from exactly
// there, so that no change is missed between the two.
type nodeWatch struct {
	client client.WithWatch
	node   *corev1.Node
	// latest is the node as it was last seen, and gone says that it was deleted or replaced by another of its name.
	latest *corev1.Node
	gone   bool
	pods   map[types.UID]*corev1.Pod
	// version is where the list of pods stands.
	version   string
	podEvents watch.Interface
	nodeEvent watch.Interface
}

// list reads all pods of the node anew.
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

// follow makes sure that both watches are open. Where the one on pods had ended, the pods are listed again, and anew is
// true: what was planned over the old ones no longer counts.
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

// pod takes in an event of the pods' watch. A watch that has ended is opened again by follow.
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

// nodeChange takes in an event of the node's watch.
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

// keep remembers a pod of the node without what a drain does not read.
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

// from asks for a watch that begins where a list stood.
func from(version string) *client.ListOptions {
	return &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}}
}

// stopWatch stops a watch that may not be open.
func stopWatch(events watch.Interface) {
	if events != nil {
		events.Stop()
	}
}

// results is the channel of a watch that may not be open; such a channel never delivers.
func results(events watch.Interface) <-chan watch.Event {
	if events == nil {
		return nil
	}
	return events.ResultChan()
}
