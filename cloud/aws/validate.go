package aws

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/amifamily"
	"github.com/tenon-sh/tenon/internal/logs"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

const (
	// validationTTL is how long a successful validation of a class is cached.
	validationTTL = 30 * time.Minute
	// refusalTTL is how long a failed validation is cached. It is shorter, because somebody will be waiting for it to
	// succeed.
	refusalTTL = 5 * time.Minute
	// rehearsal is the NodePool and the launch group in the tags of dry runs, because IAM policies require those tags.
	rehearsal = "tenon-validation"
)

// validator checks whether launches of node classes would work.
type validator struct {
	ec2       *calls.EC2
	cluster   string
	noDryRun  bool // permissions are not tested
	log       *zap.Logger
	facts     *refreshed[clusterFacts]
	catalogue *catalogue
	templates *templateStore
	validated *ttlCache[string, finding]
}

// validate checks whether launches of the class would work, by looking at the class and by dry runs. The other parts
// have to be resolved first.
func (v *validator) validate(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	if errs := class.Validate(); len(errs) > 0 {
		return bad(reasonValidationFailed, "%v", errs.ToAggregate()), nil
	}
	if errs := amifamily.Of(class.AMIFamily()).Unsupported(class); len(errs) > 0 {
		return bad(reasonUnsupportedByFamily, "%v", errs.ToAggregate()), nil
	}
	for _, part := range []string{
		awsv1.ConditionTypeAMIsReady, awsv1.ConditionTypeSubnetsReady, awsv1.ConditionTypeSecurityGroupsReady,
		awsv1.ConditionTypeInstanceProfileReady, awsv1.ConditionTypePlacementGroupReady,
	} {
		if !class.IsTrue(part) {
			return finding{metav1.ConditionUnknown, reasonDependencies, "waiting for " + part}, nil
		}
	}
	group, err := v.catalogue.groups.of(ctx, class)
	if err != nil {
		return finding{}, err
	}
	key, err := validationKey(class, group)
	if err != nil {
		return finding{}, err
	}
	if known, ok := v.validated.get(key); ok {
		return known, nil
	}
	found, err := v.rehearse(ctx, class)
	if err != nil {
		return finding{}, err
	}
	switch found.status {
	case metav1.ConditionTrue:
		v.validated.put(key, found)
	case metav1.ConditionFalse:
		v.validated.putFor(key, found, refusalTTL)
	}
	return found, nil
}

