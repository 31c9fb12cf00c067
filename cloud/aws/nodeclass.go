package aws

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// Kind implements cloud.Provider.
func (p *Provider) Kind() cloud.Kind { return nodeclass.Kind() }

// ResolveNodeClass implements cloud.Provider.
func (p *Provider) ResolveNodeClass(ctx context.Context, given cloud.NodeClass) (cloud.NodeClass, error) {
	class, err := ec2Class(given)
	if err != nil {
		return nil, err
	}
	work := class.DeepCopy()
	for _, part := range []struct {
		condition string
		resolve   func(context.Context, *awsv1.EC2NodeClass) (finding, error)
	}{
		{awsv1.ConditionTypeAMIsReady, p.readiness.resolveImages},
		{awsv1.ConditionTypePlacementGroupReady, p.readiness.resolvePlacementGroup},
		{awsv1.ConditionTypeSubnetsReady, p.readiness.resolveSubnets},
		{awsv1.ConditionTypeSecurityGroupsReady, p.readiness.resolveSecurityGroups},
		{awsv1.ConditionTypeInstanceProfileReady, p.readiness.resolveProfile},
		{awsv1.ConditionTypeCapacityReservationsReady, p.readiness.resolveReservations},
		{awsv1.ConditionTypeValidationSucceeded, p.validator.validate},
	} {
		if part.condition == awsv1.ConditionTypeCapacityReservationsReady && len(class.Spec.CapacityReservationSelectorTerms) == 0 {
			work.Status.CapacityReservations = nil
			work.ClearCondition(part.condition)
			continue
		}
		found, err := part.resolve(ctx, work)
		if err != nil {
			if found, err = judge(err); err != nil {
				return nil, fmt.Errorf("resolve node class %s: %s: %w", class.Name, part.condition, err)
			}
		}
		work.SetCondition(metav1.Condition{
			Type: part.condition, Status: found.status, Reason: found.reason, Message: found.message,
			LastTransitionTime: metav1.NewTime(p.now()),
		})
	}
	p.templates.cleanOld(ctx, class.Name)
	// The order of subnets changes with every launch, and that alone is no change.
	byID := func(a, b awsv1.Subnet) int { return cmp.Compare(a.ID, b.ID) }
	if slices.Equal(slices.SortedFunc(slices.Values(class.Status.Subnets), byID), slices.SortedFunc(slices.Values(work.Status.Subnets), byID)) {
		work.Status.Subnets = class.Status.Subnets
	}
	return work, nil
}

// ReleaseNodeClass implements cloud.Provider.
func (p *Provider) ReleaseNodeClass(ctx context.Context, given cloud.NodeClass) error {
	class, err := ec2Class(given)
	if err != nil {
		return err
	}
	if err := p.templates.clean(ctx, class.Name, 0); err != nil {
		return err
	}
	if err := p.profiles.release(ctx, class); err != nil {
		return err
	}
	p.catalogue.resolved.remove(resolvedName(class))
	return nil
}
