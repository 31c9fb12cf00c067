package deploy_test

import (
	"context"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// nodeGroupsProbes are the calls of tenon convert --from-asg, and what its permissions must not reach.
func nodeGroupsProbes() []probe {
	describe := func(cluster string) func(context.Context, *neighbourhood, *principal) error {
		return func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: &cluster, NodegroupName: awssdk.String("none")})
			return err
		}
	}
	list := func(cluster string) func(context.Context, *neighbourhood, *principal) error {
		return func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: &cluster})
			return err
		}
	}
	return []probe{
		needed("read the cluster", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: awssdk.String("blue")})
			return err
		}),
		needed("list node groups", list("blue")),
		forbidden("list a neighbour's node groups", list("green")),
		needed("read a node group", describe("blue")),
		forbidden("read a neighbour's node group", describe("green")),
		needed("read Auto Scaling groups", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.scaling.DescribeAutoScalingGroups)
		}),
		forbidden("read Auto Scaling groups of another region", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.scalingAway.DescribeAutoScalingGroups)
		}),
		needed("read launch templates", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: awssdk.String("spot"), Versions: []string{"$Default"}})
			return err
		}),
		needed("read instance types", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstanceTypes)
		}),
		forbidden("scale a node group", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: awssdk.String("blue"), NodegroupName: awssdk.String("none")})
			return err
		}),
	}
}
