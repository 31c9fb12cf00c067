package nodegroup

import (
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// scalingGroupFields is what becomes of an Auto Scaling group (EC2 Auto Scaling API reference, "AutoScalingGroup").
var scalingGroupFields = fields{
	carried: []string{"AutoScalingGroupName", "CapacityReservationSpecification", "LaunchConfigurationName", "LaunchTemplate", "MaxSize", "MinSize",
		"MixedInstancesPolicy", "PlacementGroup", "Tags", "VPCZoneIdentifier"},
	silent: map[string]string{
		"AutoScalingGroupARN": "it repeats the name", "AvailabilityZones": "they are those of the subnets", "AvailabilityZoneIds": "they are those of the subnets",
		"CreatedTime": ofGroup, "Status": ofGroup, "Instances": "they are the group's, and are drained when it is scaled to zero", "Operator": ofGroup,
		"ServiceLinkedRoleARN": ofGroup, "EnabledMetrics": ofGroup, "PredictedCapacity": ofGroup, "DeletionProtection": ofGroup,
		"DesiredCapacity": "it is what the Cluster Autoscaler has asked for; Tenon counts pods", "DesiredCapacityType": "likewise",
		"DefaultCooldown": ofScaling, "DefaultInstanceWarmup": ofScaling, "HealthCheckGracePeriod": ofScaling, "HealthCheckType": ofScaling,
		"SuspendedProcesses": ofScaling, "TerminationPolicies": ofScaling, "AvailabilityZoneDistribution": ofScaling, "AvailabilityZoneImpairmentPolicy": ofScaling,
		"WarmPoolSize": "WarmPoolConfiguration has a note",
	},
	lost: map[string]string{
		"CapacityRebalance":                "with an interruption queue Tenon replaces spot instances that EC2 is about to take away",
		"InstanceLifecyclePolicy":          "nodes are drained before they are terminated, without a hook",
		"InstanceMaintenancePolicy":        "spec.disruption.budgets bound how many nodes are taken away at once",
		"LoadBalancerNames":                ofLoadBalancers,
		"TargetGroupARNs":                  ofLoadBalancers,
		"TrafficSources":                   ofLoadBalancers,
		"MaxInstanceLifetime":              "write it as spec.template.spec.expireAfter of the NodePool, in hours",
		"NewInstancesProtectedFromScaleIn": "annotate nodes or pods karpenter.sh/do-not-disrupt to keep them",
		"WarmPoolConfiguration":            "Tenon keeps no stopped instances: a CapacityBuffer keeps room for pods to come",
	},
}

const (
	ofGroup         = "it is about the group, not about its nodes"
	ofScaling       = "it is how the group counts and replaces instances, which Tenon does its own way"
	ofLoadBalancers = "nodes are not registered by themselves: use the AWS Load Balancer Controller, which registers nodes or pods"
)

var (
	distributionFields = fields{carried: []string{"OnDemandBaseCapacity", "OnDemandPercentageAboveBaseCapacity"}, lost: map[string]string{
		"OnDemandAllocationStrategy": allocation, "SpotAllocationStrategy": allocation, "SpotInstancePools": allocation, "SpotMaxPrice": "Tenon pays the price of the moment",
		"DistributionSegments": allocation}}
	overrideFields = fields{carried: []string{"InstanceType", "InstanceRequirements"}, lost: map[string]string{
		"WeightedCapacity":            "Tenon counts what pods request",
		"ImageId":                     "a NodePool has one class: make another for this image",
		"LaunchTemplateSpecification": "a NodePool has one class: make another for this launch template"}}
)

const allocation = "Tenon chooses among all types that fit, by price and by how likely spot interruptions are"

// overrides returns the overrides of a group's mixed instances policy.
func overrides(g *astypes.AutoScalingGroup) []astypes.LaunchTemplateOverrides {
	if g == nil || g.MixedInstancesPolicy == nil || g.MixedInstancesPolicy.LaunchTemplate == nil {
		return nil
	}
	return g.MixedInstancesPolicy.LaunchTemplate.Overrides
}

func overriddenTypes(g *astypes.AutoScalingGroup) []string {
	var types []string
	for _, o := range overrides(g) {
		if o.InstanceType != nil {
			types = append(types, *o.InstanceType)
		}
	}
	return types
}

// selfManaged is the proposal of an Auto Scaling group that is nobody's but the user's.
type selfManaged struct {
	*proposal
	of *astypes.AutoScalingGroup
}

// fill carries the group over.
func (p selfManaged) fill() {
	g, t := p.of, p.group.Template
	if t == nil {
		p.leftOut = true
		field := "launchTemplate"
		if g.LaunchConfigurationName != nil {
			field = "launchConfigurationName"
		}
		p.lost(field, "the whole group is left out, since it has no launch template. Write a NodePool by hand, or give the group a launch template first")
		return
	}
	if t.ImageId == nil {
		p.fail("launchTemplate.imageId", "is missing: leave the group out by naming the others")
		return
	}
	text := p.decodeUserData("launchTemplate.userData", t.UserData)
	p.customImage("launchTemplate.imageId", *t.ImageId, text)
	p.profile(t)
	p.subnets(splitList(aws.ToString(g.VPCZoneIdentifier)))
	attributes := p.chosenAttributes()
	p.instanceTypes("instanceRequirements.", attributes)
	p.market(t)
	p.maxSize = int64(aws.ToInt32(g.MaxSize))
	p.limits("maxSize", attributes)
	p.minSize("minSize", aws.ToInt32(g.MinSize))
	p.template("launchTemplate.", t)
	p.userData("launchTemplate.userData", text)
	p.scalingTags(g.Tags, true)
	p.changed("", "nodes that no pod needs, or whose pods fit elsewhere, are removed after %s, as the Cluster Autoscaler does by default (--scale-down-unneeded-time)",
		p.pool.Spec.Disruption.ConsolidateAfter)
	if g.PlacementGroup != nil {
		p.class.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: g.PlacementGroup}
	}
	if c := g.CapacityReservationSpecification; c != nil && !emptyStructOf(c) {
		p.lost("capacityReservationSpecification", "select the reservations in spec.capacityReservationSelectorTerms, and require the capacity type reserved")
	}
	if len(p.class.Spec.SecurityGroupSelectorTerms) == 0 {
		p.fail("launchTemplate.securityGroupIds", "are missing: a class has to select security groups. Set them in the launch template")
	}
	p.say("", g, scalingGroupFields)
}

