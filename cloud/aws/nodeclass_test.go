package aws_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

func (a *account) resolve(provider *aws.Provider, class *awsv1.EC2NodeClass) {
	a.t.Helper()
	resolved, err := provider.ResolveNodeClass(a.t.Context(), class)
	if err != nil {
		a.t.Fatalf("ResolveNodeClass: %v", err)
	}
	class.Status = resolved.(*awsv1.EC2NodeClass).Status
}

// detailsOf returns the provider's part of a request.
func detailsOf(t testing.TB, request cloud.LaunchRequest) aws.FleetDetails {
	t.Helper()
	details, err := aws.ReadDetails(request)
	if err != nil {
		t.Fatal(err)
	}
	return details
}

// spec returns a launch of m5.large and m6g.large in all zones of the class.
func (a *account) spec(class *awsv1.EC2NodeClass, group string, count int) cloud.LaunchSpec {
	spec := cloud.LaunchSpec{Group: group, Count: count, Class: class, NodePool: "default", CapacityType: "on-demand"}
	for _, name := range []string{"m6g.large", "m5.large"} {
		for _, subnet := range class.Status.Subnets {
			spec.Offerings = append(spec.Offerings, cloud.OfferingKey{InstanceType: name, Zone: subnet.Zone, CapacityType: "on-demand"})
		}
	}
	return spec
}

func TestBrokenNodeClasses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why       string
		spoil     func(*awsv1.EC2NodeClass)
		fault     *ec2sim.ErrorFault
		condition string
		reason    string
	}{
		{why: "a setting that the family does not have", spoil: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{PodsPerCore: awssdk.Int32(4)}
		}, condition: awsv1.ConditionTypeValidationSucceeded, reason: "UnsupportedByAMIFamily"},
		{why: "user data that the family cannot read", spoil: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}
			c.Spec.UserData = awssdk.String("#!/bin/sh\necho")
		}, condition: awsv1.ConditionTypeValidationSucceeded, reason: "InvalidUserData"},
		{why: "AL2 on a Kubernetes that has none", spoil: func(c *awsv1.EC2NodeClass) {
			c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2@latest"}}
		}, condition: awsv1.ConditionTypeAMIsReady, reason: "UnsupportedAlias"},
		{why: "a placement group that nobody has made", spoil: func(c *awsv1.EC2NodeClass) {
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: awssdk.String("pg")}
		}, condition: awsv1.ConditionTypePlacementGroupReady, reason: "PlacementGroupNotFound"},
		{why: "no permission for CreateFleet",
			fault: &ec2sim.ErrorFault{Action: "CreateFleet",
				Code: "UnauthorizedOperation"}, condition: awsv1.ConditionTypeValidationSucceeded, reason: "CreateFleetAuthCheckFailed"},
		{why: "no permission for RunInstances",
			fault: &ec2sim.ErrorFault{Action: "RunInstances",
				Code: "UnauthorizedOperation"}, condition: awsv1.ConditionTypeValidationSucceeded, reason: "RunInstancesAuthCheckFailed"},
		{why: "no permission for CreateLaunchTemplate",
			fault: &ec2sim.ErrorFault{Action: "CreateLaunchTemplate",
				Code: "UnauthorizedOperation"}, condition: awsv1.ConditionTypeValidationSucceeded, reason: "CreateLaunchTemplateAuthCheckFailed"},
		{why: "no permission to look for placement groups", spoil: func(c *awsv1.EC2NodeClass) {
			c.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: awssdk.String("pg")}
		}, fault: &ec2sim.ErrorFault{Action: "DescribePlacementGroups", Code: "UnauthorizedOperation"}, condition: awsv1.ConditionTypePlacementGroupReady, reason: "Unauthorized"},
		{why: "no permission to look",
			fault: &ec2sim.ErrorFault{Action: "DescribeSubnets", Code: "UnauthorizedOperation"}, condition: awsv1.ConditionTypeSubnetsReady, reason: "Unauthorized"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			class := a.NodeClass()
			if tc.spoil != nil {
				tc.spoil(class)
			}
			if tc.fault != nil {
				a.change(func(f *ec2sim.Faults) { f.Errors = []ec2sim.ErrorFault{*tc.fault} })
			}
			a.resolve(a.provider, class)
			got := meta.FindStatusCondition(class.Status.Conditions, tc.condition)
			if got == nil || got.Status != metav1.ConditionFalse || got.Reason != tc.reason || got.Message == "" {
				t.Errorf("condition %s is %+v; want False, %s", tc.condition, got, tc.reason)
			}
			if class.IsTrue("Ready") {
				t.Error("the class is ready all the same")
			}
		})
	}
}

