package offline

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// account is the name of the assumed account: the cluster it belongs to, and the value of its discovery tags.
const account = "offline"

// released is when every image was created.
const released = "2026-11-02T00:00:00.000Z"

// answers are what AWS would say to the provider's questions: about an account that has one subnet in each zone, one security
// group, and every image that Amazon publishes. Each answer is whole, on one page.
type answers struct {
	region string
	zones  []catalogue.Zone
	types  *catalogue.Catalogue
	market catalogue.Market
	opened time.Time
}

// install puts the answers in the place of an AWS SDK client's whole way to AWS and back.
func (a *answers) install(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("Offline", func(_ context.Context, in middleware.InitializeInput, _ middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		result, err := a.to(in.Parameters)
		return middleware.InitializeOutput{Result: result}, middleware.Metadata{}, err
	}), middleware.After)
}

// to answers one question.
func (a *answers) to(question any) (any, error) {
	switch q := question.(type) {
	case *ec2.DescribeInstanceTypesInput:
		return a.instanceTypes(), nil
	case *ec2.DescribeInstanceTypeOfferingsInput:
		return a.offerings(), nil
	case *ec2.DescribeSpotPriceHistoryInput:
		return a.spotPrices(), nil
	case *pricing.GetProductsInput:
		return a.products(q)
	case *ssm.GetParameterInput:
		return parameter(awssdk.ToString(q.Name))
	case *ec2.DescribeImagesInput:
		return images(q), nil
	case *ec2.DescribeSubnetsInput:
		return a.subnets(), nil
	case *ec2.DescribeSecurityGroupsInput:
		return &ec2.DescribeSecurityGroupsOutput{SecurityGroups: []ec2types.SecurityGroup{{GroupId: awssdk.String("sg-offline"), GroupName: awssdk.String(account)}}}, nil
	case *iam.GetInstanceProfileInput:
		return &iam.GetInstanceProfileOutput{InstanceProfile: &iamtypes.InstanceProfile{
			InstanceProfileName: q.InstanceProfileName, Roles: []iamtypes.Role{{RoleName: awssdk.String(account)}},
		}}, nil
	case *ec2.DescribeLaunchTemplatesInput:
		return &ec2.DescribeLaunchTemplatesOutput{}, nil
	case *ec2.DescribePlacementGroupsInput:
		return &ec2.DescribePlacementGroupsOutput{}, nil
	case *ec2.DescribeCapacityReservationsInput:
		return &ec2.DescribeCapacityReservationsOutput{}, nil
	}
	return nil, fmt.Errorf("%T cannot be answered offline", question)
}

func (a *answers) instanceTypes() *ec2.DescribeInstanceTypesOutput {
	out := &ec2.DescribeInstanceTypesOutput{}
	for _, t := range a.types.Types() {
		out.InstanceTypes = append(out.InstanceTypes, describe(t))
	}
	return out
}

func (a *answers) offerings() *ec2.DescribeInstanceTypeOfferingsOutput {
	out := &ec2.DescribeInstanceTypeOfferingsOutput{}
	for _, t := range a.types.Types() {
		for _, z := range a.zones {
			if t.Offered(z.Name, a.zones) {
				out.InstanceTypeOfferings = append(out.InstanceTypeOfferings, ec2types.InstanceTypeOffering{
					InstanceType: ec2types.InstanceType(t.Name), LocationType: ec2types.LocationTypeAvailabilityZone, Location: awssdk.String(z.Name),
				})
			}
		}
	}
	return out
}

// yuan is what a dollar is worth in the prices of China's regions.
const yuan = 9

// perDollar converts prices in dollars to the currency of the region.
func (a *answers) perDollar() float64 {
	if cloud.Currency(a.region) == "CNY" {
		return yuan
	}
	return 1
}

