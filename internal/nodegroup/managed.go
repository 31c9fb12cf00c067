package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// managedFields is what becomes of a managed node group (EKS API reference, "Nodegroup").
var managedFields = fields{
	carried: []string{"AmiType", "CapacityType", "DiskSize", "Health", "InstanceTypes", "Labels", "LaunchTemplate", "NodeRepairConfig", "NodeRole",
		"NodegroupName", "ReleaseVersion", "RemoteAccess", "Resources", "ScalingConfig", "Subnets", "Tags", "Taints", "UpdateConfig", "Version", "WarmPoolConfig"},
	silent: map[string]string{
		"ClusterName":  "it is the cluster that was asked about",
		"CreatedAt":    "it is about the group, not about its nodes",
		"ModifiedAt":   "it is about the group, not about its nodes",
		"NodegroupArn": "it repeats the names of cluster and group",
		"Status":       "it is about the group, not about its nodes",
	},
}

// Fields of what a Nodegroup contains.
var (
	scalingFields = fields{carried: []string{"MinSize", "MaxSize"}, silent: map[string]string{"DesiredSize": "it is what the Cluster Autoscaler has asked for; Tenon counts pods"}}
	updateFields  = fields{carried: []string{"MaxUnavailable", "MaxUnavailablePercentage"},
		lost: map[string]string{"UpdateStrategy": "Tenon launches the new nodes before it drains the old ones"}}
	repairFields = fields{carried: []string{"Enabled"}, lost: map[string]string{
		"NodeRepairConfigOverrides":           "how long Tenon tolerates each condition is fixed (docs/comparison.md)",
		"MaxUnhealthyNodeThresholdCount":      repairThreshold,
		"MaxUnhealthyNodeThresholdPercentage": repairThreshold,
		"MaxParallelNodesRepairedCount":       repairThreshold,
		"MaxParallelNodesRepairedPercentage":  repairThreshold,
	}}
	resourceFields = fields{carried: []string{"RemoteAccessSecurityGroup"}, silent: map[string]string{"AutoScalingGroups": "their tags are read"}}
	remoteFields   = fields{lost: map[string]string{
		"Ec2SshKey":            "classes have no SSH keys: use Session Manager, or write the key in spec.userData",
		"SourceSecurityGroups": "the security group that EKS made for remote access is among securityGroupSelectorTerms; EKS deletes it with the node group",
	}}
)

const repairThreshold = "Tenon repairs no nodes of a NodePool of which more than 20 % are unhealthy, and has no other threshold"

// managed is the proposal of a managed node group.
type managed struct {
	*proposal
	of *ekstypes.Nodegroup
}

// fill carries the group over.
func (p managed) fill() {
	g, t := p.of, p.group.Template
	p.roleAndPlace()
	text := ""
	if t != nil {
		text = p.decodeUserData("launchTemplate.userData", t.UserData)
	}
	switch {
	case g.AmiType != ekstypes.AMITypesCustom:
		p.amazonImage()
	case t == nil || t.ImageId == nil:
		p.fail("amiType", "is CUSTOM, and the launch template names no image: name one in the template, or leave the group out by naming the others")
	default:
		p.customImage("launchTemplate.imageId", *t.ImageId, text)
	}
	var attributes *ec2types.InstanceRequirements
	if t != nil {
		attributes = t.InstanceRequirements
	}
	p.instanceTypes("launchTemplate.instanceRequirements.", attributes)
	p.capacityType()
	for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
		p.label("labels["+key+"]", key, g.Labels[key])
	}
	p.ofEKS()
	for i := range g.Taints {
		p.managedTaint(fmt.Sprintf("taints[%d]", i), &g.Taints[i])
	}
	if p.group.Scaling != nil {
		p.scalingTags(p.group.Scaling.Tags, false)
	}
	p.sizes(attributes)
	p.updates(g.UpdateConfig)
	if t != nil {
		p.template("launchTemplate.", t)
		p.templateLosses(t)
		p.userData("launchTemplate.userData", text)
	} else {
		p.diskSize(g.DiskSize)
		p.metadata("launchTemplate.metadataOptions.", nil)
	}
	p.clusterSecurityGroups()
	p.rest()
}

// roleAndPlace carries over the node role and the subnets.
func (p managed) roleAndPlace() {
	g := p.of
	role := aws.ToString(g.NodeRole)
	p.class.Spec.Role = role[strings.LastIndex(role, "/")+1:]
	if strings.Contains(strings.TrimSuffix(role, "/"+p.class.Spec.Role), ":role/") {
		p.changed("nodeRole", "spec.role is the name of the role without its path")
	}
	p.changed("nodeRole", "nodes keep the role %s. EKS takes the access to the cluster from a role when its last node group is deleted: see docs/from-cluster-autoscaler.md before you delete groups",
		p.class.Spec.Role)
	if p.class.Spec.Role == "" {
		p.fail("nodeRole", "is missing: a class needs a role")
	}
	p.subnets(g.Subnets)
}

// capacityType requires what the group pays for.
func (p managed) capacityType() {
	switch p.of.CapacityType {
	case ekstypes.CapacityTypesSpot:
		p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeSpot)
	case ekstypes.CapacityTypesCapacityBlock:
		p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeReserved)
		p.changed("capacityType", "is now the capacity type reserved, with the capacity block that the launch template names in spec.capacityReservationSelectorTerms")
	default:
		p.require(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, karpv1.CapacityTypeOnDemand)
	}
}

