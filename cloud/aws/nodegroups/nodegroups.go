// Package nodegroups reads the node groups of a cluster from AWS, for package internal/nodegroup to make NodePools of: managed
// node groups from EKS, and from EC2 Auto Scaling the groups that carry the Cluster Autoscaler's tags for the cluster. With them
// come their launch templates and their instance types. It only reads; deploy/iam/node-groups.json is all that it needs.
package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
	"github.com/tenon-sh/tenon/internal/nodegroup"
)

// Progress is told what is being read, and how many of how many are done; of is 0 if that is not known.
type Progress func(what string, done, of int)

// describeAutoScalingGroups is that call, as a function for the reason that package calls gives. A paginator calls its method.
type describeAutoScalingGroups func(context.Context, *autoscaling.DescribeAutoScalingGroupsInput, ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error)

func (f describeAutoScalingGroups) DescribeAutoScalingGroups(ctx context.Context, in *autoscaling.DescribeAutoScalingGroupsInput, options ...func(*autoscaling.Options)) (*autoscaling.DescribeAutoScalingGroupsOutput, error) {
	return f(ctx, in, options...)
}

// Reader reads the node groups of one cluster.
type Reader struct {
	cluster string
	ec2     *calls.EC2
	eks     *eks.Client
	scaling describeAutoScalingGroups
}

// New returns a reader that has the credentials and the region of the configuration.
func New(cfg aws.Config, cluster string) *Reader {
	return &Reader{cluster: cluster, ec2: calls.NewEC2(ec2.NewFromConfig(cfg)), eks: eks.NewFromConfig(cfg), scaling: autoscaling.NewFromConfig(cfg).DescribeAutoScalingGroups}
}

// Read returns the cluster's node groups: those with the names, or all. It fails if there is none, or none of one of the names.
func (r *Reader) Read(ctx context.Context, names []string, progress Progress) (nodegroup.Source, error) {
	progress("reading the cluster", 0, 0)
	out, err := r.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &r.cluster})
	if missing := (*ekstypes.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return nodegroup.Source{}, fmt.Errorf("EKS has no cluster %s in this region and account: check --cluster-name and --region", r.cluster)
	}
	if err != nil {
		return nodegroup.Source{}, fmt.Errorf("describe cluster %s: %w", r.cluster, err)
	}
	source := nodegroup.Source{Cluster: nodegroup.Cluster{Name: r.cluster, Version: aws.ToString(out.Cluster.Version)}}
	if network := out.Cluster.ResourcesVpcConfig; network != nil {
		source.Cluster.SecurityGroup = aws.ToString(network.ClusterSecurityGroupId)
	}
	progress("reading Auto Scaling groups", 0, 0)
	scaling, err := r.scalingGroups(ctx)
	if err != nil {
		return nodegroup.Source{}, err
	}
	if source.Groups, err = r.managed(ctx, scaling, progress); err != nil {
		return nodegroup.Source{}, err
	}
	for i := range scaling {
		if r.selfManaged(&scaling[i]) {
			source.Groups = append(source.Groups, nodegroup.Group{Scaling: &scaling[i]})
		}
	}
	if source.Groups, err = choose(source.Groups, names, r.cluster); err != nil {
		return nodegroup.Source{}, err
	}
	for i := range source.Groups {
		progress("reading launch templates", i, len(source.Groups))
		if err := r.template(ctx, &source.Groups[i]); err != nil {
			return nodegroup.Source{}, err
		}
	}
	progress("reading instance types", 0, 0)
	source.Types, err = r.types(ctx, source.Groups)
	return source, err
}

// choose returns the groups with the names, or all of them if there are no names.
func choose(groups []nodegroup.Group, names []string, cluster string) ([]nodegroup.Group, error) {
	if len(groups) == 0 {
		return nil, fmt.Errorf("cluster %s has no managed node groups, and no Auto Scaling groups with the tags %s and %s", cluster, nodegroup.EnabledTag, nodegroup.AutoscalerTag+cluster)
	}
	if len(names) == 0 {
		return groups, nil
	}
	known := map[string]nodegroup.Group{}
	for _, group := range groups {
		known[group.Name()] = group
	}
	var chosen []nodegroup.Group
	for _, name := range names {
		group, ok := known[name]
		if !ok {
			return nil, fmt.Errorf("cluster %s has no node group %s: there are %s", cluster, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		chosen = append(chosen, group)
	}
	return chosen, nil
}

// scalingGroups returns all Auto Scaling groups that carry the Cluster Autoscaler's tag of the cluster, those of managed node
// groups among them.
func (r *Reader) scalingGroups(ctx context.Context) ([]astypes.AutoScalingGroup, error) {
	var all []astypes.AutoScalingGroup
	pages := autoscaling.NewDescribeAutoScalingGroupsPaginator(r.scaling, &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100),
		Filters: []astypes.Filter{{Name: aws.String("tag-key"), Values: []string{nodegroup.AutoscalerTag + r.cluster}}}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("describe Auto Scaling groups: %w", err)
		}
		all = append(all, page.AutoScalingGroups...)
	}
	return all, nil
}

