package manifest

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// family records which objects were created by which others, if both are among the manifests.
type family struct {
	// parent is the controller of an object.
	parent map[owner]owner
	there  map[owner]bool
	// pods counts the existing pods by their topmost owner.
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

// controller returns the owner of an object. If a ReplicaSet is not among the manifests but its Deployment is, the
// Deployment is the owner: the ReplicaSet is named after the Deployment and the hash in its pods' labels.
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

// top returns the topmost owner of an object that is among the manifests; false if there is none.
func (f *family) top(of owner) (owner, bool) {
	found := false
	for range 8 { // ends at a cycle of owners, which is not this program's mistake
		parent, ok := f.parent[of]
		if !ok || !f.there[parent] {
			break
		}
		of, found = parent, true
	}
	return of, found
}

// missing returns how many of a workload's pods do not exist yet; zero if a controller above it creates them.
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

// parents returns all objects that others among the manifests name as their controller.
func (f *family) parents() map[owner]bool {
	parents := map[owner]bool{}
	for _, parent := range f.parent {
		parents[parent] = true
	}
	return parents
}
