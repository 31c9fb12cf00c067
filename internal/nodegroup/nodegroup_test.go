package nodegroup_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/internal/convert"
	"github.com/tenon-sh/tenon/internal/nodegroup"
)

// nodeConfigText is user data of Amazon Linux 2023.
const nodeConfigText = `apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config: {maxPods: 58, registryPullQPS: 20}
    flags: ["--node-labels=disk=fast,eks.amazonaws.com/nodegroup=web"]
`

func encoded(text string) *string { return aws.String(base64.StdEncoding.EncodeToString([]byte(text))) }

// managed returns a managed node group as EKS describes one that was created with the least possible.
func managed(name string) *ekstypes.Nodegroup {
	return &ekstypes.Nodegroup{
		NodegroupName: &name, ClusterName: aws.String("shop"), AmiType: ekstypes.AMITypesAl2023X8664Standard, CapacityType: ekstypes.CapacityTypesOnDemand,
		DiskSize: aws.Int32(20), InstanceTypes: []string{"m5.large"}, NodeRole: aws.String("arn:aws:iam::123456789012:role/nodes"),
		ReleaseVersion: aws.String("1.36.0-20261102"), Version: aws.String("1.36"), Subnets: []string{"subnet-0a"},
		ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(4), DesiredSize: aws.Int32(2)},
	}
}

// selfManaged returns an Auto Scaling group of somebody's own.
func selfManaged(name string) nodegroup.Group {
	tag := func(key, value string, launch bool) astypes.TagDescription {
		return astypes.TagDescription{Key: &key, Value: &value, PropagateAtLaunch: &launch}
	}
	return nodegroup.Group{
		Scaling: &astypes.AutoScalingGroup{
			AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(3), VPCZoneIdentifier: aws.String("subnet-0a,subnet-0b"),
			LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String("lt-0a")},
			Tags: []astypes.TagDescription{
				tag("team", "shop", true), tag(nodegroup.EnabledTag, "true", false), tag(nodegroup.AutoscalerTag+"shop", "owned", false),
				tag(nodegroup.AutoscalerTag+"node-template/label/disk", "fast", false), tag(nodegroup.AutoscalerTag+"node-template/taint/gpu", "yes:NoSchedule", false),
			},
		},
		Template: &ec2types.ResponseLaunchTemplateData{
			ImageId: aws.String("ami-0a"), InstanceType: "m5.xlarge", SecurityGroupIds: []string{"sg-0b"}, UserData: encoded("#!/bin/bash\n/etc/eks/bootstrap.sh shop --kubelet-extra-args '--max-pods=40'\n"),
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecification{Arn: aws.String("arn:aws:iam::123456789012:instance-profile/nodes")},
		},
	}
}

func sourceOf(groups ...nodegroup.Group) nodegroup.Source {
	return nodegroup.Source{
		Cluster: nodegroup.Cluster{Name: "shop", Version: "1.36", SecurityGroup: "sg-0c"}, Groups: groups,
		Types: map[string]nodegroup.InstanceType{
			"m5.large": {VCPUs: 2, MemoryMiB: 8192, Arch: "amd64"}, "m5.xlarge": {VCPUs: 4, MemoryMiB: 16384, Arch: "amd64"}, "m6g.large": {VCPUs: 2, MemoryMiB: 8192, Arch: "arm64"},
		},
	}
}

// text returns a proposal's manifests as YAML, and its notes as lines.
func text(t *testing.T, proposal nodegroup.Proposal) (manifests, notes string) {
	t.Helper()
	for _, object := range proposal.Objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		manifests += string(data)
	}
	for _, note := range proposal.Notes {
		notes += note.String() + "\n"
	}
	return manifests, notes
}

