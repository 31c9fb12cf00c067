package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The reasons of a NodePool's condition MaintenanceWindow.
const (
	// windowOpen means that all that waits for windows may go now.
	windowOpen = "Open"
	// windowClosed means that something waits for the next window.
	windowClosed = "Closed"
	// windowMisread means that the annotation cannot be read, so that what could wait for a window waits until it is corrected.
	windowMisread = "Misread"
)

// keepWindow sets the condition that says whether the pool's maintenance windows are open, or removes it if it has none. The
// mirror announces a change of the pool when a window opens or closes.
func (s *NodePools) keepWindow(pool *karpv1.NodePool) {
	state := s.mirror.Windows().State(pool, s.now())
	if state == nil {
		pool.ClearCondition(karpv1.ConditionTypeMaintenanceWindow)
		return
	}
	condition := metav1.Condition{Type: karpv1.ConditionTypeMaintenanceWindow, Status: metav1.ConditionTrue, Reason: windowOpen, Message: fitting(state.Text)}
	switch {
	case state.Problem != "":
		condition.Status, condition.Reason = metav1.ConditionFalse, windowMisread
	case len(state.Closed) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, windowClosed
	}
	pool.SetCondition(condition)
}
