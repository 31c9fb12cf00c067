package activities

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// The causes of workflows.Blocker.
const (
	blockedByBudget   = "PodDisruptionBudget"
	blockedByVolume   = "Volume"
	blockedByError    = "Error"
	blockedByPlace    = "NoPlaceElsewhere"
	blockedByShutdown = string(plan.HoldTerminating)
)

func errorBlocker(pod *corev1.Pod, err error) *workflows.Blocker {
	return &workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByError, Message: err.Error()}
}
