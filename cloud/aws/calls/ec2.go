// Package calls has the calls to AWS that Tenon makes, as functions instead of as methods of the SDK's clients.
//
// Temporal's SDK finds the methods of activities by reflection. In such a program the linker keeps every method of every type that
// reflection could reach from some interface, and EC2's client has more than 700: they, with what they write and read, would be
// a quarter of the program. A function brings only itself.
//
// Reading order: ec2, iam, ssm.
package calls

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// EC2 are the calls to EC2.
type EC2 struct {
	// Region is the region that is called.
	Region string

	CreateFleet                    ec2Call[ec2.CreateFleetInput, ec2.CreateFleetOutput]
	CreateLaunchTemplate           ec2Call[ec2.CreateLaunchTemplateInput, ec2.CreateLaunchTemplateOutput]
	CreateTags                     ec2Call[ec2.CreateTagsInput, ec2.CreateTagsOutput]
	DeleteLaunchTemplate           ec2Call[ec2.DeleteLaunchTemplateInput, ec2.DeleteLaunchTemplateOutput]
	DescribeLaunchTemplateVersions ec2Call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput]
	DescribePlacementGroups        ec2Call[ec2.DescribePlacementGroupsInput, ec2.DescribePlacementGroupsOutput]
	RunInstances                   ec2Call[ec2.RunInstancesInput, ec2.RunInstancesOutput]
	TerminateInstances             ec2Call[ec2.TerminateInstancesInput, ec2.TerminateInstancesOutput]

	// These are what the paginators of the SDK take.
	DescribeCapacityReservations  describeCapacityReservations
	DescribeImages                describeImages
	DescribeInstances             describeInstances
	DescribeInstanceStatus        describeInstanceStatus
	DescribeInstanceTypeOfferings describeInstanceTypeOfferings
	DescribeInstanceTypes         describeInstanceTypes
	DescribeLaunchTemplates       describeLaunchTemplates
	DescribeSecurityGroups        describeSecurityGroups
	DescribeSpotPriceHistory      describeSpotPriceHistory
	DescribeSubnets               describeSubnets
}

// NewEC2 takes the calls from a client.
func NewEC2(client *ec2.Client) *EC2 {
	return &EC2{
		Region: client.Options().Region,

		CreateFleet:                    client.CreateFleet,
		CreateLaunchTemplate:           client.CreateLaunchTemplate,
		CreateTags:                     client.CreateTags,
		DeleteLaunchTemplate:           client.DeleteLaunchTemplate,
		DescribeLaunchTemplateVersions: client.DescribeLaunchTemplateVersions,
		DescribePlacementGroups:        client.DescribePlacementGroups,
		RunInstances:                   client.RunInstances,
		TerminateInstances:             client.TerminateInstances,

		DescribeCapacityReservations:  client.DescribeCapacityReservations,
		DescribeImages:                client.DescribeImages,
		DescribeInstances:             client.DescribeInstances,
		DescribeInstanceStatus:        client.DescribeInstanceStatus,
		DescribeInstanceTypeOfferings: client.DescribeInstanceTypeOfferings,
		DescribeInstanceTypes:         client.DescribeInstanceTypes,
		DescribeLaunchTemplates:       client.DescribeLaunchTemplates,
		DescribeSecurityGroups:        client.DescribeSecurityGroups,
		DescribeSpotPriceHistory:      client.DescribeSpotPriceHistory,
		DescribeSubnets:               client.DescribeSubnets,
	}
}

// ec2Call is one of them.
type ec2Call[In, Out any] func(context.Context, *In, ...func(*ec2.Options)) (*Out, error)

// A paginator calls a method of the name of the call.
type (
	describeCapacityReservations  ec2Call[ec2.DescribeCapacityReservationsInput, ec2.DescribeCapacityReservationsOutput]
	describeImages                ec2Call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput]
	describeInstances             ec2Call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput]
	describeInstanceStatus        ec2Call[ec2.DescribeInstanceStatusInput, ec2.DescribeInstanceStatusOutput]
	describeInstanceTypeOfferings ec2Call[ec2.DescribeInstanceTypeOfferingsInput, ec2.DescribeInstanceTypeOfferingsOutput]
	describeInstanceTypes         ec2Call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput]
	describeLaunchTemplates       ec2Call[ec2.DescribeLaunchTemplatesInput, ec2.DescribeLaunchTemplatesOutput]
	describeSecurityGroups        ec2Call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput]
	describeSpotPriceHistory      ec2Call[ec2.DescribeSpotPriceHistoryInput, ec2.DescribeSpotPriceHistoryOutput]
	describeSubnets               ec2Call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput]
)

func (f describeCapacityReservations) DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput, options ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error) {
	return f(ctx, in, options...)
}

func (f describeImages) DescribeImages(ctx context.Context, in *ec2.DescribeImagesInput, options ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	return f(ctx, in, options...)
}

func (f describeInstances) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, options ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	return f(ctx, in, options...)
}

func (f describeInstanceStatus) DescribeInstanceStatus(ctx context.Context, in *ec2.DescribeInstanceStatusInput, options ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error) {
	return f(ctx, in, options...)
}

func (f describeInstanceTypeOfferings) DescribeInstanceTypeOfferings(ctx context.Context, in *ec2.DescribeInstanceTypeOfferingsInput, options ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error) {
	return f(ctx, in, options...)
}

func (f describeInstanceTypes) DescribeInstanceTypes(ctx context.Context, in *ec2.DescribeInstanceTypesInput, options ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error) {
	return f(ctx, in, options...)
}

func (f describeLaunchTemplates) DescribeLaunchTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput, options ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return f(ctx, in, options...)
}

func (f describeSecurityGroups) DescribeSecurityGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput, options ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error) {
	return f(ctx, in, options...)
}

func (f describeSpotPriceHistory) DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, options ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error) {
	return f(ctx, in, options...)
}

func (f describeSubnets) DescribeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, options ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error) {
	return f(ctx, in, options...)
}
