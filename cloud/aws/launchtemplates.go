package aws

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// maxTemplates is how many launch templates EC2 accepts in one fleet.
	maxTemplates = 50
	// prepareConcurrency limits the launch templates one launch creates at a time.
	prepareConcurrency = 4
)

// withoutIPv6Metadata are the regions in which EC2 does not know the IPv6 address of the instance metadata service
// (Karpenter, pkg/providers/amifamily/resolver.go).
var withoutIPv6Metadata = []string{"us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1"}

// overrides creates the launch templates of a launch where they do not exist and returns the overrides. It omits
// choices whose templates would exceed maxTemplates.
func (s *templateStore) overrides(ctx context.Context, spec launchSpec, choices []choice) ([]Override, error) {
	names := make(map[templateKey]*string)
	var order []templateKey
	for _, c := range choices {
		key := c.template(spec)
		if names[key] == nil && len(order) < maxTemplates {
			names[key] = new(string)
			order = append(order, key)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(prepareConcurrency)
	for _, key := range order {
		group.Go(func() error {
			template, err := s.of(ctx, spec.class, spec.NodePool, spec.Labels, spec.Taints, key)
			if err != nil {
				return err
			}
			if spec.CapacityType == karpv1.CapacityTypeSpot {
				template.tagSpotRequests()
			}
			*names[key], err = s.ensure(ctx, template)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	overrides := make([]Override, 0, len(choices))
	for _, c := range choices {
		name := names[c.template(spec)]
		if name == nil {
			continue
		}
		overrides = append(overrides, Override{
			InstanceType: c.key.InstanceType, Zone: c.key.Zone, Subnet: c.subnet,
			LaunchTemplate: *name, Image: c.node.image, Price: c.price, Reservation: c.key.ReservationID,
		})
	}
	return overrides, nil
}

// of renders the launch template of a class for a key.
func (s *templateStore) of(ctx context.Context, class *awsv1.EC2NodeClass, nodePool string, labels map[string]string, taints []corev1.Taint,
	key templateKey,
) (template, error) {
	cluster, _, err := s.facts.get(ctx)
	if err != nil {
		return template{}, err
	}
	userData, err := userData(cluster, class, labels, taints, key.image, key.pods)
	if err != nil {
		return template{}, err
	}
	tags := classTags(s.cluster, class)
	if nodePool != "" {
		tags[awsv1.NodePoolTagKey] = nodePool
	}
	made := newTemplate(class, key.image, userData, tags)
	templateNetwork(class, cluster.ipv6(), key.efas, made.Data)
	if cluster.ipv6() && class.Spec.MetadataOptions == nil {
		made.Data.MetadataOptions.HttpProtocolIpv6 = types.LaunchTemplateInstanceMetadataProtocolIpv6Enabled
	}
	if slices.Contains(withoutIPv6Metadata, s.api.Region) {
		made.Data.MetadataOptions.HttpProtocolIpv6 = ""
	}
	if made.Data.Placement, err = placement(key); err != nil {
		return template{}, err
	}
	made.Data.EnclaveOptions = &types.LaunchTemplateEnclaveOptionsRequest{Enabled: aws.Bool(key.enclave)}
	made.reserve(class, key.reservation)
	return made, nil
}

// placement returns where the template's instances are placed: their tenancy, and the placement group and partition if there are
// any.
func placement(key templateKey) (*types.LaunchTemplatePlacementRequest, error) {
	request := &types.LaunchTemplatePlacementRequest{Tenancy: cmp.Or(key.tenancy, types.TenancyDefault)}
	if key.group == "" {
		return request, nil
	}
	request.GroupId = aws.String(key.group)
	if key.partition != "" {
		number, err := strconv.ParseInt(key.partition, 10, 32)
		if err != nil {
			return nil, invalid("CreateLaunchTemplate", fmt.Errorf("partition %q of placement group %s: %w", key.partition, key.group, err))
		}
		request.PartitionNumber = aws.Int32(int32(number))
	}
	return request, nil
}
