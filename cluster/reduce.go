package cluster

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/plan"
)

// Each resource has its own function that reduces its objects, such as reducePod; this file holds what they share.

// whole keeps an API object as it is, without managedFields.
func whole[O metav1.Object](_ *plan.Interner, obj any) (O, error) {
	object, ok := obj.(O)
	if !ok {
		var want O
		return want, unexpected(want, obj)
	}
	object.SetManagedFields(nil)
	return object, nil
}

// nameOf is the key of a whole API object within its resource.
func nameOf[O metav1.Object](object O) string {
	if namespace := object.GetNamespace(); namespace != "" {
		return namespace + "/" + object.GetName()
	}
	return object.GetName()
}

// unexpected is the error of a reduction that gets an object of another type.
func unexpected(want, got any) error { return fmt.Errorf("mirror: want a %T, got a %T", want, got) }

// named gives a reduced object the metadata that the Reflector looks for while the initial state streams in.
func named(namespace, name string) metav1.Object {
	return &metav1.ObjectMeta{Namespace: namespace, Name: name}
}
