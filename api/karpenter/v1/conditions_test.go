package v1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestReadyFollowsItsParts(t *testing.T) {
	t.Parallel()
	claim := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	for _, step := range []struct {
		reason      string
		condition   metav1.Condition
		wantStatus  metav1.ConditionStatus
		wantReason  string
		wantMessage string
	}{
		{
			"parts that are missing are unknown",
			metav1.Condition{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue},
			metav1.ConditionUnknown, v1.ReasonReconcilingDependents, "Registered=Unknown, Initialized=Unknown",
		},
		{
			"one False part is enough",
			metav1.Condition{Type: v1.ConditionTypeRegistered, Status: metav1.ConditionFalse, Reason: "MultipleNodesFound"},
			metav1.ConditionFalse, v1.ReasonUnhealthyDependents, "Registered=False, Initialized=Unknown",
		},
		{
			"other conditions do not take part",
			metav1.Condition{Type: v1.ConditionTypeDrifted, Status: metav1.ConditionFalse},
			metav1.ConditionFalse, v1.ReasonUnhealthyDependents, "Registered=False, Initialized=Unknown",
		},
		{
			"a part recovers",
			metav1.Condition{Type: v1.ConditionTypeRegistered, Status: metav1.ConditionTrue},
			metav1.ConditionUnknown, v1.ReasonReconcilingDependents, "Initialized=Unknown",
		},
		{
			"all parts are there",
			metav1.Condition{Type: v1.ConditionTypeInitialized, Status: metav1.ConditionTrue},
			metav1.ConditionTrue, v1.ReasonReady, "",
		},
	} {
		if !claim.SetCondition(step.condition) {
			t.Errorf("%s: nothing changed", step.reason)
		}
		ready := claim.Condition(v1.ConditionTypeReady)
		if ready.Status != step.wantStatus || ready.Reason != step.wantReason || ready.Message != step.wantMessage {
			t.Errorf("%s: Ready is %s/%s/%q, want %s/%s/%q", step.reason, ready.Status, ready.Reason, ready.Message,
				step.wantStatus, step.wantReason, step.wantMessage)
		}
		if ready.ObservedGeneration != 3 {
			t.Errorf("%s: observedGeneration %d, want 3", step.reason, ready.ObservedGeneration)
		}
		if claim.SetCondition(step.condition) {
			t.Errorf("%s: setting it again changed something", step.reason)
		}
	}
}

func TestTransitionTimeIsKept(t *testing.T) {
	t.Parallel()
	first := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	claim := &v1.NodeClaim{}
	claim.SetCondition(metav1.Condition{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: first})
	claim.SetCondition(metav1.Condition{Type: v1.ConditionTypeLaunched, Status: metav1.ConditionTrue, Message: "again"})
	got := claim.Condition(v1.ConditionTypeLaunched)
	if !got.LastTransitionTime.Equal(&first) || got.Message != "again" || got.Reason != v1.ConditionTypeLaunched {
		t.Errorf("got %+v, want the first transition time, the new message and the type as reason", got)
	}
}
