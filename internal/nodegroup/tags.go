package nodegroup

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The tags by which the Cluster Autoscaler finds groups, and learns of nodes that a group does not have yet
// (cluster-autoscaler/cloudprovider/aws/README.md).
const (
	AutoscalerTag   = "k8s.io/cluster-autoscaler/"
	EnabledTag      = AutoscalerTag + "enabled"
	nodeTemplateTag = AutoscalerTag + "node-template/"
	labelTag        = nodeTemplateTag + "label/"
	taintTag        = nodeTemplateTag + "taint/"
	resourcesTag    = nodeTemplateTag + "resources/"
	optionsTag      = nodeTemplateTag + "autoscaling-options/"
)

// tag puts a tag on everything that the class launches, unless only Tenon or AWS may do so.
func (p *proposal) tag(field, key, value string) {
	switch {
	case strings.HasPrefix(strings.ToLower(key), "aws:"):
		p.lost(field, "AWS alone sets tags whose keys begin with aws:")
		return
	case strings.HasPrefix(key, "kubernetes.io/cluster"), slices.Contains([]string{awsv1.EKSClusterNameTagKey, karpv1.NodePoolLabelKey, awsv1.NodeClaimTagKey, awsv1.NodeClassTagKey}, key):
		p.lost(field, "every instance gets this tag by itself, with its own value")
		return
	case strings.HasPrefix(key, AutoscalerTag), strings.HasPrefix(key, "eks:"):
		p.lost(field, "it is about node groups, of which new nodes have none")
		return
	}
	if p.class.Spec.Tags == nil {
		p.class.Spec.Tags = map[string]string{}
	}
	if had, ok := p.class.Spec.Tags[key]; ok && had != value {
		p.lost(field, "the tag has the value %q elsewhere, and a class one value for all", had)
		return
	}
	p.class.Spec.Tags[key] = value
}

// scalingTags carries over the tags of an Auto Scaling group: what the Cluster Autoscaler reads, and what instances get.
func (p *proposal) scalingTags(tags []astypes.TagDescription, own bool) {
	for _, tag := range tags {
		key, value := aws.ToString(tag.Key), aws.ToString(tag.Value)
		field := "tags[" + key + "]"
		if !own {
			field = "the Auto Scaling group's " + field
		}
		if name, ok := strings.CutPrefix(key, labelTag); ok {
			if p.pool.Spec.Template.Labels[name] != value {
				p.label(field, name, value)
			}
			continue
		}
		if name, ok := strings.CutPrefix(key, taintTag); ok {
			if taint, ok := parseTaint(name + "=" + value); ok {
				p.taint(taint)
			} else {
				p.lost(field, "%q is not a value and an effect such as value:NoSchedule", value)
			}
			continue
		}
		if name, ok := strings.CutPrefix(key, resourcesTag); ok {
			p.lost(field, "Tenon knows what EC2's instance types have; a NodeOverlay adds %s to those that have it", name)
			continue
		}
		if name, ok := strings.CutPrefix(key, optionsTag); ok {
			p.option(field, name, value)
			continue
		}
		switch {
		case strings.HasPrefix(key, AutoscalerTag), strings.HasPrefix(key, "eks:"), strings.HasPrefix(key, "kubernetes.io/cluster/"):
			// they say whose the group is, and whose its instances are
		case aws.ToBool(tag.PropagateAtLaunch):
			p.tag(field, key, value)
		case own:
			p.lost(field, "it is on the group alone, not on its instances")
		}
	}
}

// option carries over an option of the Cluster Autoscaler that a group has for itself.
func (p *proposal) option(field, name, value string) {
	after, err := karpv1.ParseNillableDuration(value)
	if name == "scaledownunneededtime" && err == nil {
		p.pool.Spec.Disruption.ConsolidateAfter = after
		p.changed(field, "is now spec.disruption.consolidateAfter")
		return
	}
	p.lost(field, "consolidation asks what saves money, and has no such option")
}
