package status

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// blinkFor is for how long Consolidatable stays although it does not hold: one that will be back so soon is not worth two
// writes each time a pod comes or goes.
const blinkFor = 10 * time.Second

// verdict is what the conditions of a claim have to say.
type verdict struct {
	// drift is the zero Drift where there is none; settled is false while the cloud's part of the answer is not known.
	drift   cloud.Drift
	settled bool
	// vague says that the drift's message does not name the field, which an earlier one may have done.
	vague bool
	// consolidatable holds, or will at a time that is not zero.
	consolidatable bool
	when           time.Time
	// heldUntil is until when nothing is written for Consolidatable alone.
	heldUntil    time.Time
	lastPodEvent time.Time
	// going says that the node is being taken away, so that whether it may be is no news.
	going bool
	// shortfall is what the node lacks of what was bought; empty where it lacks nothing.
	shortfall string
}

// consistent is what the condition ConsistentStateFound is to be: False, where the node lacks something.
func (v *verdict) consistent() wish {
	return wish{condition: karpv1.ConditionTypeConsistentStateFound, holds: v.shortfall != "", reason: reasonInconsistent, message: v.shortfall, denies: true}
}

// conditions are what the conditions of a claim are to be.
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

// ownDrift says that a reason is one that is known without the cloud.
func ownDrift(reason string) bool {
	return reason == plan.DriftNodePool || reason == plan.DriftRequirements
}
