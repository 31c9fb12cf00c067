package ec2sim

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	sdkeks "github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"
)

// TestNodeGroups creates, describes and scales a managed node group with the AWS SDK.
func TestNodeGroups(t *testing.T) {
	t.Parallel()
	s, cfg := nodeGroupAccount(t)
	client := sdkeks.NewFromConfig(cfg)
	cluster := aws.String("blue")
	for _, name := range []string{"web", "batch", "api"} {
		in := &sdkeks.CreateNodegroupInput{ClusterName: cluster, NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::123456789012:role/nodes"),
			Subnets: []string{s.account.subnets[0].ID, s.account.subnets[1].ID}, Labels: map[string]string{"team": "shop"},
			Taints: []ekstypes.Taint{{Key: aws.String("team"), Value: aws.String("shop"), Effect: ekstypes.TaintEffectNoSchedule}},
			Tags:   map[string]string{"cost": "shop"}}
		if name != "web" {
			in.ScalingConfig = &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(1), DesiredSize: aws.Int32(0)}
		}
		if _, err := client.CreateNodegroup(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for pages := sdkeks.NewListNodegroupsPaginator(client, &sdkeks.ListNodegroupsInput{ClusterName: cluster, MaxResults: aws.Int32(2)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, page.Nodegroups...)
	}
	if diff := cmp.Diff([]string{"api", "batch", "web"}, names); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	out, err := client.DescribeNodegroup(t.Context(), &sdkeks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	g := out.Nodegroup
	if g.AmiType != ekstypes.AMITypesAl2023X8664Standard || g.CapacityType != ekstypes.CapacityTypesOnDemand || aws.ToInt32(g.DiskSize) != 20 ||
		cmp.Diff([]string{"t3.medium"}, g.InstanceTypes) != "" || aws.ToInt32(g.ScalingConfig.MaxSize) != 2 || aws.ToInt32(g.UpdateConfig.MaxUnavailable) != 1 ||
		g.Labels["team"] != "shop" || g.Taints[0].Effect != ekstypes.TaintEffectNoSchedule || len(g.Resources.AutoScalingGroups) != 1 {
		t.Errorf("the group with EKS's defaults is %+v", g)
	}
	running := func() int {
		n := 0
		for _, i := range s.Instances() {
			if i.Tags["eks:nodegroup-name"] == "web" && i.EndedAt == nil {
				n++
			}
		}
		return n
	}
	if n := running(); n != 2 {
		t.Errorf("%d instances, want the 2 that EKS creates by default", n)
	}
	for _, step := range []struct {
		reason      string
		least, size int32
		most        int32
		running     int
		refused     string
	}{
		{reason: "another node", least: 0, size: 3, most: 4, running: 3},
		{reason: "more than the most", least: 0, size: 5, most: 4, running: 3, refused: "InvalidParameterException"},
		{reason: "none", least: 0, size: 0, most: 4, running: 0},
	} {
		_, err := client.UpdateNodegroupConfig(t.Context(), &sdkeks.UpdateNodegroupConfigInput{ClusterName: cluster, NodegroupName: aws.String("web"),
			ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: &step.least, DesiredSize: &step.size, MaxSize: &step.most}})
		if (err != nil) != (step.refused != "") || err != nil && !strings.Contains(err.Error(), step.refused) {
			t.Errorf("%s: %v, want %q", step.reason, err, step.refused)
		}
		if n := running(); n != step.running {
			t.Errorf("%s: %d instances, want %d", step.reason, n, step.running)
		}
	}
	for reason, call := range map[string]func() error{
		"a group that is there": func() error {
			_, err := client.CreateNodegroup(t.Context(), &sdkeks.CreateNodegroupInput{ClusterName: cluster, NodegroupName: aws.String("web"), NodeRole: aws.String("r"), Subnets: g.Subnets})
			return err
		},
		"a group that is not": func() error {
			_, err := client.DescribeNodegroup(t.Context(), &sdkeks.DescribeNodegroupInput{ClusterName: cluster, NodegroupName: aws.String("none")})
			return err
		},
		"another cluster": func() error {
			_, err := client.ListNodegroups(t.Context(), &sdkeks.ListNodegroupsInput{ClusterName: aws.String("green")})
			return err
		},
		"what has no effect here": func() error {
			_, err := client.UpdateNodegroupConfig(t.Context(), &sdkeks.UpdateNodegroupConfigInput{ClusterName: cluster, NodegroupName: aws.String("web"),
				UpdateConfig: &ekstypes.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(2)}})
			return err
		},
	} {
		want := map[string]string{"a group that is there": "ResourceInUseException", "a group that is not": "ResourceNotFoundException",
			"another cluster": "ResourceNotFoundException", "what has no effect here": "UnsupportedBySimulator"}[reason]
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", reason, err, want)
		}
	}
}