// TestAMissingRoleIsNamed creates an EC2NodeClass before its role, as two separate pipelines may do. The class names
// what is missing, and is Ready as soon as the role exists.
func TestAMissingRoleIsNamed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.change(func(f *ec2sim.Faults) { f.NoRoles = []string{"*"} })
	class := a.NodeClass()
	a.resolve(a.provider, class)
	got := meta.FindStatusCondition(class.Status.Conditions, awsv1.ConditionTypeInstanceProfileReady)
	if got == nil || got.Status != metav1.ConditionFalse || got.Reason != "RoleNotFound" || !strings.Contains(got.Message, class.Spec.Role) {
		t.Errorf("condition %+v, want RoleNotFound and the name of the role", got)
	}
	if class.IsTrue("Ready") {
		t.Error("the class is ready without a role")
	}
	cfg, err := config.LoadDefaultConfig(t.Context(), a.admin()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := iam.NewFromConfig(cfg).CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: awssdk.String(class.Spec.Role), AssumeRolePolicyDocument: awssdk.String("{}")}); err != nil {
		t.Fatal(err)
	}
	a.resolve(a.provider, class)
	if !class.IsTrue("Ready") {
		t.Errorf("the role is there, and the class is not ready: %+v", class.Status.Conditions)
	}
}

func TestInstanceProfileFollowsTheRole(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	first := class.Status.InstanceProfile
	if !strings.HasPrefix(first, "blue_") {
		t.Errorf("the profile is called %s", first)
	}
	restarted := a.newProvider()
	a.resolve(restarted, class)
	if class.Status.InstanceProfile != first {
		t.Errorf("a new worker made the profile %s; the first made %s", class.Status.InstanceProfile, first)
	}
	class.Spec.Role = "another-role"
	a.resolve(restarted, class)
	if class.Status.InstanceProfile == first || !class.IsTrue("Ready") {
		t.Errorf("after a change of role the profile is %s, ready %v", class.Status.InstanceProfile, class.IsTrue("Ready"))
	}
}

func TestLaunchTemplatesAreSharedAndCleanedUp(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	if names := a.templates(); len(names) != 0 {
		t.Errorf("validation left the templates %v", names)
	}
	first, err := a.provider.PrepareLaunch(t.Context(), a.spec(class, "one", 1))
	if err != nil {
		t.Fatal(err)
	}
	names := a.templates()
	if len(names) != 2 {
		t.Errorf("templates %v; want one for each architecture", names)
	}
	made := a.sim.CallCounts()["CreateLaunchTemplate"].Total
	restarted := a.newProvider()
	a.resolve(restarted, class)
	second, err := restarted.PrepareLaunch(t.Context(), a.spec(class, "two", 1))
	if err != nil {
		t.Fatal(err)
	}
	if detailsOf(t, first).Overrides[0].LaunchTemplate != detailsOf(t, second).Overrides[0].LaunchTemplate {
		t.Error("a new worker names the same template otherwise")
	}
	// The validation of the new worker makes one more call.
	if again := a.sim.CallCounts()["CreateLaunchTemplate"].Total; again > made+1 {
		t.Errorf("a new worker made %d templates that were there", again-made-1)
	}
	a.Advance(181 * time.Minute)
	a.resolve(restarted, class)
	if names := a.templates(); len(names) != 0 {
		t.Errorf("templates %v are left three hours after they were made", names)
	}
	second.Token = "token"
	_, err = restarted.Launch(t.Context(), second)
	if cloud.KindOf(err) != cloud.StaleRequest {
		t.Errorf("launching from a removed template: %v; want kind %s", err, cloud.StaleRequest)
	}
	third, err := restarted.PrepareLaunch(t.Context(), a.spec(class, "two", 1))
	if err != nil {
		t.Fatal(err)
	}
	third.Token = "another"
	if _, err := restarted.Launch(t.Context(), third); err != nil {
		t.Errorf("launching from a template made again: %v", err)
	}
}