// selfManaged reports whether a group with the cluster's tag is one that the Cluster Autoscaler scales, and EKS does not manage.
func (r *Reader) selfManaged(group *astypes.AutoScalingGroup) bool {
	tagged := func(key string) bool {
		return slices.ContainsFunc(group.Tags, func(t astypes.TagDescription) bool { return aws.ToString(t.Key) == key })
	}
	return tagged(nodegroup.EnabledTag) && !tagged("eks:nodegroup-name")
}

// managed returns the cluster's managed node groups, with their Auto Scaling groups.
func (r *Reader) managed(ctx context.Context, scaling []astypes.AutoScalingGroup, progress Progress) ([]nodegroup.Group, error) {
	var names []string
	for pages := eks.NewListNodegroupsPaginator(r.eks, &eks.ListNodegroupsInput{ClusterName: &r.cluster}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the node groups of cluster %s: %w", r.cluster, err)
		}
		names = append(names, page.Nodegroups...)
	}
	var groups []nodegroup.Group
	for i, name := range names {
		progress("reading node groups", i, len(names))
		out, err := r.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &r.cluster, NodegroupName: &name})
		if err != nil {
			return nil, fmt.Errorf("describe node group %s: %w", name, err)
		}
		group := nodegroup.Group{Managed: out.Nodegroup}
		for j := range scaling {
			if belongs(out.Nodegroup, aws.ToString(scaling[j].AutoScalingGroupName)) {
				group.Scaling = &scaling[j]
			}
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// belongs reports whether an Auto Scaling group is a managed node group's.
func belongs(group *ekstypes.Nodegroup, name string) bool {
	return group.Resources != nil && slices.ContainsFunc(group.Resources.AutoScalingGroups, func(g ekstypes.AutoScalingGroup) bool { return aws.ToString(g.Name) == name })
}

// template reads the version of the launch template that a group uses.
func (r *Reader) template(ctx context.Context, group *nodegroup.Group) error {
	in := &ec2.DescribeLaunchTemplateVersionsInput{}
	version := "$Default"
	switch {
	case group.Managed != nil && group.Managed.LaunchTemplate != nil:
		t := group.Managed.LaunchTemplate
		in.LaunchTemplateId, version = t.Id, aws.ToString(t.Version)
		if t.Id == nil {
			in.LaunchTemplateName = t.Name
		}
	case group.Managed == nil:
		t := scalingTemplate(group.Scaling)
		if t == nil {
			return nil
		}
		in.LaunchTemplateId = t.LaunchTemplateId
		if t.LaunchTemplateId == nil {
			in.LaunchTemplateName = t.LaunchTemplateName
		}
		if t.Version != nil {
			version = *t.Version
		}
	default:
		return nil
	}
	in.Versions = []string{version}
	out, err := r.ec2.DescribeLaunchTemplateVersions(ctx, in)
	if err != nil {
		return fmt.Errorf("describe the launch template of node group %s: %w", group.Name(), err)
	}
	if len(out.LaunchTemplateVersions) != 1 {
		return fmt.Errorf("describe the launch template of node group %s: EC2 has %d versions %s", group.Name(), len(out.LaunchTemplateVersions), version)
	}
	group.Template = out.LaunchTemplateVersions[0].LaunchTemplateData
	return nil
}

// scalingTemplate returns the launch template of an Auto Scaling group, or nil.
func scalingTemplate(group *astypes.AutoScalingGroup) *astypes.LaunchTemplateSpecification {
	if policy := group.MixedInstancesPolicy; policy != nil && policy.LaunchTemplate != nil {
		return policy.LaunchTemplate.LaunchTemplateSpecification
	}
	return group.LaunchTemplate
}

// typesPerCall is how many instance types EC2 describes by name in one call (EC2 API reference, "DescribeInstanceTypes").
const typesPerCall = 100

// types describes all instance types that the groups name.
func (r *Reader) types(ctx context.Context, groups []nodegroup.Group) (map[string]nodegroup.InstanceType, error) {
	named := map[ec2types.InstanceType]bool{}
	for i := range groups {
		for _, name := range groups[i].InstanceTypes() {
			named[ec2types.InstanceType(name)] = true
		}
	}
	all := map[string]nodegroup.InstanceType{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(named)), typesPerCall) {
		out, err := r.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: some})
		if err != nil {
			return nil, fmt.Errorf("describe the groups' instance types: %w", err)
		}
		for i := range out.InstanceTypes {
			info := &out.InstanceTypes[i]
			kind := nodegroup.InstanceType{Arch: karpv1.ArchitectureAmd64}
			if info.VCpuInfo != nil {
				kind.VCPUs = int64(aws.ToInt32(info.VCpuInfo.DefaultVCpus))
			}
			if info.MemoryInfo != nil {
				kind.MemoryMiB = aws.ToInt64(info.MemoryInfo.SizeInMiB)
			}
			if info.ProcessorInfo != nil && slices.Contains(info.ProcessorInfo.SupportedArchitectures, ec2types.ArchitectureTypeArm64) {
				kind.Arch = karpv1.ArchitectureArm64
			}
			all[string(info.InstanceType)] = kind
		}
	}
	return all, nil
}