// TestLeast is the whole proposal for a group that was created with the least possible.
func TestLeast(t *testing.T) {
	t.Parallel()
	proposals := nodegroup.Propose(sourceOf(nodegroup.Group{Managed: managed("Web_1")}))
	manifests, _ := text(t, proposals[0])
	want := `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: web-1
spec:
  amiSelectorTerms:
  - alias: al2023@v20261102
  blockDeviceMappings:
  - deviceName: /dev/xvda
    ebs:
      deleteOnTermination: true
      volumeSize: 20Gi
      volumeType: gp3
  metadataOptions:
    httpEndpoint: enabled
    httpProtocolIPv6: disabled
    httpPutResponseHopLimit: 2
    httpTokens: required
  role: nodes
  securityGroupSelectorTerms:
  - id: sg-0c
  subnetSelectorTerms:
  - id: subnet-0a
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: web-1
spec:
  disruption:
    consolidateAfter: 10m
    consolidationPolicy: WhenEmptyOrUnderutilized
  limits:
    cpu: "8"
    memory: 32Gi
  template:
    metadata: {}
    spec:
      expireAfter: Never
      nodeClassRef:
        group: karpenter.k8s.aws
        kind: EC2NodeClass
        name: web-1
      requirements:
      - key: kubernetes.io/os
        operator: In
        values:
        - linux
      - key: kubernetes.io/arch
        operator: In
        values:
        - amd64
      - key: node.kubernetes.io/instance-type
        operator: In
        values:
        - m5.large
      - key: karpenter.sh/capacity-type
        operator: In
        values:
        - on-demand
`
	if diff := cmp.Diff(want, manifests); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

// TestManaged changes one thing about a managed node group, and says what the manifests or the notes have to have.
func TestManaged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		change    func(*ekstypes.Nodegroup, *nodegroup.Source)
		manifests []string
		notes     []string
		fails     bool
	}{
		"spot": {reason: "a capacity type is a requirement",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.CapacityType = ekstypes.CapacityTypesSpot },
			manifests: []string{"- spot\n"}},
		"taints": {reason: "EKS has its own names of effects",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.Taints = []ekstypes.Taint{{Key: aws.String("gpu"), Value: aws.String("yes"), Effect: ekstypes.TaintEffectPreferNoSchedule}}
			},
			manifests: []string{"- effect: PreferNoSchedule\n        key: gpu\n        value: \"yes\"\n"}},
		"an unknown effect": {reason: "a taint that is left out lets pods onto nodes that are not for them", fails: true,
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.Taints = []ekstypes.Taint{{Key: aws.String("gpu"), Effect: "NEVER"}}
			},
			notes: []string{`taints[0].effect: "NEVER" is no effect`}},
		"labels": {reason: "pods select nodes by them; EKS's own are on no other nodes",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.Labels = map[string]string{"team": "shop", "kubernetes.io/role": "web", "topology.kubernetes.io/zone": "us-east-1a"}
			},
			manifests: []string{"labels:\n        team: shop\n", "- us-east-1a\n"},
			notes:     []string{"labels[kubernetes.io/role]: not carried over: label domain", "labels[topology.kubernetes.io/zone]: is now a requirement", "labels[eks.amazonaws.com/nodegroup]: not carried over"}},
		"maxUnavailable": {reason: "an update of a group is drift here",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(2)}
			},
			manifests: []string{"- nodes: \"2\"\n      reasons:\n      - Drifted\n", "- nodes: 10%\n"}},
		"maxUnavailablePercentage": {reason: "likewise",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailablePercentage: aws.Int32(25), UpdateStrategy: ekstypes.NodegroupUpdateStrategiesMinimal}
			},
			manifests: []string{"- nodes: 25%\n"}, notes: []string{"updateConfig.updateStrategy: not carried over"}},
		"a minimum": {reason: "Tenon removes what no pod needs",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.ScalingConfig.MinSize = aws.Int32(3) },
			notes:  []string{"scalingConfig.minSize: not carried over: a NodePool has no minimum"}},
		"several types": {reason: "limits are what the group can have at most",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.InstanceTypes = []string{"m5.large", "m5.xlarge"} },
			manifests: []string{"- m5.large\n        - m5.xlarge\n", "cpu: \"16\"\n    memory: 64Gi\n"}, notes: []string{"largest instance type (m5.xlarge)"}},
		"AL2": {reason: "there are no newer images",
			change: func(g *ekstypes.Nodegroup, s *nodegroup.Source) {
				g.AmiType, g.ReleaseVersion, g.Version, s.Cluster.Version = ekstypes.AMITypesAl2X8664Gpu, aws.String("1.32.9-20251112"), aws.String("1.32"), "1.32"
			},
			manifests: []string{"alias: al2@v20251112\n"}, notes: []string{"no AL2 images from Kubernetes 1.33 on", "nodes with accelerators"}},
		"Bottlerocket": {reason: "pods write to the second disk",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.AmiType, g.ReleaseVersion, g.DiskSize = ekstypes.AMITypesBottlerocketArm64, aws.String("1.50.0-5d9ac849"), aws.Int32(80)
				g.InstanceTypes = []string{"m6g.large"}
			},
			manifests: []string{"alias: bottlerocket@v1.50.0\n", "deviceName: /dev/xvdb\n", "volumeSize: 80Gi\n", "- arm64\n"}},
		"Bottlerocket with FIPS": {reason: "the alias has no such images, and others would be less safe",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.AmiType = ekstypes.AMITypesBottlerocketX8664Fips },
			manifests: []string{"amiFamily: Bottlerocket\n", "ssmParameter: /aws/service/bottlerocket/aws-k8s-1.36-fips/x86_64/latest/image_id\n"},
			notes:     []string{"releaseVersion: not carried over"}},
		"Windows": {reason: "aliases have Server Core, and follow the newest image",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.AmiType = ekstypes.AMITypesWindowsCore2022X8664 },
			manifests: []string{"alias: windows2022@latest\n", "- windows\n", "deviceName: /dev/sda1\n"}, notes: []string{"releaseVersion: not carried over"}},
		"Windows with a desktop": {reason: "no alias has it",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.AmiType = ekstypes.AMITypesWindowsFull2022X8664 },
			manifests: []string{"ssmParameter: /aws/service/ami-windows-latest/Windows_Server-2022-English-Full-EKS_Optimized-1.36/image_id\n"}},
		"an old version": {reason: "images of a version are for that version of Kubernetes alone",
			change:    func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.Version = aws.String("1.35") },
			manifests: []string{"alias: al2023@latest\n"}, notes: []string{"version: not carried over: the group has Kubernetes 1.35"}},
		"an AMI type of the future": {reason: "nobody knows how its nodes boot", fails: true,
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.AmiType = "AL2031_x86_64_STANDARD" }, notes: []string{"naming the others"}},
		"CUSTOM without an image": {reason: "there is none to boot from", fails: true,
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.AmiType = ekstypes.AMITypesCustom }, notes: []string{"amiType: is CUSTOM"}},
		"an unknown instance type": {reason: "its limits cannot be told", fails: true,
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) { g.InstanceTypes = []string{"z9.large"} }, notes: []string{"z9.large"}},
		"remote access": {reason: "what opens the port stays open, and the key is gone",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.RemoteAccess = &ekstypes.RemoteAccessConfig{Ec2SshKey: aws.String("me")}
				g.Resources = &ekstypes.NodegroupResources{RemoteAccessSecurityGroup: aws.String("sg-0d")}
			},
			manifests: []string{"- id: sg-0c\n  - id: sg-0d\n"}, notes: []string{"remoteAccess.ec2SshKey: not carried over"}},
		"repair, a warm pool, issues and tags": {reason: "each is said",
			change: func(g *ekstypes.Nodegroup, _ *nodegroup.Source) {
				g.NodeRepairConfig = &ekstypes.NodeRepairConfig{Enabled: aws.Bool(true), MaxUnhealthyNodeThresholdCount: aws.Int32(1)}
				g.WarmPoolConfig = &ekstypes.WarmPoolConfig{Enabled: aws.Bool(true)}
				g.Health = &ekstypes.NodegroupHealth{Issues: []ekstypes.Issue{{Code: ekstypes.NodegroupIssueCodeAccessDenied, Message: aws.String("no")}}}
				g.Tags = map[string]string{"cost": "shop"}
			},
			notes: []string{"--feature-gates=NodeRepair=true", "maxUnhealthyNodeThresholdCount: not carried over", "warmPoolConfig: not carried over", "health: EKS reports AccessDenied", "tags[cost]: not carried over"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := managed("web")
			source := sourceOf(nodegroup.Group{Managed: group})
			row.change(group, &source)
			check(t, row.reason, nodegroup.Propose(source)[0], row.fails, row.manifests, row.notes)
		})
	}
}

