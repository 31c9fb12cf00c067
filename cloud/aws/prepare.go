package aws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/cloud"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpenterv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

const (
	// maxTypes is how many instance types a launch chooses from.
	maxTypes = 60
	// maxOverrides is how many overrides EC2 takes in one fleet.
	maxOverrides = 300
	// maxTemplates is how many launch templates EC2 takes in one fleet.
	maxTemplates = 50
	// prepareConcurrency bounds the launch templates one launch makes at a time.
	prepareConcurrency = 4
)

// PrepareLaunch implements cloud.Provider.
func (p *Provider) PrepareLaunch(ctx context.Context, spec cloud.LaunchSpec) (cloud.LaunchRequest, error) {
	if err := checkSpec(spec); err != nil {
		return cloud.LaunchRequest{}, err
	}
	resolved, err := p.resolve(ctx, spec.Class)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	subnets, err := p.subnets.best(ctx, spec.Class.Status.Subnets, func(id string) bool { return !p.unavailable.subnet(id) })
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	onDemand, _, err := p.onDemand.get(ctx)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	spot, _, err := p.spot.get(ctx)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	rooms, _, err := p.reservations.rooms(ctx, spec.Class.Status.CapacityReservations)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	choice := choose(spec, resolved, subnets, market{region: p.region, onDemand: onDemand, spot: spot, unavailable: p.unavailable, room: rooms})
	if len(choice) == 0 {
		return cloud.LaunchRequest{}, &cloud.Error{
			Kind: cloud.InsufficientCapacity, Reason: "InsufficientCapacity", Operation: "PrepareLaunch",
			Err: errors.New("none of the offerings asked for can be had at the moment"),
		}
	}
	overrides, err := p.withTemplates(ctx, spec, choice)
	if err != nil {
		return cloud.LaunchRequest{}, err
	}
	tags := classTags(p.options.Cluster, spec.Class)
	tags[launchGroupTag] = spec.Group
	if spec.NodePool != "" {
		tags[awsv1.NodePoolTagKey] = spec.NodePool
	}
	return cloud.LaunchRequest{
		Group:         spec.Group,
		Count:         spec.Count,
		CapacityType:  spec.CapacityType,
		Overrides:     overrides,
		Tags:          tags,
		Context:       aws.ToString(spec.Class.Spec.Context),
		Prioritized:   len(spec.Prices) > 0,
		CapacityBlock: marketOf(spec.Class, choice[0].key.ReservationID) == types.MarketTypeCapacityBlock,
		Interruptible: marketOf(spec.Class, choice[0].key.ReservationID) == types.MarketTypeInterruptibleCapacityReservation,
	}, nil
}

func checkSpec(spec cloud.LaunchSpec) error {
	switch {
	case spec.Count < 1:
		return invalid("PrepareLaunch", fmt.Errorf("a launch of %d instances", spec.Count))
	case !slices.Contains([]string{karpenterv1.CapacityTypeReserved, karpenterv1.CapacityTypeSpot, karpenterv1.CapacityTypeOnDemand}, spec.CapacityType):
		return invalid("PrepareLaunch", fmt.Errorf("capacity type %q cannot be bought", spec.CapacityType))
	case len(spec.Class.Status.SecurityGroups) == 0:
		return notReady("PrepareLaunch", "SecurityGroupsNotReady", "the node class has no security groups in its status")
	case spec.Class.Status.InstanceProfile == "":
		return notReady("PrepareLaunch", "InstanceProfileNotReady", "the node class has no instance profile in its status")
	}
	return nil
}

func invalid(operation string, err error) error {
	return &cloud.Error{Kind: cloud.Invalid, Reason: "LaunchFailed", Operation: operation, Err: err}
}

// choice is one override before it has a launch template.
type choice struct {
	node   *classNode
	key    cloud.OfferingKey
	subnet string
	price  float64
}

// choose narrows the offerings of a launch to what CreateFleet gets: what can be had at the moment, and of that the first
// 60 types. What makes sense to launch is for the caller to say: what it lists is launched. One fleet buys in one market, which
// is that of the first offering.
func choose(spec cloud.LaunchSpec, resolved *resolvedClass, subnets map[string]awsv1.Subnet, market market) []choice {
	var out []choice
	chosen := make(map[string]bool)
	for _, key := range spec.Offerings {
		node, ok := resolved.byName[key.InstanceType]
		subnet, reachable := subnets[key.Zone]
		price, priced := market.price(key)
		if own, overlaid := spec.Prices[key]; overlaid {
			price = own
		}
		if !ok || !reachable || !priced || key.CapacityType != spec.CapacityType || market.unavailable.offering(key) ||
			key.ReservationID != "" && market.room[key.ReservationID] <= 0 || !chosen[key.InstanceType] && len(chosen) == maxTypes ||
			len(out) > 0 && marketOf(spec.Class, key.ReservationID) != marketOf(spec.Class, out[0].key.ReservationID) {
			continue
		}
		chosen[key.InstanceType] = true
		if out = append(out, choice{node, key, subnet.ID, price}); len(out) == maxOverrides {
			break
		}
	}
	return out
}

