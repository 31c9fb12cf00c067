package activities

import (
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// frozen are claims of a plan as histories keep them.
func frozen(claims []plan.Claim) []workflows.PlannedClaim {
	if claims == nil {
		return nil
	}
	kept := make([]workflows.PlannedClaim, len(claims))
	for i := range claims {
		kept[i] = workflows.PlannedClaim(claims[i])
	}
	return kept
}

// thawed are claims as the plan had them.
func thawed(claims []workflows.PlannedClaim) []plan.Claim {
	planned := make([]plan.Claim, len(claims))
	for i := range claims {
		planned[i] = plan.Claim(claims[i])
	}
	return planned
}
