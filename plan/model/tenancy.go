package model

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// An instance runs on hardware that accounts share (tenancy default), or on hardware of one account alone (dedicated). As
// with Karpenter, every instance type can be launched with either at the same price, a launch has one of them, and default
// is taken wherever it is allowed. Where the provider has no label for the tenancy, there is no choice.
const (
	tenancyDefault   = "default"
	tenancyDedicated = "dedicated"
)

// Tenancies are the tenancies, the preferred first.
func Tenancies() []string { return []string{tenancyDefault, tenancyDedicated} }

// Tenancy returns the tenancy that a claim's machine has or will have; empty if the provider offers no choice.
func Tenancy(keys cloud.LabelKeys, claim *karpv1.NodeClaim) string {
	if keys.Tenancy == "" {
		return ""
	}
	if settled := claim.Labels[keys.Tenancy]; settled != "" {
		return settled
	}
	if tenancy, ok := ConditionsOf(claim.Spec.Requirements).Tenancy(keys); ok {
		return tenancy
	}
	return tenancyDefault
}

// Tenancy returns the preferred tenancy that the conditions admit, and false if they admit none.
func (t Term) Tenancy(keys cloud.LabelKeys) (tenancy string, ok bool) {
	for _, tenancy := range Tenancies() {
		admits := true
		for i := range t {
			admits = admits && (t[i].Key != keys.Tenancy || t[i].Admits(tenancy, true))
		}
		if admits {
			return tenancy, true
		}
	}
	return "", false
}
