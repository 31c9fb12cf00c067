package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
	"go.uber.org/zap"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
	"github.com/tenon-sh/tenon/internal/logs"
)

// maxProfileName is IAM's limit for the name of an instance profile.
const maxProfileName = 128

// profiles creates and removes the instance profiles of node classes that name a role.
type profiles struct {
	api             *calls.IAM
	cluster, region string
	isolated        bool // IAM cannot be reached
	log             *zap.Logger

	known *ttlCache[string, struct{}] // profiles that are there and have their role
}

// root returns the path below which the instance profiles of the cluster are. Karpenter's are there too.
func (p *profiles) root() string { return fmt.Sprintf("/karpenter/%s/%s/", p.region, p.cluster) }

// path returns the path of the instance profiles created for a class, by which they can be found again.
func (p *profiles) path(class *awsv1.EC2NodeClass) string { return p.root() + string(class.UID) + "/" }

// name returns the name of the profile of a class for its role. It is derived from both, so that a crash between
// creating a profile and recording it does not lead to a second one, and a new role gets a new profile.
func (p *profiles) name(class *awsv1.EC2NodeClass) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{p.region, class.Name, string(class.UID), class.Spec.Role}, "\x00")))
	suffix := "_" + hex.EncodeToString(sum[:8])
	cluster := p.cluster
	return cluster[:min(len(cluster), maxProfileName-len(suffix))] + suffix
}

// ensure creates the instance profile of a class, with its role, if it does not exist, and returns its name. Each step
// is safe to repeat.
func (p *profiles) ensure(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	name := p.name(class)
	if _, ok := p.known.get(name); ok {
		return name, nil
	}
	profile, err := p.get(ctx, name)
	if hasCode(err, "NoSuchEntity") {
		profile, err = p.create(ctx, class, name)
	}
	if err != nil {
		return "", err
	}
	if err := p.attachRole(ctx, profile, roleName(class.Spec.Role)); err != nil {
		return "", err
	}
	p.known.put(name, struct{}{})
	return name, nil
}

// roleName returns a role without its path, which IAM's calls do not accept.
func roleName(role string) string { return role[strings.LastIndex(role, "/")+1:] }

func (p *profiles) get(ctx context.Context, name string) (*types.InstanceProfile, error) {
	out, err := p.api.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String(name)})
	if err != nil {
		return nil, classify("GetInstanceProfile", err)
	}
	return out.InstanceProfile, nil
}

func (p *profiles) create(ctx context.Context, class *awsv1.EC2NodeClass, name string) (*types.InstanceProfile, error) {
	var tags []types.Tag
	for _, tag := range tagList(classTags(p.cluster, class)) {
		tags = append(tags, types.Tag{Key: tag.Key, Value: tag.Value})
	}
	tags = append(tags, types.Tag{Key: aws.String("topology.kubernetes.io/region"), Value: aws.String(p.region)})
	out, err := p.api.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
		InstanceProfileName: aws.String(name), Path: aws.String(p.path(class)), Tags: tags,
	})
	if hasCode(err, "EntityAlreadyExists") {
		return p.get(ctx, name)
	}
	if err != nil {
		return nil, classify("CreateInstanceProfile", err)
	}
	return out.InstanceProfile, nil
}

// attachRole makes this role the only one of the profile, which holds one at most.
func (p *profiles) attachRole(ctx context.Context, profile *types.InstanceProfile, role string) error {
	for _, attached := range profile.Roles {
		if aws.ToString(attached.RoleName) == role {
			return nil
		}
		if err := p.detachRole(ctx, profile, attached); err != nil {
			return err
		}
	}
	_, err := p.api.AddRoleToInstanceProfile(ctx, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: profile.InstanceProfileName, RoleName: aws.String(role),
	})
	return classify("AddRoleToInstanceProfile", err)
}

func (p *profiles) detachRole(ctx context.Context, profile *types.InstanceProfile, role types.Role) error {
	_, err := p.api.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{
		InstanceProfileName: profile.InstanceProfileName, RoleName: role.RoleName,
	})
	if hasCode(err, "NoSuchEntity") {
		return nil
	}
	return classify("RemoveRoleFromInstanceProfile", err)
}

// below lists the profiles below a path. The list has no tags.
func (p *profiles) below(ctx context.Context, path string) ([]types.InstanceProfile, error) {
	var out []types.InstanceProfile
	pages := iam.NewListInstanceProfilesPaginator(p.api.ListInstanceProfiles, &iam.ListInstanceProfilesInput{PathPrefix: aws.String(path)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("ListInstanceProfiles", err)
		}
		out = append(out, page.InstanceProfiles...)
	}
	return out, nil
}

// remove detaches a profile's roles and deletes it. It succeeds if the profile is already gone.
func (p *profiles) remove(ctx context.Context, profile *types.InstanceProfile) error {
	for _, role := range profile.Roles {
		if err := p.detachRole(ctx, profile, role); err != nil {
			return err
		}
	}
	p.known.remove(aws.ToString(profile.InstanceProfileName))
	_, err := p.api.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: profile.InstanceProfileName})
	if hasCode(err, "NoSuchEntity") {
		return nil
	}
	return classify("DeleteInstanceProfile", err)
}

// iamPatience is how long the release of a class that has no role waits for IAM.
const iamPatience = 5 * time.Second

// release deletes the profiles created for a class. A class without a role has some only if it once had one, so release
// does not fail for it if IAM cannot be reached or denies permission.
func (p *profiles) release(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if p.isolated {
		return nil
	}
	if class.Spec.Role != "" {
		return p.removeAll(ctx, class)
	}
	brief, cancel := context.WithTimeout(ctx, iamPatience)
	defer cancel()
	if err := p.removeAll(brief, class); err != nil {
		logs.Of(ctx, p.log).Warn("instance profiles of a former role, if there are any, stay", zap.String("nodeClass", class.Name), zap.Error(err))
	}
	return ctx.Err()
}

func (p *profiles) removeAll(ctx context.Context, class *awsv1.EC2NodeClass) error {
	profiles, err := p.below(ctx, p.path(class))
	if err != nil {
		return err
	}
	for i := range profiles {
		if err := p.remove(ctx, &profiles[i]); err != nil {
			return err
		}
	}
	return nil
}
