package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// wish is the desired state of a condition: set for a reason, or absent. The zero wish leaves the condition as it is.
type wish struct {
	condition       string
	holds           bool
	reason, message string
	// denies says that the condition is set to False instead of True; one that is True is not Tenon's.
	denies bool
}

// status returns the status of the condition when it is set.
func (w wish) status() metav1.ConditionStatus {
	if w.denies {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// news says whether a claim differs from the wish.
func (w wish) news(claim *karpv1.NodeClaim) bool {
	if w.condition == "" {
		return false
	}
	is := claim.Condition(w.condition)
	if is == nil || !w.holds {
		there := is != nil && (!w.denies || is.Status == w.status())
		return there != w.holds
	}
	return is.Status != w.status() || is.Reason != w.reason || is.Message != w.message
}

// put applies the wish to a claim, and returns whether that changes it.
func (w wish) put(claim *karpv1.NodeClaim) bool {
	switch {
	case !w.news(claim):
		return false
	case w.holds:
		return claim.SetCondition(metav1.Condition{Type: w.condition, Status: w.status(), Reason: w.reason, Message: w.message})
	}
	return claim.ClearCondition(w.condition)
}
