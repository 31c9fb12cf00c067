package aws

import (
	"cmp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// launchGroupTag names the launch group an instance was launched in.
const launchGroupTag = "tenon.sh/launch-group"

// owned is the value of the cluster's ownership tag.
const owned = "owned"

// maxFilterValues is how many values EC2 accepts for one filter.
const maxFilterValues = 200

// classTags returns the tags of everything created for a class: the user's tags, and those of ownership, which override
// them.
func classTags(cluster string, class *awsv1.EC2NodeClass) map[string]string {
	tags := make(map[string]string, len(class.Spec.Tags)+5)
	for key, value := range class.Spec.Tags {
		tags[key] = value
	}
	tags[awsv1.ClusterTagKey(cluster)] = owned
	tags[awsv1.EKSClusterNameTagKey] = cluster
	tags[awsv1.NodeClassTagKey] = class.Name
	return tags
}

// ownershipFilters returns the filters that select what belongs to a cluster. The cluster's tag alone does not suffice:
// EKS puts it on the nodes of its managed groups as well, but those have no node class.
func ownershipFilters(cluster string) []types.Filter {
	return []types.Filter{
		filter("tag:"+awsv1.ClusterTagKey(cluster), owned),
		filter("tag-key", awsv1.NodeClassTagKey),
	}
}

// isOwned reports whether tags pass ownershipFilters.
func isOwned(cluster string, tags map[string]string) bool {
	_, hasClass := tags[awsv1.NodeClassTagKey]
	return hasClass && tags[awsv1.ClusterTagKey(cluster)] == owned
}

// tagList renders tags for EC2, sorted, because requests with the same token have to be equal.
func tagList(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for key, value := range tags {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	slices.SortFunc(out, func(a, b types.Tag) int { return cmp.Compare(*a.Key, *b.Key) })
	return out
}

// tagMap converts EC2's tags into a map.
func tagMap(tags []types.Tag) map[string]string {
	out := make(map[string]string, len(tags))
	for _, tag := range tags {
		out[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return out
}