func check(t *testing.T, reason string, proposal nodegroup.Proposal, fails bool, wantManifests, wantNotes []string) {
	t.Helper()
	manifests, notes := text(t, proposal)
	failed := slices.ContainsFunc(proposal.Notes, func(n convert.Note) bool { return n.Effect == convert.Failed })
	if failed != fails || fails != (manifests == "") {
		t.Errorf("%s: failed: %v with %d manifests, want %v\n%s", reason, failed, len(proposal.Objects), fails, notes)
	}
	for _, want := range wantManifests {
		if !strings.Contains(manifests, want) {
			t.Errorf("%s: the manifests lack %q:\n%s", reason, want, manifests)
		}
	}
	for _, want := range wantNotes {
		if !strings.Contains(notes, want) {
			t.Errorf("%s: the notes lack %q:\n%s", reason, want, notes)
		}
	}
}

// TestTemplate gives a managed node group a launch template.
func TestTemplate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		template  ec2types.ResponseLaunchTemplateData
		custom    bool
		manifests []string
		notes     []string
	}{
		"disks and networks": {reason: "they have the same fields",
			template: ec2types.ResponseLaunchTemplateData{
				BlockDeviceMappings: []ec2types.LaunchTemplateBlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDevice{VolumeSize: aws.Int32(100), VolumeType: "gp3", Iops: aws.Int32(4000), Encrypted: aws.Bool(true)}}},
				SecurityGroupIds:    []string{"sg-0e"}, Monitoring: &ec2types.LaunchTemplatesMonitoring{Enabled: aws.Bool(true)},
				MetadataOptions: &ec2types.LaunchTemplateInstanceMetadataOptions{HttpPutResponseHopLimit: aws.Int32(1), HttpTokens: "optional", InstanceMetadataTags: "enabled"},
				KeyName:         aws.String("me"),
			},
			manifests: []string{"volumeSize: 100Gi\n", "iops: 4000\n", "encrypted: true\n", "securityGroupSelectorTerms:\n  - id: sg-0e\n  subnet", "detailedMonitoring: true\n", "httpPutResponseHopLimit: 1\n", "httpTokens: optional\n"},
			notes:     []string{"launchTemplate.keyName: not carried over", "launchTemplate.metadataOptions.instanceMetadataTags: not carried over"}},
		"user data for images of Amazon": {reason: "Tenon's own part would override the pods and the planner would not know of them",
			template:  ec2types.ResponseLaunchTemplateData{UserData: encoded(nodeConfigText)},
			manifests: []string{"kubelet:\n    maxPods: 58\n", "registryPullQPS: 20", "labels:\n        disk: fast\n"},
			notes:     []string{"NodeConfig.registryPullQPS: stays in spec.userData", "eks.amazonaws.com/nodegroup: not carried over"}},
		"an archive of user data": {reason: "managed groups take MIME archives",
			template:  ec2types.ResponseLaunchTemplateData{UserData: encoded("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: application/node.eks.aws\n\n" + nodeConfigText + "--B--\n")},
			manifests: []string{"maxPods: 58\n", "MIME-Version: 1.0"}},
		"an image that joins by itself": {reason: "nobody else knows how", custom: true,
			template:  ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-0f"), UserData: encoded("#!/bin/bash\n/etc/eks/bootstrap.sh shop --use-max-pods false \\\n --kubelet-extra-args '--max-pods=40 --node-labels=disk=fast --register-with-taints=gpu=yes:NoSchedule'\n")},
			manifests: []string{"amiFamily: Custom\n", "- id: ami-0f\n", "maxPods: 40\n", "disk: fast\n", "key: gpu\n"}, notes: []string{"join the cluster by themselves"}},
		"an image with a NodeConfig": {reason: "Tenon can merge its own with it", custom: true,
			template:  ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-0f"), UserData: encoded(nodeConfigText)},
			manifests: []string{"amiFamily: AL2023\n", "- id: ami-0f\n"}},
		"an image with Bottlerocket's settings": {reason: "likewise", custom: true,
			template:  ec2types.ResponseLaunchTemplateData{ImageId: aws.String("ami-0f"), UserData: encoded("[settings.kubernetes]\nmax-pods = 30\n[settings.kubernetes.node-labels]\ndisk = \"fast\"\n[settings.kubernetes.node-taints]\ngpu = [\"yes:NoSchedule\"]\n")},
			manifests: []string{"amiFamily: Bottlerocket\n", "maxPods: 30\n", "disk: fast\n", "key: gpu\n"}},
		"places": {reason: "they have other names",
			template: ec2types.ResponseLaunchTemplateData{
				Placement:                        &ec2types.LaunchTemplatePlacement{GroupName: aws.String("near"), Tenancy: ec2types.TenancyDedicated, HostId: aws.String("h-0a")},
				CapacityReservationSpecification: &ec2types.LaunchTemplateCapacityReservationSpecificationResponse{CapacityReservationTarget: &ec2types.CapacityReservationTargetResponse{CapacityReservationId: aws.String("cr-0a")}},
				TagSpecifications:                []ec2types.LaunchTemplateTagSpecification{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String("cost"), Value: aws.String("shop")}}}, {ResourceType: "volume", Tags: []ec2types.Tag{{Key: aws.String("backup"), Value: aws.String("yes")}}}},
			},
			manifests: []string{"placementGroupSelector:\n    name: near\n", "- dedicated\n", "- id: cr-0a\n", "- reserved\n", "backup: \"yes\"\n    cost: shop\n"},
			notes:     []string{"hostId: not carried over: classes have no dedicated hosts", "[volume][backup]: spec.tags are put on instances, volumes and interfaces alike"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := managed("web")
			if row.custom {
				group.AmiType = ekstypes.AMITypesCustom
			}
			check(t, row.reason, nodegroup.Propose(sourceOf(nodegroup.Group{Managed: group, Template: &row.template}))[0], false, row.manifests, row.notes)
		})
	}
}

