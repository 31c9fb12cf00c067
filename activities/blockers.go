package activities

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// The causes of workflows.Blocker.
const (
	// blockedByBudget says that PodDisruptionBudgets allow no eviction of the pod.
	blockedByBudget = "PodDisruptionBudget"
	// blockedByVolume says that a volume is still attached to the node.
	blockedByVolume = "Volume"
	// blockedByError says that the API server refuses the eviction, with its error.
	blockedByError = "Error"
	// blockedByPlace says that no serving node has room for the pod yet, which is waited for while the instance lasts.
	blockedByPlace = "NoPlaceElsewhere"
	// blockedByShutdown says that the pod takes long to end.
	blockedByShutdown = string(plan.HoldTerminating)
)

func errorBlocker(pod *corev1.Pod, err error) *workflows.Blocker {
	return &workflows.Blocker{Pod: pod.Namespace + "/" + pod.Name, Cause: blockedByError, Message: err.Error()}
}
