package aws

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// ResolveNodeClass implements cloud.Provider.
func (p *Provider) ResolveNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) (awsv1.EC2NodeClassStatus, error) {
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
				return awsv1.EC2NodeClassStatus{}, fmt.Errorf("resolve node class %s: %s: %w", class.Name, part.condition, err)
			}
		}
		work.SetCondition(metav1.Condition{
			Type: part.condition, Status: found.status, Reason: found.reason, Message: found.message,
			LastTransitionTime: metav1.NewTime(p.now()),
		})
	}
	p.templates.cleanOld(ctx, class.Name)
	return work.Status, nil
}

// ReleaseNodeClass implements cloud.Provider.
func (p *Provider) ReleaseNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if err := p.templates.clean(ctx, class.Name, 0); err != nil {
		return err
	}
	if err := p.profiles.release(ctx, class); err != nil {
		return err
	}
	p.catalogue.resolved.remove(resolvedName(class))
	return nil
}
