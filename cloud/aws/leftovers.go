package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/logs"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

const (
	launchTemplateKind  = "launch template"
	instanceProfileKind = "instance profile"
	// karpenterTemplatePrefix begins the names of Karpenter's launch templates (LaunchTemplateNamePrefix in its
	// pkg/apis/v1/labels.go). If Karpenter needs one again, it makes it again.
	karpenterTemplatePrefix = "karpenter.k8s.aws/"
)

// Leftovers implements cloud.Provider. It does not look into IAM where that cannot be reached or is denied: there, no
// instance profiles were made.
func (p *Provider) Leftovers(ctx context.Context, given []cloud.NodeClass) ([]cloud.Leftover, error) {
	var classes []*awsv1.EC2NodeClass
	for _, one := range given {
		class, err := ec2Class(one)
		if err != nil {
			return nil, err
		}
		classes = append(classes, class)
	}
	found, err := p.templates.leftovers(ctx)
	if err != nil || p.profiles.isolated {
		return found, err
	}
	unneeded, err := p.profiles.unneeded(ctx, classes)
	if cloud.KindOf(err) == cloud.Forbidden {
		logs.Of(ctx, p.log).Info("instance profiles of former node classes are not looked for", zap.Error(err))
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range unneeded {
		used, err := p.inUse(ctx, &unneeded[i])
		if err != nil {
			return nil, err
		}
		if !used {
			found = append(found, cloud.Leftover{Kind: instanceProfileKind, Name: aws.ToString(unneeded[i].InstanceProfileName)})
		}
	}
	return found, nil
}

// leftovers returns the launch templates of the cluster that no launch names any more: Tenon's own by their age, whether
// their class exists or not, and all of Karpenter's.
func (s *templateStore) leftovers(ctx context.Context) ([]cloud.Leftover, error) {
	all, err := s.list(ctx, ownershipFilters(s.cluster)...)
	if err != nil {
		return nil, err
	}
	var found []cloud.Leftover
	for i := range all {
		name := aws.ToString(all[i].LaunchTemplateName)
		if strings.HasPrefix(name, templatePrefix) && s.age(&all[i]) >= templateKept || strings.HasPrefix(name, karpenterTemplatePrefix) {
			found = append(found, cloud.Leftover{Kind: launchTemplateKind, Name: name})
		}
	}
	return found, nil
}

// unneeded returns the profiles of the cluster that none of the classes needs.
func (p *profiles) unneeded(ctx context.Context, classes []*awsv1.EC2NodeClass) ([]types.InstanceProfile, error) {
	needed := map[string]bool{}
	for _, class := range classes {
		needed[class.Status.InstanceProfile] = true
		needed[aws.ToString(class.Spec.InstanceProfile)] = true
		if class.Spec.Role != "" {
			needed[p.name(class)] = true
		}
	}
	all, err := p.below(ctx, p.root())
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(profile types.InstanceProfile) bool { return needed[aws.ToString(profile.InstanceProfileName)] }), nil
}

// inUse reports whether an instance has a profile.
func (p *Provider) inUse(ctx context.Context, profile *types.InstanceProfile) (bool, error) {
	users, err := p.instances.describe(ctx, filter("iam-instance-profile.arn", aws.ToString(profile.Arn)), filter(stateFilter, liveStates...))
	return len(users) > 0, err
}

// RemoveLeftover implements cloud.Provider.
func (p *Provider) RemoveLeftover(ctx context.Context, leftover cloud.Leftover) error {
	switch leftover.Kind {
	case launchTemplateKind:
		return p.removeTemplate(ctx, leftover.Name)
	case instanceProfileKind:
		return p.removeProfile(ctx, leftover.Name)
	}
	return invalid("RemoveLeftover", fmt.Errorf("%q is no kind of leftover", leftover.Kind))
}

// removeTemplate deletes a launch template of the cluster's.
func (p *Provider) removeTemplate(ctx context.Context, name string) error {
	named, err := p.templates.list(ctx, filter("launch-template-name", name))
	if err != nil || len(named) == 0 {
		return err
	}
	if !isOwned(p.options.Cluster, tagMap(named[0].Tags)) {
		return foreign("DeleteLaunchTemplate", "launch template "+name)
	}
	return p.templates.remove(ctx, name)
}

// removeProfile deletes an instance profile of the cluster's, unless an instance has it.
func (p *Provider) removeProfile(ctx context.Context, name string) error {
	profile, err := p.profiles.get(ctx, name)
	if hasCode(err, "NoSuchEntity") {
		return nil
	}
	if err != nil {
		return err
	}
	tags := make(map[string]string, len(profile.Tags))
	for _, tag := range profile.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if !isOwned(p.options.Cluster, tags) {
		return foreign("DeleteInstanceProfile", "instance profile "+name)
	}
	used, err := p.inUse(ctx, profile)
	if err != nil {
		return err
	}
	if used {
		return &cloud.Error{Kind: cloud.Transient, Reason: "InUse", Operation: "DeleteInstanceProfile", Err: fmt.Errorf("an instance has the instance profile %s", name)}
	}
	return p.profiles.remove(ctx, profile)
}