// validationKey is a hash over what validate depends on.
func validationKey(class *awsv1.EC2NodeClass, group *placementGroup) (string, error) {
	subnets := slices.SortedFunc(slices.Values(class.Status.Subnets), func(a, b awsv1.Subnet) int { return cmp.Compare(a.ID, b.ID) })
	content, err := json.Marshal([]any{
		class.UID, class.Spec, group.key(), class.Status.AMIs, subnets, class.Status.SecurityGroups, class.Status.InstanceProfile,
	})
	if err != nil {
		return "", fmt.Errorf("key of node class %s: %w", class.Name, err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// rehearse prepares a launch of one ordinary instance and asks EC2 whether it would succeed.
func (v *validator) rehearse(ctx context.Context, class *awsv1.EC2NodeClass) (finding, error) {
	if class.AMIFamily() == awsv1.AMIFamilyAL2023 {
		cluster, _, err := v.facts.get(ctx)
		if err != nil {
			return finding{}, err
		}
		if cluster.serviceCIDR == "" {
			return bad(reasonClusterCIDR, "EKS does not say which range of service addresses the cluster has"), nil
		}
	}
	resolved, err := v.catalogue.resolve(ctx, class)
	if cloud.KindOf(err) == cloud.NodeClassNotReady {
		return bad(cloud.ReasonOf(err), "%v", err), nil
	}
	if err != nil {
		return finding{}, err
	}
	node := ordinary(resolved)
	if node == nil {
		return bad(reasonNoInstanceTypes, "%s", nothingSuits(resolved.excluded)), nil
	}
	launch, err := v.templates.of(ctx, class, rehearsal, nil, nil, templateKey{image: node.image, pods: node.pods, group: resolved.group.groupID()})
	if err != nil || v.noDryRun {
		return fine, err
	}
	name, err := v.templates.ensure(ctx, launch)
	if err != nil {
		return refusal(reasonTemplateRefused, err)
	}
	defer func() {
		if err := v.templates.remove(ctx, name); err != nil {
			logs.Of(ctx, v.log).Warn("the launch template of a validation stays for now", zap.String("launchTemplate", name), zap.Error(err))
		}
	}()
	return v.dryRuns(ctx, class, resolved, node, name, launch.Data.NetworkInterfaces)
}

// ordinary returns the node a rehearsal launches: m5.large or m6g.large if the class has them, else the one with the
// least memory that is not exotic, else the one with the least memory.
func ordinary(resolved *resolvedClass) *classNode {
	for _, name := range []string{"m5.large", "m6g.large"} {
		if node := resolved.byName[name]; node != nil {
			return node
		}
	}
	var best *classNode
	for i := range resolved.nodes {
		node := &resolved.nodes[i]
		if best == nil || (best.machine.exotic() && !node.machine.exotic()) ||
			(best.machine.exotic() == node.machine.exotic() && node.machine.memoryMiB < best.machine.memoryMiB) {
			best = node
		}
	}
	return best
}

// dryRuns makes a dry run of CreateFleet, and then of RunInstances in one subnet after another until one would work.
func (v *validator) dryRuns(ctx context.Context, class *awsv1.EC2NodeClass, resolved *resolvedClass, node *classNode, launchTemplate string,
	interfaces []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest,
) (finding, error) {
	tags := classTags(v.cluster, class)
	tags[awsv1.NodePoolTagKey], tags[launchGroupTag] = rehearsal, rehearsal
	var subnets []awsv1.Subnet
	for _, zone := range node.machine.zones {
		subnets = append(subnets, resolved.zones[zone]...)
	}
	request := fleetRequest{
		cloud.LaunchRequest{Group: rehearsal, Token: rehearsal, Count: 1, CapacityType: karpv1.CapacityTypeOnDemand},
		FleetDetails{Tags: tags, Overrides: []Override{{
			InstanceType: node.machine.name, Zone: subnets[0].Zone, Subnet: subnets[0].ID, LaunchTemplate: launchTemplate, Image: node.image,
		}}},
	}
	input := fleet(request)
	input.DryRun, input.ClientToken = aws.Bool(true), nil
	if _, err := v.ec2.CreateFleet(ctx, input); !isDryRun(err) {
		if found, err := refusal(reasonFleetRefused, classify("CreateFleet", err)); err != nil || found.status == metav1.ConditionFalse {
			return found, err
		}
	}
	found := fine
	for _, subnet := range subnets {
		_, err := v.ec2.RunInstances(ctx, dryInstance(request, subnet.ID, interfaces))
		if err == nil || isDryRun(err) {
			return fine, nil
		}
		if found, err = refusal(reasonInstancesRefused, classify("RunInstances", err)); err != nil || found.status == metav1.ConditionTrue {
			return found, err
		}
	}
	return found, nil
}

// dryInstance renders the RunInstances dry run of a rehearsal. If the template lists interfaces, the subnet has to be on them,
// and as they replace those of the template, the request repeats everything about them: EC2 then checks all.
func dryInstance(request fleetRequest, subnet string, interfaces []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest) *ec2.RunInstancesInput {
	override := request.Overrides[0]
	input := &ec2.RunInstancesInput{
		DryRun:   aws.Bool(true),
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		InstanceType: types.InstanceType(override.InstanceType),
		LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: aws.String(override.LaunchTemplate), Version: aws.String("$Latest"),
		},
	}
	for _, resource := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume, types.ResourceTypeNetworkInterface} {
		input.TagSpecifications = append(input.TagSpecifications, types.TagSpecification{ResourceType: resource, Tags: tagList(request.Tags)})
	}
	if len(interfaces) == 0 {
		input.SubnetId = aws.String(subnet)
		return input
	}
	for i := range interfaces {
		from := &interfaces[i]
		input.NetworkInterfaces = append(input.NetworkInterfaces, types.InstanceNetworkInterfaceSpecification{
			SubnetId: aws.String(subnet), DeviceIndex: from.DeviceIndex, NetworkCardIndex: from.NetworkCardIndex, InterfaceType: from.InterfaceType, Groups: from.Groups,
			AssociatePublicIpAddress: from.AssociatePublicIpAddress, ConnectionTrackingSpecification: from.ConnectionTrackingSpecification,
			PrimaryIpv6: from.PrimaryIpv6, Ipv6AddressCount: from.Ipv6AddressCount, Ipv6PrefixCount: from.Ipv6PrefixCount, Ipv4PrefixCount: from.Ipv4PrefixCount,
		})
	}
	return input
}

// refusal judges a failed rehearsal. Missing permissions and bad parameters are the class's fault. Insufficient
// capacity is not. Everything else is tried again, including what EC2 does not find, because its parts agree only after
// a while.
func refusal(reason string, err error) (finding, error) {
	switch cloud.KindOf(err) {
	case "", cloud.InsufficientCapacity:
		return fine, nil
	case cloud.Forbidden:
		return bad(reason, "%v", err), nil
	case cloud.Invalid:
		return bad(cloud.ReasonOf(err), "%v", err), nil
	case cloud.StaleRequest:
		// Part of EC2 does not know yet, or no longer knows, what the class was resolved to a moment ago.
		return finding{metav1.ConditionUnknown, cloud.ReasonOf(err), err.Error()}, nil
	}
	if cloud.ReasonOf(err) == "InstanceProfileNameInvalid" {
		return finding{metav1.ConditionUnknown, reasonProfileUnknown, "EC2 does not know the instance profile yet"}, nil
	}
	return finding{}, err
}
