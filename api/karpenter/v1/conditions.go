package v1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionTypeReady is the condition every resource rolls its parts up into.
const ConditionTypeReady = "Ready"

// Reasons of the condition Ready.
const (
	// ReasonReady says that every part is True.
	ReasonReady = "Ready"
	// ReasonUnhealthyDependents says that at least one part is False.
	ReasonUnhealthyDependents = "UnhealthyDependents"
	// ReasonReconcilingDependents says that no part is False and at least one is not known yet.
	ReasonReconcilingDependents = "ReconcilingDependents"
)

// ReasonAwaitingReconciliation is the reason of a condition nothing has been found out about yet.
const ReasonAwaitingReconciliation = "AwaitingReconciliation"

// RollUp returns the condition Ready over the conditions named in parts: False if one of them is False, Unknown if one
// is missing or Unknown, else True. The message names the parts that are not True.
func RollUp(conditions []metav1.Condition, generation int64, parts ...string) metav1.Condition {
	ready := metav1.Condition{
		Type: ConditionTypeReady, Status: metav1.ConditionTrue, Reason: ReasonReady, ObservedGeneration: generation,
	}
	var open []string
	for _, part := range parts {
		status := metav1.ConditionUnknown
		if c := meta.FindStatusCondition(conditions, part); c != nil {
			status = c.Status
		}
		switch status {
		case metav1.ConditionTrue:
			continue
		case metav1.ConditionFalse:
			ready.Status, ready.Reason = metav1.ConditionFalse, ReasonUnhealthyDependents
		default:
			if ready.Status == metav1.ConditionTrue {
				ready.Status, ready.Reason = metav1.ConditionUnknown, ReasonReconcilingDependents
			}
		}
		open = append(open, fmt.Sprintf("%s=%s", part, status))
	}
	ready.Message = strings.Join(open, ", ")
	return ready
}

// SetCondition puts c into conditions and rolls Ready up over the parts again. An empty reason becomes the condition's
// type, which is what conditions that are True carry. It tells whether anything changed. Resources have a method of the
// same name, which is what to call.
func SetCondition(conditions *[]metav1.Condition, generation int64, c metav1.Condition, parts func() []string) bool {
	if c.Reason == "" {
		c.Reason = c.Type
	}
	c.ObservedGeneration = generation
	changed := meta.SetStatusCondition(conditions, c)
	return meta.SetStatusCondition(conditions, RollUp(*conditions, generation, parts()...)) || changed
}