// ofEKS says that nodes lack the labels by which EKS tells its groups apart.
func (p *proposal) ofEKS() {
	p.lost("labels[eks.amazonaws.com/nodegroup]", "%s", ofEKS)
	p.changed("", "nodes that no pod needs, or whose pods fit elsewhere, are removed after %s, as the Cluster Autoscaler does by default (--scale-down-unneeded-time)", scaleDownAfter)
}

// effects are EKS's names of Kubernetes' effects.
var effects = map[ekstypes.TaintEffect]corev1.TaintEffect{
	ekstypes.TaintEffectNoSchedule:       corev1.TaintEffectNoSchedule,
	ekstypes.TaintEffectPreferNoSchedule: corev1.TaintEffectPreferNoSchedule,
	ekstypes.TaintEffectNoExecute:        corev1.TaintEffectNoExecute,
}

func (p managed) managedTaint(field string, taint *ekstypes.Taint) {
	effect, known := effects[taint.Effect]
	if !known {
		p.fail(field+".effect", "%q is no effect of a taint", taint.Effect)
		return
	}
	p.taint(corev1.Taint{Key: aws.ToString(taint.Key), Value: aws.ToString(taint.Value), Effect: effect})
}

func (p managed) sizes(attributes *ec2types.InstanceRequirements) {
	g := p.of
	if g.ScalingConfig == nil {
		return
	}
	p.maxSize = int64(aws.ToInt32(g.ScalingConfig.MaxSize))
	p.limits("scalingConfig.maxSize", attributes)
	p.minSize("scalingConfig.minSize", aws.ToInt32(g.ScalingConfig.MinSize))
	p.say("scalingConfig.", g.ScalingConfig, scalingFields)
}

// updates makes budgets of how many nodes an update of the group may take away at once. An update replaces nodes that have
// another image or template, which is drift here; other disruption keeps the default budget.
func (p managed) updates(u *ekstypes.NodegroupUpdateConfig) {
	if u == nil {
		return
	}
	nodes := ""
	switch {
	case u.MaxUnavailable != nil:
		nodes = fmt.Sprint(*u.MaxUnavailable)
		p.changed("updateConfig.maxUnavailable", "is now the budget of nodes that have drifted; others have the default of 10%%")
	case u.MaxUnavailablePercentage != nil:
		nodes = fmt.Sprintf("%d%%", *u.MaxUnavailablePercentage)
		p.changed("updateConfig.maxUnavailablePercentage", "is now the budget of nodes that have drifted; others have the default of 10%%")
	}
	if nodes != "" {
		p.pool.Spec.Disruption.Budgets = []karpv1.Budget{
			{Nodes: nodes, Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}},
			{Nodes: "10%", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonEmpty, karpv1.DisruptionReasonUnderutilized}},
		}
	}
	p.say("updateConfig.", u, updateFields)
}

// templateLosses says what EKS does not take from a launch template either.
func (p managed) templateLosses(t *ec2types.ResponseLaunchTemplateData) {
	if p.of.AmiType != ekstypes.AMITypesCustom && t.ImageId != nil {
		p.lost("launchTemplate.imageId", "the group has images of the AMI type %s", p.of.AmiType)
	}
	if len(p.of.InstanceTypes) > 0 && t.InstanceType != "" {
		p.lost("launchTemplate.instanceType", "the group has instance types of its own")
	}
	if t.IamInstanceProfile != nil {
		p.lost("launchTemplate.iamInstanceProfile", "the group has a node role")
	}
	if m := t.InstanceMarketOptions; m != nil && !emptyStructOf(m) {
		p.lost("launchTemplate.instanceMarketOptions", "the group has a capacity type")
	}
}

// clusterSecurityGroups gives nodes the security groups that EKS gives them: the cluster's, unless a launch template has others.
func (p managed) clusterSecurityGroups() {
	g := p.of
	if len(p.class.Spec.SecurityGroupSelectorTerms) == 0 {
		if p.source.Cluster.SecurityGroup == "" {
			p.fail("launchTemplate.securityGroupIds", "are missing, and the cluster has no cluster security group: set them in the launch template")
			return
		}
		p.securityGroup(awsv1.SecurityGroupSelectorTerm{ID: p.source.Cluster.SecurityGroup})
	}
	if r := g.Resources; r != nil {
		if id := aws.ToString(r.RemoteAccessSecurityGroup); id != "" {
			p.securityGroup(awsv1.SecurityGroupSelectorTerm{ID: id})
		}
		p.say("resources.", r, resourceFields)
	}
	p.say("remoteAccess.", g.RemoteAccess, remoteFields)
}

// rest says what the other fields of a managed group come to.
func (p managed) rest() {
	g := p.of
	if g.Health != nil {
		for _, issue := range g.Health.Issues {
			p.changed("health", "EKS reports %s for the group: %s. Nodes of the pool may have the same problem", issue.Code, aws.ToString(issue.Message))
		}
	}
	if r := g.NodeRepairConfig; r != nil && aws.ToBool(r.Enabled) {
		p.changed("nodeRepairConfig.enabled", "Tenon repairs the nodes of all NodePools or of none: start the worker with --feature-gates=NodeRepair=true")
		p.say("nodeRepairConfig.", r, repairFields)
	}
	if w := g.WarmPoolConfig; w != nil && aws.ToBool(w.Enabled) {
		p.lost("warmPoolConfig", "Tenon keeps no stopped instances: a CapacityBuffer keeps room for pods to come")
	}
	for _, key := range slices.Sorted(maps.Keys(g.Tags)) {
		p.lost("tags["+key+"]", "it is on the node group alone, and EKS does not put it on instances: write it in spec.tags of the EC2NodeClass if they shall have it")
	}
	p.say("", g, managedFields)
}