// nodeGroupAccount returns an account with the cluster blue.
func nodeGroupAccount(t *testing.T) (*Server, aws.Config) {
	t.Helper()
	s, err := New(Options{Cluster: "blue", PendingFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(s.URL()), Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: Once}
}

// TestScalingGroups creates Auto Scaling groups with the AWS SDK, and finds them by their tags.
func TestScalingGroups(t *testing.T) {
	t.Parallel()
	s, cfg := nodeGroupAccount(t)
	client := autoscaling.NewFromConfig(cfg)
	if _, err := ec2.NewFromConfig(cfg).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("own"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{InstanceType: ec2types.InstanceTypeM5Large}}); err != nil {
		t.Fatal(err)
	}
	policy := &astypes.MixedInstancesPolicy{
		InstancesDistribution: &astypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(0)},
		LaunchTemplate: &astypes.LaunchTemplate{
			LaunchTemplateSpecification: &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("own"), Version: aws.String("1")},
			Overrides: []astypes.LaunchTemplateOverrides{{InstanceRequirements: &astypes.InstanceRequirements{
				VCpuCount: &astypes.VCpuCountRequest{Min: aws.Int32(2)}, MemoryMiB: &astypes.MemoryMiBRequest{Min: aws.Int32(4096)},
				CpuManufacturers: []astypes.CpuManufacturer{astypes.CpuManufacturerIntel, astypes.CpuManufacturerAmd}}}},
		},
	}
	subnets := s.account.subnets[0].ID + "," + s.account.subnets[1].ID
	for _, name := range []string{"one", "two", "three"} {
		if _, err := client.CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(3),
			VPCZoneIdentifier: &subnets, MixedInstancesPolicy: policy,
			Tags: []astypes.Tag{{Key: aws.String("k8s.io/cluster-autoscaler/blue"), Value: aws.String("owned"), PropagateAtLaunch: aws.Bool(true)}, {Key: aws.String("name"), Value: &name}}}); err != nil {
			t.Fatal(err)
		}
	}
	find := func(filters ...astypes.Filter) (found []string, last astypes.AutoScalingGroup) {
		t.Helper()
		for pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(client, &autoscaling.DescribeAutoScalingGroupsInput{Filters: filters, MaxRecords: aws.Int32(2)}); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range page.AutoScalingGroups {
				found, last = append(found, *group.AutoScalingGroupName), group
			}
		}
		return found, last
	}
	all, _ := find(astypes.Filter{Name: aws.String("tag-key"), Values: []string{"k8s.io/cluster-autoscaler/blue"}})
	if diff := cmp.Diff([]string{"one", "three", "two"}, all); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	one, group := find(astypes.Filter{Name: aws.String("tag:name"), Values: []string{"one"}})
	if diff := cmp.Diff([]string{"one"}, one); diff != "" {
		t.Fatalf("groups (-want +got):\n%s", diff)
	}
	got := group.MixedInstancesPolicy.LaunchTemplate.Overrides[0].InstanceRequirements
	if len(got.CpuManufacturers) != 2 || aws.ToInt32(got.VCpuCount.Min) != 2 || aws.ToInt32(group.MixedInstancesPolicy.InstancesDistribution.OnDemandBaseCapacity) != 1 ||
		aws.ToString(group.VPCZoneIdentifier) != subnets || !aws.ToBool(group.Tags[0].PropagateAtLaunch) || len(group.AvailabilityZones) != 2 {
		t.Errorf("the group is described as %+v", group)
	}
	if _, err := client.CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("four"), MinSize: aws.Int32(1), MaxSize: aws.Int32(1),
		LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("own")}}); err == nil || !strings.Contains(err.Error(), "UnsupportedBySimulator") {
		t.Errorf("a group whose instances the simulator does not have: %v", err)
	}
}