func (a *account) templates() []string {
	a.t.Helper()
	out, err := a.ec2.DescribeLaunchTemplates(a.t.Context(), &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{{Name: awssdk.String("tag:karpenter.k8s.aws/ec2nodeclass"), Values: []string{"default"}}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	var names []string
	for _, template := range out.LaunchTemplates {
		names = append(names, awssdk.ToString(template.LaunchTemplateName))
	}
	slices.Sort(names)
	return names
}

func TestKubeletSettingsSizeTheNodes(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: awssdk.Int32(17), SystemReserved: map[string]string{"cpu": "1"}}
	class.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{
		DeviceName: awssdk.String("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: quantity("100Gi")},
	}}
	a.resolve(a.provider, class)
	instanceTypes, err := a.provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(instanceTypes, func(i *cloud.InstanceType) bool { return i.Name == "m5.large" })
	if i < 0 {
		t.Fatal("m5.large is not there")
	}
	for _, got := range []struct{ what, got, want string }{
		{what: "pods", got: instanceTypes[i].Capacity.Pods().String(), want: "17"},
		{what: "allocatable CPU", got: instanceTypes[i].Allocatable.Cpu().String(), want: "930m"},
		{what: "ephemeral storage", got: instanceTypes[i].Capacity.StorageEphemeral().String(), want: "100Gi"},
	} {
		if got.got != got.want {
			t.Errorf("%s of m5.large: %s; want %s", got.what, got.got, got.want)
		}
	}
	for _, instanceType := range instanceTypes {
		if instanceType.Name == "a1.large" {
			t.Error("a1.large does not run Amazon Linux 2023")
		}
	}
}

func TestTheWholeCatalogue(t *testing.T) {
	t.Parallel()
	a := newAccountWith(t, "")
	class := a.NodeClass()
	a.resolve(a.provider, class)
	instanceTypes, err := a.provider.InstanceTypes(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	pods := make(map[string]string)
	for _, instanceType := range instanceTypes {
		pods[instanceType.Name] = instanceType.Capacity.Pods().String()
		if len(instanceType.Offerings) == 0 || instanceType.Labels[awsv1.LabelInstanceFamily] == "" {
			t.Errorf("%s is not complete: %+v", instanceType.Name, instanceType)
		}
	}
	if len(pods) < 400 {
		t.Errorf("%d types; the simulator has at least 400, on more than one page", len(pods))
	}
	// These are from the list that EKS publishes.
	for name, want := range map[string]string{
		"m5.large": "29", "c5.4xlarge": "234", "t3.small": "11", "r6g.16xlarge": "737", "g4dn.xlarge": "29", "m5.metal": "737",
	} {
		if pods[name] != want {
			t.Errorf("%s runs %s pods; want %s", name, pods[name], want)
		}
	}
}

func quantity(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

// EC2's order of subnets changes with every launch, and the status with it would be written every time.
func TestSubnetsThatOnlyChangePlaces(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	slices.Reverse(class.Status.Subnets)
	reversed := slices.Clone(class.Status.Subnets)
	if a.resolve(a.provider, class); len(reversed) < 2 || !slices.Equal(class.Status.Subnets, reversed) {
		t.Errorf("the status has the subnets %v, want them in the order in which it had them: %v", class.Status.Subnets, reversed)
	}
}

// TestResolvedClassIsComplete checks what the contract of a provider knows nothing of.
func TestResolvedClassIsComplete(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	class := a.NodeClass()
	a.resolve(a.provider, class)
	for _, part := range class.ReadyParts() {
		if !class.IsTrue(part) {
			t.Errorf("condition %s is not True: %+v", part, class.Condition(part))
		}
	}
	if status := class.Status; len(status.AMIs) == 0 || len(status.Subnets) == 0 || len(status.SecurityGroups) == 0 || status.InstanceProfile == "" {
		t.Errorf("the status is not complete: %+v", status)
	}
}

// TestRequestsOfHistoriesAreUnderstood reads a request as builds before cloud.LaunchRequest.Details have recorded it, and
// writes it as they would.
func TestRequestsOfHistoriesAreUnderstood(t *testing.T) {
	t.Parallel()
	const kept = `{"group":"g","token":"t","count":2,"capacityType":"on-demand","capacityBlock":true,"interruptible":true,"prioritized":true,` +
		`"overrides":[{"instanceType":"m5.large","zone":"us-east-1a","subnet":"subnet-1","launchTemplate":"tenon.sh/1","image":"ami-1","price":0.096,"reservation":"cr-1"}],` +
		`"tags":{"a":"b"},"profile":"p","context":"c"}`
	want := aws.FleetDetails{CapacityBlock: true, Interruptible: true, Prioritized: true, Tags: map[string]string{"a": "b"}, Profile: "p", Context: "c",
		Overrides: []aws.Override{{InstanceType: "m5.large", Zone: "us-east-1a", Subnet: "subnet-1", LaunchTemplate: "tenon.sh/1", Image: "ami-1", Price: 0.096, Reservation: "cr-1"}}}
	var request cloud.LaunchRequest
	if err := json.Unmarshal([]byte(kept), &request); err != nil {
		t.Fatal(err)
	}
	if request.Group != "g" || request.Token != "t" || request.Count != 2 || request.CapacityType != "on-demand" {
		t.Errorf("the request is %+v", request)
	}
	if diff := cmp.Diff(want, detailsOf(t, request)); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	made, err := cloud.NewLaunchRequest(cloud.LaunchSpec{Group: "g", Count: 2, CapacityType: "on-demand"}, want)
	if err != nil {
		t.Fatal(err)
	}
	made.Token = "t"
	for _, one := range []cloud.LaunchRequest{request, made} {
		if written, err := json.Marshal(one); err != nil || string(written) != kept {
			t.Errorf("the request is written as\n%s, want\n%s: %v", written, kept, err)
		}
	}
}
