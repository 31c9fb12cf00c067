package aws_test

import (
	"slices"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
)

// made is what other clusters, other controllers and people make in the account, with all rights.
type made struct {
	*account
	iam *iam.Client
}

func (a *account) others() made {
	a.t.Helper()
	cfg, err := config.LoadDefaultConfig(a.t.Context(), a.admin()...)
	if err != nil {
		a.t.Fatal(err)
	}
	return made{a, iam.NewFromConfig(cfg)}
}

// tagsOf returns the tags of a cluster's resources.
func tagsOf(cluster string) map[string]string {
	return map[string]string{"kubernetes.io/cluster/" + cluster: "owned", "eks:eks-cluster-name": cluster, "karpenter.k8s.aws/ec2nodeclass": "default",
		"topology.kubernetes.io/region": "us-east-1"}
}

// profile makes an instance profile with a role.
func (m made) profile(name, path string, tags map[string]string) {
	m.t.Helper()
	in := &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path}
	for key, value := range tags {
		in.Tags = append(in.Tags, iamtypes.Tag{Key: &key, Value: &value})
	}
	if _, err := m.iam.CreateInstanceProfile(m.t.Context(), in); err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.iam.AddRoleToInstanceProfile(m.t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: awssdk.String("role")}); err != nil {
		m.t.Fatal(err)
	}
}

// template makes a launch template.
func (m made) template(name string, tags map[string]string) {
	m.t.Helper()
	spec := types.TagSpecification{ResourceType: types.ResourceTypeLaunchTemplate}
	for key, value := range tags {
		spec.Tags = append(spec.Tags, types.Tag{Key: &key, Value: &value})
	}
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Large}}
	if len(spec.Tags) > 0 {
		in.TagSpecifications = []types.TagSpecification{spec}
	}
	if _, err := m.ec2.CreateLaunchTemplate(m.t.Context(), in); err != nil {
		m.t.Fatal(err)
	}
}

// left returns the names of all instance profiles and launch templates of the account.
func (m made) left() []string {
	m.t.Helper()
	profiles, err := m.iam.ListInstanceProfiles(m.t.Context(), &iam.ListInstanceProfilesInput{})
	if err != nil {
		m.t.Fatal(err)
	}
	templates, err := m.ec2.DescribeLaunchTemplates(m.t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		m.t.Fatal(err)
	}
	var names []string
	for _, p := range profiles.InstanceProfiles {
		names = append(names, *p.InstanceProfileName)
	}
	for _, t := range templates.LaunchTemplates {
		names = append(names, *t.LaunchTemplateName)
	}
	return names
}

// collect removes all that the provider calls leftovers, and returns the names of what was removed, sorted. Only the profile
// that lacks the cluster's tags may be refused.
func (m made) collect(provider *aws.Provider, classes ...cloud.NodeClass) []string {
	m.t.Helper()
	before := m.left()
	found, err := provider.Leftovers(m.t.Context(), classes)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, leftover := range found {
		err := provider.RemoveLeftover(m.t.Context(), leftover)
		if refused := cloud.KindOf(err) == cloud.Forbidden; refused != (leftover.Name == "blue_untagged") || err != nil && !refused {
			m.t.Errorf("%s: %v", leftover, err)
		}
	}
	after := m.left()
	removed := slices.DeleteFunc(before, func(name string) bool { return slices.Contains(after, name) })
	slices.Sort(removed)
	return removed
}

// TestLeftovers has a class, what it no longer needs, what classes that are gone have left, and neighbours of all kinds.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	m := a.others()
	class := a.NodeClass()
	a.resolve(a.provider, class)
	request, err := a.provider.PrepareLaunch(t.Context(), a.spec(class, "one", 1))
	if err != nil {
		t.Fatal(err)
	}
	former := class.Status.InstanceProfile
	request.Token = "token"
	launched, err := a.provider.Launch(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	root := "/karpenter/us-east-1/blue/"
	m.profile("blue_gone", root+"gone/", tagsOf("blue"))
	m.profile("blue_untagged", root+"gone/", nil)
	m.profile("blue-two_gone", "/karpenter/us-east-1/blue-two/gone/", tagsOf("blue-two"))
	m.profile("blue_abroad", "/karpenter/eu-west-1/blue/gone/", tagsOf("blue"))
	m.profile("blue_people", "/", nil)
	m.template("tenon.sh/gone", tagsOf("blue"))
	m.template("tenon.sh/other", tagsOf("blue-two"))
	m.template("karpenter.k8s.aws/123", tagsOf("blue"))
	m.template("karpenter.k8s.aws/456", tagsOf("blue-two"))
	m.template("people", tagsOf("blue"))
	m.template("tenon.sh/untagged", nil)

	if removed := m.collect(a.provider, class); !slices.Equal(removed, []string{"blue_gone", "karpenter.k8s.aws/123"}) {
		t.Errorf("while templates are young, these are removed: %v", removed)
	}
	a.Advance(181 * time.Minute)
	want := []string{"tenon.sh/gone"}
	for _, override := range detailsOf(t, request).Overrides {
		want = append(want, override.LaunchTemplate)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if removed := m.collect(a.provider, class); !slices.Equal(removed, want) {
		t.Errorf("three hours later these are removed: %v, want %v", removed, want)
	}
	class.Spec.Role = "another-role"
	a.resolve(a.provider, class)
	if removed := m.collect(a.provider, class); len(removed) > 0 {
		t.Errorf("a profile that an instance has was removed: %v", removed)
	}
	if err := a.provider.Terminate(t.Context(), []string{launched.Instances[0].ID}); err != nil {
		t.Fatal(err)
	}
	a.Advance(time.Minute)
	if removed := m.collect(a.provider, class); !slices.Equal(removed, []string{former}) {
		t.Errorf("after its instance, these are removed: %v, want the profile %s of the former role", removed, former)
	}
	if removed := m.collect(a.provider); !slices.Equal(removed, []string{class.Status.InstanceProfile}) {
		t.Errorf("without any class, these are removed: %v, want %s", removed, class.Status.InstanceProfile)
	}
	for _, name := range []string{"blue_untagged", "blue-two_gone", "blue_abroad", "blue_people", "tenon.sh/other", "karpenter.k8s.aws/456", "people", "tenon.sh/untagged"} {
		if !slices.Contains(m.left(), name) {
			t.Errorf("%s was removed", name)
		}
	}
}
