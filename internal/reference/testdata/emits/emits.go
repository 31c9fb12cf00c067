// Package emits emits Events and sets conditions in each way that the reference has to follow.
package emits

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

const (
	// Direct is handed to the recorder itself.
	Direct = "Direct"
	// Field is in a field of a table.
	Field = "Field"
	// Passed goes through a function.
	Passed = "Passed"
	// Closure goes through a closure.
	Closure = "Closure"
	// Chosen is what a function returns.
	Chosen = "Chosen"
	// Local is the value of a variable.
	Local = "Local"
)

type row struct{ reason string }

var rows = map[int]row{1: {reason: Field}}

// Emit emits all of them.
func Emit(to record.EventRecorder, pod *corev1.Pod, node *corev1.Node) {
	to.Event(pod, corev1.EventTypeNormal, Direct, "")
	is := rows[1]
	to.Eventf(node, corev1.EventTypeWarning, is.reason, "%d", 1)
	pass(to, node, corev1.EventTypeNormal, Passed)
	pass(to, nil, corev1.EventTypeWarning, Passed)
	tell := func(reason string) { to.Event(pod, corev1.EventTypeNormal, reason, "") }
	tell(Closure)
	tell(choose(true))
	reason := Local
	to.Event(&corev1.ObjectReference{Kind: "NodePool"}, corev1.EventTypeNormal, reason, "")
}

func pass(to record.EventRecorder, object runtime.Object, kind, reason string) {
	to.Event(object, kind, reason, "")
}

func choose(one bool) string {
	if one {
		return Chosen
	}
	return ""
}

// Set sets conditions.
func Set() (first, second metav1.Condition) {
	first = metav1.Condition{Type: "Ready", Reason: Direct}
	second.Reason, second.Message = Local, ""
	return first, second
}
