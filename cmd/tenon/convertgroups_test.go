package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/manifest"
	"github.com/tenon-sh/tenon/lab/labtest"
)

// groupsAccount returns a simulated account whose cluster blue has managed node groups of several kinds, and a group of
// somebody's own.
func groupsAccount(t *testing.T) aws.Config {
	t.Helper()
	sim, err := ec2sim.New(ec2sim.Options{Cluster: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: ec2sim.Once}
	template, err := ec2.NewFromConfig(cfg).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("own"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
		ImageId: aws.String("ami-0123456789abcdef0"), SecurityGroupIds: []string{"sg-0a5e7e0000000001"}, KeyName: aws.String("me"),
		IamInstanceProfile:  &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")},
		MetadataOptions:     &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: ec2types.LaunchTemplateHttpTokensStateOptional},
		Monitoring:          &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(true)},
		BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(50), VolumeType: ec2types.VolumeTypeGp3}}},
		TagSpecifications:   []ec2types.LaunchTemplateTagSpecificationRequest{{ResourceType: ec2types.ResourceTypeInstance, Tags: []ec2types.Tag{{Key: aws.String("cost"), Value: aws.String("shop")}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	subnets := []string{"subnet-0a5e7e0000000001", "subnet-0a5e7e0000000002"}
	for i, name := range []string{"web-a", "web-b", "Spot_Jobs"} {
		in := &eks.CreateNodegroupInput{ClusterName: aws.String("blue"), NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::123456789012:role/nodes"), Subnets: subnets[i%2 : i%2+1],
			ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(3), DesiredSize: aws.Int32(0)}}
		if name == "Spot_Jobs" {
			in.CapacityType, in.InstanceTypes = ekstypes.CapacityTypesSpot, []string{"m5.large", "m5.xlarge"}
			in.Labels = map[string]string{"team": "jobs", "topology.kubernetes.io/zone": "us-east-1a", "kubernetes.io/bad": "x"}
			in.Taints = []ekstypes.Taint{{Key: aws.String("jobs"), Effect: ekstypes.TaintEffectNoExecute}}
			in.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailablePercentage: aws.Int32(25)}
		}
		if _, err := eks.NewFromConfig(cfg).CreateNodegroup(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	tag := func(key, value string) astypes.Tag { return astypes.Tag{Key: &key, Value: &value} }
	if _, err := autoscaling.NewFromConfig(cfg).CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("own"), MinSize: aws.Int32(0), MaxSize: aws.Int32(5),
		VPCZoneIdentifier: aws.String(strings.Join(subnets, ",")), Tags: []astypes.Tag{tag("k8s.io/cluster-autoscaler/enabled", ""), tag("k8s.io/cluster-autoscaler/blue", ""), tag("k8s.io/cluster-autoscaler/node-template/label/disk", "fast")},
		MixedInstancesPolicy: &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{
			LaunchTemplateSpecification: &astypes.LaunchTemplateSpecification{LaunchTemplateId: template.LaunchTemplate.LaunchTemplateId, Version: aws.String("1")},
			Overrides: []astypes.LaunchTemplateOverrides{{InstanceRequirements: &astypes.InstanceRequirements{
				VCpuCount: &astypes.VCpuCountRequest{Min: aws.Int32(2), Max: aws.Int32(8)}, MemoryMiB: &astypes.MemoryMiBRequest{Min: aws.Int32(4096), Max: aws.Int32(65536)},
				AcceleratorCount: &astypes.AcceleratorCountRequest{Max: aws.Int32(0)}, LocalStorage: astypes.LocalStorageExcluded, AllowedInstanceTypes: []string{"m5.*", "m6i.*"}}}}}}}); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// convertGroups runs the command on an account.
func convertGroups(t *testing.T, cfg aws.Config, output string, names ...string) (stdout, stderr string) {
	t.Helper()
	var out, notes bytes.Buffer
	flags := convertFlags{output: output, groups: groupFlags{fromASG: true, cluster: "blue", names: names}}
	if err := runConvertGroups(t.Context(), cfg, flags, &out, &notes); err != nil {
		t.Fatal(err)
	}
	return out.String(), notes.String()
}

// TestConvertGroups prints manifests, and notes twice: as comments, and on standard error.
func TestConvertGroups(t *testing.T) {
	t.Parallel()
	cfg := groupsAccount(t)
	out, notes := convertGroups(t, cfg, "yaml")
	for _, want := range []string{"labels[kubernetes.io/bad]: not carried over: ", "launchTemplate.keyName: not carried over: ", "Nodegroup web-a: differs from web-b only in place and size"} {
		if !strings.Contains(notes, "note: ") || !strings.Contains(notes, want) || !strings.Contains(out, want) {
			t.Errorf("%q is missing in the notes or the comments:\n%s\n%s", want, notes, out)
		}
	}
	for _, want := range []string{"# Proposed for web-a, web-b\n", "name: spot-jobs\n", "name: web\n", "name: own\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	asJSON, notes := convertGroups(t, cfg, "json", "own")
	var result convert.Result
	if err := json.Unmarshal([]byte(asJSON), &result); err != nil || len(result.Objects) != 2 || len(result.Notes) == 0 || notes != "" {
		t.Errorf("as JSON: %v, %d objects, %d notes, %q", err, len(result.Objects), len(result.Notes), notes)
	}
}

// TestConvertedGroupsAreAccepted applies what the command proposes to a real API server with Tenon's definitions.
func TestConvertedGroupsAreAccepted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	out, _ := convertGroups(t, groupsAccount(t), "yaml")
	docs, err := manifest.Documents([]string{manifest.Stdin}, strings.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	_, config := labtest.APIServer(t)
	server, err := kube.New(config, kube.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(docs) != 6 {
		t.Errorf("%d documents, want a class and a pool for web, Spot_Jobs and own", len(docs))
	}
	for _, doc := range docs {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(doc.JSON, &object.Object); err != nil {
			t.Fatal(err)
		}
		if err := server.Create(ctx, object); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