// spotPrices answers with the prices of the market's first hour. There is no spot capacity in Local Zones.
func (a *answers) spotPrices() *ec2.DescribeSpotPriceHistoryOutput {
	out := &ec2.DescribeSpotPriceHistoryOutput{}
	for _, t := range a.types.Types() {
		if !t.Supports("spot") || t.PriceUSD == 0 {
			continue
		}
		for _, z := range a.zones {
			if z.Local != "" || !t.Offered(z.Name, a.zones) {
				continue
			}
			out.SpotPriceHistory = append(out.SpotPriceHistory, ec2types.SpotPrice{
				InstanceType: ec2types.InstanceType(t.Name), AvailabilityZone: awssdk.String(z.Name), Timestamp: awssdk.Time(a.opened),
				SpotPrice: awssdk.String(strconv.FormatFloat(a.perDollar()*a.market.SpotPrice(t, z.Name, a.opened), 'f', 6, 64)),
			})
		}
	}
	return out
}

// products answers with the on-demand prices of the types that the question is about: bare metal, or all others.
func (a *answers) products(q *pricing.GetProductsInput) (*pricing.GetProductsOutput, error) {
	metal := false
	for _, f := range q.Filters {
		metal = metal || awssdk.ToString(f.Field) == "productFamily" && strings.Contains(awssdk.ToString(f.Value), "bare metal")
	}
	out := &pricing.GetProductsOutput{}
	for _, t := range a.types.Types() {
		if t.BareMetal != metal || t.PriceUSD == 0 {
			continue
		}
		price := strconv.FormatFloat(catalogue.RoundPrice(t.PriceUSD*a.perDollar()), 'f', 10, 64)
		document, err := json.Marshal(map[string]any{
			"product": map[string]any{"attributes": map[string]string{"instanceType": t.Name}},
			"terms":   map[string]any{"OnDemand": map[string]any{"offer": map[string]any{"priceDimensions": map[string]any{"rate": map[string]any{"pricePerUnit": map[string]string{cloud.Currency(a.region): price}}}}}},
		})
		if err != nil {
			return nil, fmt.Errorf("price of %s: %w", t.Name, err)
		}
		out.PriceList = append(out.PriceList, string(document))
	}
	return out, nil
}

// parameter answers with the id of the image that Amazon publishes under a name. There are none of Amazon Linux 2 for the
// version of Kubernetes that is assumed. The id tells the image's architecture.
func parameter(name string) (*ssm.GetParameterOutput, error) {
	if strings.Contains(name, "/amazon-linux-2/") || strings.Contains(name, "/amazon-linux-2-") {
		return nil, &smithy.GenericAPIError{Code: "ParameterNotFound"}
	}
	arch := ec2types.ArchitectureValuesX8664
	if strings.Contains(name, "/arm64/") {
		arch = ec2types.ArchitectureValuesArm64
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name)) // a hash does not fail
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Name: awssdk.String(name), Value: awssdk.String(fmt.Sprintf("ami-%s-%016x", arch, hash.Sum64()))}}, nil
}

// images answers with the images whose ids parameter has made.
func images(q *ec2.DescribeImagesInput) *ec2.DescribeImagesOutput {
	out := &ec2.DescribeImagesOutput{}
	for _, filter := range q.Filters {
		if awssdk.ToString(filter.Name) != "image-id" {
			continue
		}
		for _, id := range filter.Values {
			if rest, ours := strings.CutPrefix(id, "ami-"); ours {
				arch, _, _ := strings.Cut(rest, "-")
				out.Images = append(out.Images, ec2types.Image{
					ImageId: awssdk.String(id), Name: awssdk.String(id), Architecture: ec2types.ArchitectureValues(arch), CreationDate: awssdk.String(released),
				})
			}
		}
	}
	return out
}

// freeAddresses are those of a subnet of /19.
const freeAddresses = 1<<13 - 5

func (a *answers) subnets() *ec2.DescribeSubnetsOutput {
	out := &ec2.DescribeSubnetsOutput{}
	for _, z := range a.zones {
		out.Subnets = append(out.Subnets, ec2types.Subnet{
			SubnetId: awssdk.String("subnet-" + z.ID), AvailabilityZone: awssdk.String(z.Name), AvailabilityZoneId: awssdk.String(z.ID),
			AvailableIpAddressCount: awssdk.Int32(freeAddresses),
		})
	}
	return out
}