// TestSelfManaged has groups of somebody's own.
func TestSelfManaged(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason    string
		change    func(*nodegroup.Group)
		fails     bool
		manifests []string
		notes     []string
	}{
		"as it is": {reason: "the Cluster Autoscaler's tags say what nodes have", change: func(*nodegroup.Group) {},
			manifests: []string{"instanceProfile: nodes\n", "disk: fast\n", "key: gpu\n", "team: shop\n", "maxPods: 40\n", "- id: subnet-0a\n  - id: subnet-0b\n", "cpu: \"12\"\n"}},
		"a time of its own": {reason: "it is the time that consolidation waits",
			change: func(g *nodegroup.Group) {
				g.Scaling.Tags = append(g.Scaling.Tags, astypes.TagDescription{Key: aws.String(nodegroup.AutoscalerTag + "node-template/autoscaling-options/scaledownunneededtime"), Value: aws.String("3m0s")})
			},
			manifests: []string{"consolidateAfter: 3m"}},
		"several types and spot": {reason: "a mixed instances policy overrides the template",
			change: func(g *nodegroup.Group) {
				g.Scaling.MixedInstancesPolicy = &astypes.MixedInstancesPolicy{
					InstancesDistribution: &astypes.InstancesDistribution{OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(0), SpotAllocationStrategy: aws.String("lowest-price")},
					LaunchTemplate:        &astypes.LaunchTemplate{Overrides: []astypes.LaunchTemplateOverrides{{InstanceType: aws.String("m5.large"), WeightedCapacity: aws.String("1")}, {InstanceType: aws.String("m5.xlarge")}}}}
			},
			manifests: []string{"- spot\n        - on-demand\n", "- m5.large\n        - m5.xlarge\n"},
			notes:     []string{"instancesDistribution: not carried over", "spotAllocationStrategy: not carried over", "weightedCapacity: not carried over", "launchTemplate.instanceType: not carried over"}},
		"attributes": {reason: "they become requirements, with EC2's defaults",
			change: func(g *nodegroup.Group) {
				g.Scaling.MixedInstancesPolicy = &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{Overrides: []astypes.LaunchTemplateOverrides{{
					InstanceRequirements: &astypes.InstanceRequirements{VCpuCount: &astypes.VCpuCountRequest{Min: aws.Int32(4), Max: aws.Int32(8)}, MemoryMiB: &astypes.MemoryMiBRequest{Min: aws.Int32(8192)},
						CpuManufacturers: []astypes.CpuManufacturer{"intel", "amd"}, ExcludedInstanceTypes: []string{"m5.*"}}}}}}
				g.Template.InstanceType = ""
			},
			manifests: []string{"karpenter.k8s.aws/instance-cpu\n        operator: Gt\n        values:\n        - \"3\"\n", "operator: Lt\n        values:\n        - \"9\"\n", "- intel\n        - amd\n", "- nitro\n", "key: karpenter.k8s.aws/instance-category\n        operator: NotIn\n        values:\n        - t\n", "karpenter.k8s.aws/instance-family\n        operator: NotIn\n", "nodes: \"3\"\n"}},
		"a launch configuration": {reason: "AWS ends them, and no other group has to wait for it",
			change: func(g *nodegroup.Group) { g.Template, g.Scaling.LaunchConfigurationName = nil, aws.String("old") },
			notes:  []string{"launchConfigurationName: not carried over: the whole group is left out"}},
		"no profile": {reason: "nodes could not join", fails: true, change: func(g *nodegroup.Group) { g.Template.IamInstanceProfile = nil }, notes: []string{"iamInstanceProfile: is missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group := selfManaged("own")
			row.change(&group)
			proposal := nodegroup.Propose(sourceOf(group))[0]
			manifests, notes := text(t, proposal)
			failed := slices.ContainsFunc(proposal.Notes, func(n convert.Note) bool { return n.Effect == convert.Failed })
			if failed != row.fails {
				t.Errorf("%s: failed: %v\n%s", row.reason, failed, notes)
			}
			for _, want := range row.manifests {
				if !strings.Contains(manifests, want) {
					t.Errorf("%s: the manifests lack %q:\n%s", row.reason, want, manifests)
				}
			}
			for _, want := range row.notes {
				if !strings.Contains(notes, want) {
					t.Errorf("%s: the notes lack %q:\n%s", row.reason, want, notes)
				}
			}
		})
	}
}

