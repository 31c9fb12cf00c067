package model

import (
	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// EC2 runs an instance on hardware that accounts share (tenancy default), or on hardware of one account alone (dedicated).
// As with Karpenter, every instance type can be launched with either at the same price, a launch has one of them, and
// default is taken wherever it is allowed.
const (
	tenancyDefault   = "default"
	tenancyDedicated = "dedicated"
)

// Tenancies are the tenancies, the preferred first.
func Tenancies() []string { return []string{tenancyDefault, tenancyDedicated} }

// Tenancy returns the tenancy that a claim's machine has or will have.
func Tenancy(claim *karpv1.NodeClaim) string {
	if settled := claim.Labels[awsv1.LabelInstanceTenancy]; settled != "" {
		return settled
	}
	if tenancy, ok := ConditionsOf(claim.Spec.Requirements).Tenancy(); ok {
		return tenancy
	}
	return tenancyDefault
}

// Tenancy returns the preferred tenancy that the conditions admit, and false if they admit none.
func (t Term) Tenancy() (tenancy string, ok bool) {
	for _, tenancy := range Tenancies() {
		admits := true
		for i := range t {
			admits = admits && (t[i].Key != awsv1.LabelInstanceTenancy || t[i].Admits(tenancy, true))
		}
		if admits {
			return tenancy, true
		}
	}
	return "", false
}
