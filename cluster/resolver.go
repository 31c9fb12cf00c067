package cluster

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

// resolver makes the virtual pods of CapacityBuffers from the objects that the buffers refer to.
type resolver struct {
	*shared
	// feed are the CapacityBuffers, watched where the cluster serves them; origins are the kinds they may refer to,
	// each watched once a buffer refers to it.
	feed     *feed[*bufferv1.CapacityBuffer]
	origins  map[string]origins
	buffers  *buffers
	promises *promises
}

// openBuffers prepares the watches of CapacityBuffers and of the kinds they may refer to.
func openBuffers(w *watches, buffers *buffers, promises *promises) {
	r := &resolver{shared: w.shared, buffers: buffers, promises: promises}
	r.origins = openOrigins(w, r.originChanged)
	gv := bufferv1.SchemeGroupVersion
	r.feed = open(w, gv, "capacitybuffers", &bufferv1.CapacityBuffer{}, nil, whole[*bufferv1.CapacityBuffer], nameOf[*bufferv1.CapacityBuffer], r.bufferChanged)
	w.whenServed(gv, r.feed.emptied)
}

// bufferChanged resolves a buffer. The lock is held.
func (r *resolver) bufferChanged(old, now *bufferv1.CapacityBuffer, _, exists bool) {
	if !exists {
		r.settle(nameOf(old), Buffer{}, false)
	} else {
		r.resolve(now)
	}
	r.publish(Event{Kind: BuffersChanged})
}

// originChanged resolves the buffers that refer to an origin. The lock is held.
func (r *resolver) originChanged(old, now *origin, existed, exists bool) {
	if existed && exists && old.generation == now.generation && old.replicas == now.replicas && old.model.Class == now.model.Class && old.model.Labels == now.model.Labels {
		return // only its status has changed
	}
	changed := now
	if !exists {
		changed = old
	}
	told := false
	for _, buffer := range r.feed.items {
		if _, name := referred(buffer); name == changed.name && buffer.Namespace == changed.namespace {
			r.resolve(buffer)
			told = true
		}
	}
	if told {
		r.publish(Event{Kind: BuffersChanged})
	}
}

// resolve rebuilds a buffer's virtual pods. The lock is held.
func (r *resolver) resolve(object *bufferv1.CapacityBuffer) {
	if !object.Active() || !object.DeletionTimestamp.IsZero() {
		r.settle(nameOf(object), Buffer{}, false)
		return
	}
	resolved := Buffer{Object: object}
	defer func() { r.settle(nameOf(object), resolved, true) }()
	kind, name := referred(object)
	known, ok := r.origins[kind]
	if !ok {
		resolved.Reason, resolved.Problem = bufferv1.ReasonResolutionFailed, "set one of podTemplateRef and scalableRef"
		if ref := object.Spec.ScalableRef; ref != nil {
			resolved.Problem = fmt.Sprintf("scalableRef: a Deployment, StatefulSet or ReplicaSet of the group %s is wanted, not a %s of %q", appsv1.GroupName, ref.Kind, ref.APIGroup)
		}
		return
	}
	known.need()
	made, ok := known.feed.items[object.Namespace+"/"+name]
	if !ok {
		resolved.Reason, resolved.Problem = bufferv1.ReasonScalableRefNotFound, fmt.Sprintf("there is no %s %q", kind, name)
		if kind == podTemplateKind {
			resolved.Reason = bufferv1.ReasonPodTemplateNotFound
		}
		return
	}
	resolved.Generation = made.generation
	wish := plan.Wish{Replicas: object.Spec.Replicas, Percentage: object.Spec.Percentage, Scale: made.replicas, Limits: object.Spec.Limits}
	count, err := wish.Count(made.model.Class.Requests)
	if err != nil {
		resolved.Reason, resolved.Problem = bufferv1.ReasonResolutionFailed, err.Error()
		return
	}
	resolved.Pods = made.model.VirtualPods(object.UID, object.Name, count)
}

// settle replaces or removes a resolved buffer, and ends the promises to the virtual pods that it no longer has. The
// lock is held.
func (r *resolver) settle(key string, resolved Buffer, exists bool) {
	for _, pod := range r.buffers.put(key, resolved, exists) {
		if !r.buffers.has(pod.UID) {
			r.promises.keepPromise(pod.UID)
		}
	}
}