// TestZonesAreJoined has a group in each zone, as the Cluster Autoscaler needs them, and one that differs.
func TestZonesAreJoined(t *testing.T) {
	t.Parallel()
	var groups []nodegroup.Group
	for _, zone := range []string{"a", "b", "c"} {
		group := managed("web-" + zone)
		group.Subnets = []string{"subnet-0" + zone}
		groups = append(groups, nodegroup.Group{Managed: group})
	}
	other := managed("web-d")
	other.Labels = map[string]string{"team": "shop"}
	proposals := nodegroup.Propose(sourceOf(append(groups, nodegroup.Group{Managed: other})...))
	if len(proposals) != 2 {
		t.Fatalf("%d proposals, want 2", len(proposals))
	}
	check(t, "one NodePool for all zones", proposals[0], false,
		[]string{"name: web\n", "- id: subnet-0a\n  - id: subnet-0b\n  - id: subnet-0c\n", "cpu: \"24\"\n"}, []string{"differs from web-b, web-c only in place and size"})
	check(t, "other nodes", proposals[1], false, []string{"name: web-d\n"}, nil)
	if got := fmt.Sprint(proposals[0].Groups); got != "[web-a web-b web-c]" {
		t.Errorf("groups %s", got)
	}
}

// TestEveryAMITypeIsKnown asks the SDK which AMI types there are.
func TestEveryAMITypeIsKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range ekstypes.AMITypes("").Values() {
		group := managed("web")
		group.AmiType = kind
		_, notes := text(t, nodegroup.Propose(sourceOf(nodegroup.Group{Managed: group}))[0])
		if strings.Contains(notes, "is not an AMI type that this command knows") {
			t.Errorf("AMI type %s is not known", kind)
		}
	}
}