// splitList splits what EC2 Auto Scaling joins with commas.
func splitList(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// profile carries over the instance profile.
func (p selfManaged) profile(t *ec2types.ResponseLaunchTemplateData) {
	if t.IamInstanceProfile == nil {
		p.fail("launchTemplate.iamInstanceProfile", "is missing: nodes need an instance profile to join the cluster")
		return
	}
	name := aws.ToString(t.IamInstanceProfile.Name)
	if name == "" {
		arn := aws.ToString(t.IamInstanceProfile.Arn)
		name = arn[strings.LastIndex(arn, "/")+1:]
	}
	p.class.Spec.InstanceProfile = &name
}

// chosenAttributes returns the attributes by which the group chooses instance types; nil if it names them.
func (p selfManaged) chosenAttributes() *ec2types.InstanceRequirements {
	var attributes *ec2types.InstanceRequirements
	for i, o := range overrides(p.of) {
		p.say("mixedInstancesPolicy.overrides.", &o, overrideFields)
		if o.InstanceRequirements == nil {
			continue
		}
		if attributes != nil {
			p.lost("mixedInstancesPolicy.overrides", "only the first of several InstanceRequirements is carried over: write a NodePool for number %d", i+1)
			continue
		}
		attributes = new(ec2types.InstanceRequirements) // both services have the same structure
		data, err := json.Marshal(o.InstanceRequirements)
		if err == nil {
			err = json.Unmarshal(data, attributes)
		}
		if err != nil {
			p.fail("mixedInstancesPolicy.overrides", "%v", err)
		}
	}
	if attributes == nil {
		attributes = p.group.Template.InstanceRequirements
	} else if p.group.Template.InstanceRequirements != nil {
		p.lost("launchTemplate.instanceRequirements", "the group overrides them")
	}
	if len(overriddenTypes(p.of)) > 0 && p.group.Template.InstanceType != "" {
		p.lost("launchTemplate.instanceType", "the group overrides it")
	}
	return attributes
}

// market requires what the group pays for.
func (p selfManaged) market(t *ec2types.ResponseLaunchTemplateData) {
	g := p.of
	spot := t.InstanceMarketOptions != nil && t.InstanceMarketOptions.MarketType == ec2types.MarketTypeSpot
	onDemand := !spot
	if t.InstanceMarketOptions != nil {
		p.say("launchTemplate.instanceMarketOptions.", t.InstanceMarketOptions, marketFields)
	}
	if g.MixedInstancesPolicy != nil && g.MixedInstancesPolicy.InstancesDistribution != nil {
		d := g.MixedInstancesPolicy.InstancesDistribution
		share := int32(100)
		if d.OnDemandPercentageAboveBaseCapacity != nil {
			share = *d.OnDemandPercentageAboveBaseCapacity
		}
		base := aws.ToInt32(d.OnDemandBaseCapacity)
		spot, onDemand = share < 100, share > 0 || base > 0
		if spot && onDemand {
			p.lost("mixedInstancesPolicy.instancesDistribution", "the pool may have both, and takes spot instances as long as EC2 has them. The group's share (%d on demand, then %d %%) needs a NodePool for each", base, share)
		}
		p.say("mixedInstancesPolicy.instancesDistribution.", d, distributionFields)
	}
	if spot {
		p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeSpot)
	}
	if onDemand {
		p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand)
	}
}
