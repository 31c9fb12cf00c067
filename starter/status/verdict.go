package status

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// blinkFor is how soon Consolidatable must be back to be left in place although it does not hold: otherwise each pod
// that comes or goes would cost two writes.
const blinkFor = 10 * time.Second

// verdict is what the conditions of a claim should say.
type verdict struct {
	// drift is the zero Drift if there is none; settled is false while the cloud's part of the answer is not known.
	drift   cloud.Drift
	settled bool
	// vague says that the drift's message does not name the field, which an earlier message may have named.
	vague bool
	// consolidatable says that the condition holds; if it does not, when is the time from which it will, or zero.
	consolidatable bool
	when           time.Time
	// heldUntil is the time until which nothing is written for Consolidatable alone.
	heldUntil    time.Time
	lastPodEvent time.Time
	// going says that the node is being removed, so that whether it may be is no news.
	going bool
	// shortfall says what the node lacks of what was bought; empty if nothing.
	shortfall string
}

// consistent returns the wish for ConsistentStateFound: False if the node lacks something.
func (v *verdict) consistent() wish {
	return wish{condition: karpv1.ConditionTypeConsistentStateFound, holds: v.shortfall != "", reason: reasonInconsistent, message: v.shortfall, denies: true}
}

// conditions returns the wishes for Drifted and Consolidatable.
func (v *verdict) conditions(claim *karpv1.NodeClaim, now time.Time) (drifted, consolidatable wish) {
	off := wish{condition: karpv1.ConditionTypeDrifted}
	switch is := claim.Condition(karpv1.ConditionTypeDrifted); {
	case !claim.IsTrue(karpv1.ConditionTypeLaunched):
		drifted = off
	case v.drift.Reason != "":
		drifted = wish{condition: karpv1.ConditionTypeDrifted, holds: true, reason: v.drift.Reason, message: fitting(v.drift.Message)}
		if v.vague && is != nil && is.Reason == v.drift.Reason {
			drifted.message = is.Message
		}
	case is != nil && (v.settled || ownDrift(is.Reason)):
		drifted = off
	}
	switch {
	case v.going:
	case v.consolidatable:
		consolidatable = wish{condition: karpv1.ConditionTypeConsolidatable, holds: true, reason: karpv1.ConditionTypeConsolidatable}
	case v.when.IsZero() || v.when.Sub(now) > blinkFor:
		consolidatable = wish{condition: karpv1.ConditionTypeConsolidatable}
	}
	return drifted, consolidatable
}

// ownDrift says that a reason is known without the cloud.
func ownDrift(reason string) bool {
	return reason == plan.DriftNodePool || reason == plan.DriftRequirements
}
