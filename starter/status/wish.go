package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// wish is what a condition is to be: True for a reason, or False, or not there; or as it is, which is the zero wish.
type wish struct {
	condition       string
	holds           bool
	reason, message string
	// denies says that the condition is False where it holds; one that is True is somebody else's.
	denies bool
}

// status is what the condition is where it holds.
func (w wish) status() metav1.ConditionStatus {
	if w.denies {
		return metav1.ConditionFalse
	}
	return metav1.ConditionTrue
}

// news says that a claim does not say so yet.
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

// put has a claim say so, and returns whether that is news.
func (w wish) put(claim *karpv1.NodeClaim) bool {
	switch {
	case !w.news(claim):
		return false
	case w.holds:
		return claim.SetCondition(metav1.Condition{Type: w.condition, Status: w.status(), Reason: w.reason, Message: w.message})
	}
	return claim.ClearCondition(w.condition)
}