// templateKey is what the launch templates of one launch differ in.
type templateKey struct {
	image       string
	pods        int64
	reservation string
	efas        int32 // EFA interfaces that the claims ask for
}

// template is the launch template of the choice. EFA interfaces are attached where a claim asks for any, and then as many as the
// type takes (Karpenter, pkg/providers/amifamily/resolver.go), unless the class lists the interfaces itself.
func (c *choice) template(spec cloud.LaunchSpec) templateKey {
	key := templateKey{image: c.node.image, pods: c.node.pods, reservation: c.key.ReservationID}
	if len(spec.Class.Spec.NetworkInterfaces) == 0 && slices.Contains(spec.Requests, awsv1.ResourceEFA) {
		key.efas = c.node.machine.efas
	}
	return key
}

// withTemplates makes the launch templates of a launch exist and completes its overrides.
func (p *Provider) withTemplates(ctx context.Context, spec cloud.LaunchSpec, choices []choice) ([]cloud.Override, error) {
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
			template, err := p.templateFor(ctx, spec.Class, spec.NodePool, spec.Labels, spec.Taints, key)
			if err != nil {
				return err
			}
			if spec.CapacityType == karpenterv1.CapacityTypeSpot {
				template.tagSpotRequests()
			}
			*names[key], err = p.templates.ensure(ctx, template)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	overrides := make([]cloud.Override, 0, len(choices))
	for _, c := range choices {
		name := names[c.template(spec)]
		if name == nil {
			continue
		}
		overrides = append(overrides, cloud.Override{
			InstanceType: c.key.InstanceType, Zone: c.key.Zone, Subnet: c.subnet,
			LaunchTemplate: *name, Image: c.node.image, Price: c.price, Reservation: c.key.ReservationID,
		})
	}
	return overrides, nil
}

// templateFor renders the launch template of one image and number of pods.
func (p *Provider) templateFor(ctx context.Context, class *awsv1.EC2NodeClass, nodePool string, labels map[string]string, taints []corev1.Taint,
	key templateKey,
) (template, error) {
	cluster, _, err := p.cluster.get(ctx)
	if err != nil {
		return template{}, err
	}
	userData, err := userData(cluster, class, labels, taints, key.pods)
	if err != nil {
		return template{}, err
	}
	tags := classTags(p.options.Cluster, class)
	if nodePool != "" {
		tags[awsv1.NodePoolTagKey] = nodePool
	}
	made := newTemplate(class, key.image, userData, tags)
	templateNetwork(class, cluster.ipv6(), key.efas, made.Data)
	if cluster.ipv6() && class.Spec.MetadataOptions == nil {
		made.Data.MetadataOptions.HttpProtocolIpv6 = types.LaunchTemplateInstanceMetadataProtocolIpv6Enabled
	}
	made.reserve(class, key.reservation)
	return made, nil
}

// userData renders the user data of a class's nodes in the way of its AMI family.
func userData(cluster clusterFacts, class *awsv1.EC2NodeClass, labels map[string]string, taints []corev1.Taint, pods int64) (string, error) {
	custom := aws.ToString(class.Spec.UserData)
	text := custom
	switch family := class.AMIFamily(); family {
	case awsv1.AMIFamilyCustom:
	case awsv1.AMIFamilyAL2023:
		kubelet, err := kubeletSettings(class.Spec.Kubelet)
		if err != nil {
			return "", err
		}
		boot := bootstrap{
			cluster: cluster, kubelet: kubelet, maxPods: pods, labels: labels, taints: taints, custom: custom,
			raid0: class.Spec.InstanceStorePolicy != nil && *class.Spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
		}
		if text, err = boot.al2023(); err != nil {
			return "", invalid("PrepareLaunch", err)
		}
	default:
		return "", notReady("PrepareLaunch", unsupportedFamily, unsupportedFamilyMessage(family))
	}
	if err := awsv1.ValidateUserDataSize(text); err != nil {
		return "", &cloud.Error{Kind: cloud.Invalid, Reason: "UserDataSizeLimitExceeded", Operation: "PrepareLaunch", Err: err}
	}
	return text, nil
}

// kubeletSettings returns a class's kubelet settings by the names of the kubelet's own configuration, which the
// resource shares.
func kubeletSettings(settings *awsv1.KubeletConfiguration) (map[string]any, error) {
	out := make(map[string]any)
	if settings == nil {
		return out, nil
	}
	encoded, err := json.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	if err := json.Unmarshal(encoded, &out); err != nil {
		return nil, fmt.Errorf("kubelet settings: %w", err)
	}
	return out, nil
}
