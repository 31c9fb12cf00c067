package aws

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// unsupportedFamily is the reason for AMI families whose user data this package does not write.
const unsupportedFamily = "UnsupportedAMIFamily"

func unsupportedFamilyMessage(family string) string {
	return fmt.Sprintf("spec.amiFamily: Tenon writes user data for AL2023 and Custom, not for %s; use al2023@latest, or Custom with your own user data", family)
}

// finding is what one part of a class came to.
type finding struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

var fine = finding{status: metav1.ConditionTrue}

func bad(reason, format string, args ...any) finding {
	return finding{metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)}
}

// judge turns an error into a finding where a person has to do something about it; other errors are returned and the
// class is resolved again.
func judge(err error) (finding, error) {
	switch cloud.KindOf(err) {
	case cloud.Forbidden, cloud.Invalid:
		return bad(cloud.ReasonOf(err), "%v", err), nil
	}
	return finding{}, err
}

// ResolveNodeClass implements cloud.Provider.
func (p *Provider) ResolveNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) (awsv1.EC2NodeClassStatus, error) {
	work := class.DeepCopy()
	for _, part := range []struct {
		condition string
		resolve   func(context.Context, *awsv1.EC2NodeClass) (finding, error)
	}{
		{awsv1.ConditionTypeAMIsReady, p.resolveImages},
		{awsv1.ConditionTypePlacementGroupReady, p.resolvePlacementGroup},
		{awsv1.ConditionTypeSubnetsReady, p.resolveSubnets},
		{awsv1.ConditionTypeSecurityGroupsReady, p.resolveSecurityGroups},
		{awsv1.ConditionTypeInstanceProfileReady, p.resolveProfile},
		{awsv1.ConditionTypeCapacityReservationsReady, p.resolveReservations},
		{awsv1.ConditionTypeValidationSucceeded, p.validate},
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
	p.cleanTemplates(ctx, class.Name)
	return work.Status, nil
}

// The messages for what a selector does not find are Karpenter's, word for word: alerts match on them.
func (p *Provider) resolveImages(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	class.Status.AMIs = nil
	if alias, ok := class.Alias(); ok {
		cluster, _, err := p.cluster.get(ctx)
		if err != nil {
			return finding{}, err
		}
		if why := unsupportedAlias(alias, cluster.version); why != "" {
			return bad("UnsupportedAlias", "spec.amiSelectorTerms: %s", why), nil
		}
	}
	images, err := p.selectImages(ctx, class)
	if err != nil {
		return finding{}, err
	}
	class.Status.AMIs = images
	if len(images) == 0 {
		return bad("AMINotFound", "AMISelector did not match any AMIs"), nil
	}
	return fine, nil
}

func (p *Provider) resolvePlacementGroup(_ context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	if class.Spec.PlacementGroupSelector != nil {
		return bad("PlacementGroupsNotSupported", "spec.placementGroupSelector: Tenon does not launch into placement groups"), nil
	}
	return fine, nil
}

func (p *Provider) resolveSubnets(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	subnets, err := p.subnets.selectSubnets(ctx, class.Spec.SubnetSelectorTerms)
	class.Status.Subnets = subnets
	if err != nil {
		return finding{}, err
	}
	if len(subnets) == 0 {
		return bad("SubnetsNotFound", "SubnetSelector did not match any Subnets"), nil
	}
	return fine, nil
}

func (p *Provider) resolveSecurityGroups(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	groups, err := p.selectSecurityGroups(ctx, class.Spec.SecurityGroupSelectorTerms)
	class.Status.SecurityGroups = groups
	if err != nil {
		return finding{}, err
	}
	if len(groups) == 0 {
		return bad("SecurityGroupsNotFound", "SecurityGroupSelector did not match any SecurityGroups"), nil
	}
	return fine, nil
}

func (p *Provider) resolveProfile(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	class.Status.InstanceProfile = ""
	if given := class.Spec.InstanceProfile; given != nil && *given != "" {
		// IAM is not asked: private clusters do not reach it. Whether there is such a profile, the dry runs tell.
		class.Status.InstanceProfile = *given
		return fine, nil
	}
	if class.Spec.Role == "" {
		return bad("InstanceProfileNotFound", "one of spec.role and spec.instanceProfile is required"), nil
	}
	if p.options.IsolatedVPC {
		return bad("IAMUnreachable", "spec.role: an isolated VPC does not reach IAM, which makes instance profiles; use spec.instanceProfile"), nil
	}
	name, err := p.ensureProfile(ctx, class)
	if hasCode(err, "NoSuchEntity") {
		return bad("RoleNotFound", "spec.role: there is no role %q", class.Spec.Role), nil
	}
	if err != nil {
		return finding{}, err
	}
	class.Status.InstanceProfile = name
	return fine, nil
}

// cleanTemplates removes the old launch templates of a class now and then. They cost nothing, so that a failure is
// no more than worth a line.
func (p *Provider) cleanTemplates(ctx context.Context, class string) {
	if _, recently := p.cleaned.get(class); recently {
		return
	}
	p.cleaned.put(class, struct{}{})
	if err := p.templates.clean(ctx, class, templateKept); err != nil {
		p.log.Warn("old launch templates stay for now", zap.String("nodeClass", class), zap.Error(err))
	}
}

// ReleaseNodeClass implements cloud.Provider.
func (p *Provider) ReleaseNodeClass(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if err := p.templates.clean(ctx, class.Name, 0); err != nil {
		return err
	}
	if err := p.releaseProfiles(ctx, class); err != nil {
		return err
	}
	p.resolved.remove(resolvedName(class))
	return nil
}
