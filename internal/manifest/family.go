package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// family knows which objects were made by which others, where both are among the manifests.
type family struct {
	// parent is the controller of an object.
	parent map[owner]owner
	there  map[owner]bool
	// pods counts the pods that exist, by whoever is at the top of their owners.
	pods map[owner]int
}

func newFamily(objects []object) *family {
	f := &family{parent: map[owner]owner{}, there: map[owner]bool{}, pods: map[owner]int{}}
	for i := range objects {
		f.there[ownerOf(objects[i].place)] = true
	}
	for i := range objects {
		o := &objects[i]
		if controller := metav1.GetControllerOfNoCopy(o.value); controller != nil {
			f.parent[ownerOf(o.place)] = f.controller(o, owner{controller.Kind, o.place.namespace, controller.Name})
		}
	}
	for _, pod := range only[*corev1.Pod](objects) {
		if phase := pod.value.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		if top, ok := f.top(ownerOf(pod.place)); ok {
			f.pods[top]++
		}
	}
	return f
}

// controller is who an object belongs to. A ReplicaSet that is not among the manifests is skipped where its Deployment is:
// it is named after the Deployment and the hash that its pods are labelled with.
func (f *family) controller(o *object, named owner) owner {
	hash := o.value.GetLabels()[templateHashLabel]
	if named.kind != "ReplicaSet" || hash == "" || f.there[named] {
		return named
	}
	if name, ok := strings.CutSuffix(named.name, "-"+hash); ok && f.there[owner{"Deployment", named.namespace, name}] {
		return owner{"Deployment", named.namespace, name}
	}
	return named
}

func ownerOf(at place) owner { return owner{at.kind, at.namespace, at.name} }

// top is the uppermost owner of an object that is among the manifests; false if there is none.
func (f *family) top(of owner) (owner, bool) {
	found := false
	for range 8 { // a cycle of owners is a mistake of somebody else's
		parent, ok := f.parent[of]
		if !ok || !f.there[parent] {
			break
		}
		of, found = parent, true
	}
	return of, found
}

// missing is how many of a workload's pods do not exist yet: none where a controller above it makes them.
func (f *family) missing(w *workload, made map[owner]bool) int {
	self := ownerOf(w.place)
	if _, owned := f.top(self); owned {
		return 0
	}
	if w.kind == "CronJob" && made[self] {
		return 0
	}
	return max(0, w.want-f.pods[self])
}

// parents are all objects that others among the manifests name as their controller.
func (f *family) parents() map[owner]bool {
	parents := map[owner]bool{}
	for _, parent := range f.parent {
		parents[parent] = true
	}
	return parents
}
