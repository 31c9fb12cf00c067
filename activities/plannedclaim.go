package activities

import (
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// frozen converts claims of a plan to the form that histories record.
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

// thawed converts recorded claims back to claims of a plan.
func thawed(claims []workflows.PlannedClaim) []plan.Claim {
	planned := make([]plan.Claim, len(claims))
	for i := range claims {
		planned[i] = plan.Claim(claims[i])
	}
	return planned
}
