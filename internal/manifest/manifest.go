// Package manifest reads Kubernetes manifests and turns them into input for the planner: a plan.Snapshot of a cluster that
// need not exist, and the NodePools to plan with.
//
// # Reading
//
// Files, directories and standard input are split into documents (source.go), which are decoded on all processors
// (decode.go). Decoding is strict: a field that does not exist is a mistake, and so is one that is given twice. Every
// mistake is reported with the file, the document, the object, the field and what to write instead (mistake.go). Objects of
// kinds that planning does not use are counted in a note.
//
// Documents stops after the first of these steps, for commands that deal with other kinds; Decode is the second one for a
// type of theirs (document.go).
//
// # From objects to pods
//
// Workloads become the pods that their controllers would create, and pods are completed as the API server would complete
// them (pod.go, workload.go): defaults, PriorityClass, RuntimeClass and LimitRange are applied. A pod that is bound to a
// Node among the manifests stays there; every other pod counts as unschedulable, which is what Tenon plans for. Pods of one
// workload are reduced once and then only copied, so that a hundred thousand replicas cost no more than their names.
//
// Workloads that are listed together with their own ReplicaSets, Jobs or Pods, as `kubectl get -o yaml` prints them, are
// counted once: existing objects are taken as they are, and only what is missing is added.
package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manifests are the objects of some files, in the order of the files.
type Manifests struct {
	objects []object
	notes   []string
	ignored map[string]int // documents of kinds that planning does not use, by kind
}

// object is one object and its place in the files.
type object struct {
	place place
	value value
}

// value is what every kind has.
type value interface {
	runtime.Object
	metav1.Object
}

// place is where in the files an object is.
type place struct {
	file string
	// document counts from one. item counts the items of a list from one; zero means that the object is not in a list.
	document, item  int
	kind            string
	namespace, name string
}

// String is for people: "web.yaml, document 2, Deployment shop/web".
func (p place) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, document %d", p.file, p.document)
	if p.item > 0 {
		fmt.Fprintf(&b, ", item %d", p.item)
	}
	if p.kind != "" {
		fmt.Fprintf(&b, ", %s", p.kind)
		if name := p.key(); name != "" {
			b.WriteString(" " + name)
		}
	}
	return b.String()
}

// key is namespace/name, or the name alone.
func (p place) key() string {
	if p.namespace == "" {
		return p.name
	}
	return p.namespace + "/" + p.name
}

// Notes returns what a person should know about the reading: what was left out and what was assumed.
func (m *Manifests) Notes() []string {
	notes := slices.Clone(m.notes)
	if len(m.ignored) > 0 {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(m.ignored)) {
			kinds = append(kinds, fmt.Sprintf("%s (%d)", kind, m.ignored[kind]))
		}
		notes = append(notes, "these have no part in planning and are ignored: "+strings.Join(kinds, ", "))
	}
	return notes
}

// Len is the number of objects.
func (m *Manifests) Len() int { return len(m.objects) }

// only returns the objects of one type.
func only[T value](objects []object) []typed[T] {
	var found []typed[T]
	for i := range objects {
		if v, ok := objects[i].value.(T); ok {
			found = append(found, typed[T]{objects[i].place, v})
		}
	}
	return found
}

// typed is an object whose type is known.
type typed[T value] struct {
	place place
	value T
}
