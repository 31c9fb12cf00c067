// Package emitswrong emits Events with reasons that no document could explain.
package emitswrong

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
)

const bare = "Bare"

// Emit emits them.
func Emit(to record.EventRecorder, pod *corev1.Pod) {
	to.Event(pod, corev1.EventTypeNormal, "Literal", "")
	to.Event(pod, corev1.EventTypeNormal, bare, "")
	to.Event(pod, corev1.EventTypeNormal, pod.Name, "")
}

// Set sets a condition.
func Set() metav1.Condition { return metav1.Condition{Type: "Ready", Reason: "Literal"} }
