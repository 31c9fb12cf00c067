package cleanup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	tenon "github.com/tenon-sh/tenon/cloud/aws"
)

const (
	owned     = "owned"
	regionTag = "topology.kubernetes.io/region"
	// maxRuleName and maxQueueName are the limits of EventBridge and SQS for names and their prefixes. EKS allows longer names
	// of clusters, whose rules and queue cannot be named after them.
	maxRuleName, maxQueueName = 64, 80
)

// liveStates are the states of instances that nobody has terminated yet.
var liveStates = []string{"pending", "running", "stopping", "stopped"}

// Find lists everything of the cluster's, the running instances first. It fails only if ctx ends; what it may not read is in
// Found.Unknown.
func (a *Account) Find(ctx context.Context, progress Progress) (*Found, error) {
	found := &Found{Cluster: a.cluster, Region: a.region, Items: []Item{}}
	progress("asking EKS for the cluster", 0, 0)
	a.findCluster(ctx, found)
	for _, look := range []struct {
		what string
		at   func(context.Context, *Found) error
	}{
		{"instances", a.findInstances},
		{"launch templates", a.findTemplates},
		{"instance profiles", a.findProfiles},
		{"EventBridge rules", a.findRules},
		{"SQS queues", a.findQueues},
	} {
		progress("looking for "+look.what, 0, 0)
		if err := look.at(ctx, found); err != nil {
			found.Unknown = append(found.Unknown, fmt.Sprintf("%s: %v", look.what, err))
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	order := Kinds()
	slices.SortStableFunc(found.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), running(b)-running(a), a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// running is 1 for instances that cost money.
func running(i Item) int {
	if i.State == "running" || i.State == "pending" {
		return 1
	}
	return 0
}

// hasCode reports whether an SDK error carries one of these codes.
func hasCode(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}

func (a *Account) findCluster(ctx context.Context, found *Found) {
	out, err := a.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &a.cluster})
	switch {
	case err == nil:
		found.Status = string(out.Cluster.Status)
	case !hasCode(err, "ResourceNotFoundException"):
		found.ClusterUnknown = err.Error()
	}
}

// ownership returns the tags that make something the cluster's, as key=value, or nil if it is not.
func (a *Account) ownership(tags map[string]string) []string {
	key := awsv1.ClusterTagKey(a.cluster)
	class, hasClass := tags[awsv1.NodeClassTagKey]
	if tags[key] != owned || !hasClass {
		return nil
	}
	return []string{key + "=" + owned, awsv1.NodeClassTagKey + "=" + class}
}

// ownFilters select what has the tags of ownership.
func (a *Account) ownFilters() []types.Filter {
	return []types.Filter{
		{Name: aws.String("tag:" + awsv1.ClusterTagKey(a.cluster)), Values: []string{owned}},
		{Name: aws.String("tag-key"), Values: []string{awsv1.NodeClassTagKey}},
	}
}

func ec2Tags(list []types.Tag) map[string]string {
	tags := make(map[string]string, len(list))
	for _, tag := range list {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}

func (a *Account) findInstances(ctx context.Context, found *Found) error {
	instances, err := a.instances(ctx, append(a.ownFilters(), types.Filter{Name: aws.String("instance-state-name"), Values: liveStates})...)
	if err != nil {
		return err
	}
	var items []Item
	for i := range instances {
		in := &instances[i]
		tags := ec2Tags(in.Tags)
		item := Item{
			Kind: KindInstance, ID: aws.ToString(in.InstanceId), Name: tags[awsv1.NameTagKey], Created: aws.ToTime(in.LaunchTime).UTC(),
			Tags: a.ownership(tags), State: string(in.State.Name), InstanceType: string(in.InstanceType), CapacityType: karpv1.CapacityTypeOnDemand,
		}
		if in.Placement != nil {
			item.Zone = aws.ToString(in.Placement.AvailabilityZone)
		}
		if in.InstanceLifecycle == types.InstanceLifecycleTypeSpot {
			item.CapacityType = karpv1.CapacityTypeSpot
		}
		if item.Tags != nil {
			items = append(items, item)
		}
	}
	a.price(ctx, items)
	found.Items = append(found.Items, items...)
	return nil
}

// instances returns the instances that the filters select, from all pages.
func (a *Account) instances(ctx context.Context, filters ...types.Filter) ([]types.Instance, error) {
	var all []types.Instance
	pages := ec2.NewDescribeInstancesPaginator(a.ec2.DescribeInstances, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(500)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, reservation := range page.Reservations {
			all = append(all, reservation.Instances...)
		}
	}
	return all, nil
}

// price fills in what running instances cost. Prices are for information only, so one that cannot be read stays unknown.
func (a *Account) price(ctx context.Context, items []Item) {
	spot := map[[2]string]float64{}
	in := &ec2.DescribeSpotPriceHistoryInput{ProductDescriptions: []string{"Linux/UNIX"}, StartTime: aws.Time(time.Now()), MaxResults: aws.Int32(1000)}
	for _, item := range items {
		if kind := types.InstanceType(item.InstanceType); item.CapacityType == karpv1.CapacityTypeSpot && !slices.Contains(in.InstanceTypes, kind) {
			in.InstanceTypes = append(in.InstanceTypes, kind)
		}
	}
	for pages := ec2.NewDescribeSpotPriceHistoryPaginator(a.ec2.DescribeSpotPriceHistory, in); len(in.InstanceTypes) > 0 && pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			break
		}
		for _, entry := range page.SpotPriceHistory { // the latest comes first
			pool := [2]string{string(entry.InstanceType), aws.ToString(entry.AvailabilityZone)}
			if price, err := strconv.ParseFloat(aws.ToString(entry.SpotPrice), 64); err == nil && spot[pool] == 0 {
				spot[pool] = price
			}
		}
	}
	for i := range items {
		switch item := &items[i]; {
		case running(*item) == 0: // it costs no more than its volumes
		case item.CapacityType == karpv1.CapacityTypeSpot:
			item.PricePerHour = spot[[2]string{item.InstanceType, item.Zone}]
		default:
			item.PricePerHour, _ = tenon.BuiltinPrice(item.InstanceType)
		}
	}
}

func (a *Account) findTemplates(ctx context.Context, found *Found) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(a.ec2.DescribeLaunchTemplates, &ec2.DescribeLaunchTemplatesInput{Filters: a.ownFilters(), MaxResults: aws.Int32(200)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, template := range page.LaunchTemplates {
			item := Item{
				Kind: KindLaunchTemplate, ID: aws.ToString(template.LaunchTemplateId), Name: aws.ToString(template.LaunchTemplateName),
				Created: aws.ToTime(template.CreateTime).UTC(), Tags: a.ownership(ec2Tags(template.Tags)),
			}
			if item.Tags != nil {
				found.Items = append(found.Items, item)
			}
		}
	}
	return nil
}

// findProfiles reads the tags of those instance profiles of the account whose path or name could be the cluster's: those of
// Tenon and of today's Karpenter have a path of the cluster, and those of earlier ones a name that begins with the cluster's.
func (a *Account) findProfiles(ctx context.Context, found *Found) error {
	path, name := fmt.Sprintf("/karpenter/%s/%s/", a.region, a.cluster), a.cluster+"_"
	pages := iam.NewListInstanceProfilesPaginator(a.iam.ListInstanceProfiles, &iam.ListInstanceProfilesInput{MaxItems: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for i := range page.InstanceProfiles {
			listed := &page.InstanceProfiles[i]
			if !strings.HasPrefix(aws.ToString(listed.Path), path) && !strings.HasPrefix(aws.ToString(listed.InstanceProfileName), name) {
				continue
			}
			profile, err := a.profile(ctx, aws.ToString(listed.InstanceProfileName))
			if err != nil {
				return err
			}
			if profile == nil || a.profileTags(profile) == nil {
				continue // it is gone by now, or somebody else's
			}
			found.Items = append(found.Items, Item{
				Kind: KindInstanceProfile, ID: aws.ToString(profile.InstanceProfileName), Name: aws.ToString(profile.Path) + aws.ToString(profile.InstanceProfileName),
				Created: aws.ToTime(profile.CreateDate).UTC(), Tags: a.profileTags(profile),
			})
		}
	}
	return nil
}

// profile reads an instance profile. It returns nil if there is none of this name.
func (a *Account) profile(ctx context.Context, name string) (*iamtypes.InstanceProfile, error) {
	out, err := a.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if hasCode(err, "NoSuchEntity") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.InstanceProfile, nil
}

// profileTags returns the tags that make an instance profile the cluster's, as key=value, or nil if it is not.
func (a *Account) profileTags(profile *iamtypes.InstanceProfile) []string {
	tags := make(map[string]string, len(profile.Tags))
	for _, tag := range profile.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	own := a.ownership(tags)
	if own == nil || tags[regionTag] != a.region {
		return nil
	}
	return append(own, regionTag+"="+a.region)
}

// findRules reads the tags of the rules whose names begin with the cluster's, as those of deploy/terraform/interruption do.
func (a *Account) findRules(ctx context.Context, found *Found) error {
	in := &eventbridge.ListRulesInput{NamePrefix: aws.String(a.cluster + "-")}
	if len(*in.NamePrefix) > maxRuleName {
		return nil
	}
	for {
		page, err := a.events.ListRules(ctx, in)
		if err != nil {
			return err
		}
		for _, rule := range page.Rules {
			out, err := a.events.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: rule.Arn})
			if hasCode(err, "ResourceNotFoundException") {
				continue
			}
			if err != nil {
				return err
			}
			tags := map[string]string{}
			for _, tag := range out.Tags {
				tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
			name := aws.ToString(rule.Name)
			if tags[ClusterTag] == a.cluster {
				found.Items = append(found.Items, Item{Kind: KindRule, ID: name, Tags: []string{ClusterTag + "=" + a.cluster}})
			} else if _, other := tags[ClusterTag]; !other && slices.Contains(ruleNames, strings.TrimPrefix(name, a.cluster+"-")) {
				found.Untagged = append(found.Untagged, string(KindRule)+" "+name)
			}
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			return nil
		}
	}
}

// ruleNames are the names of the rules of deploy/terraform/interruption, without the cluster's name.
var ruleNames = []string{"spot-interruption", "rebalance-recommendation", "reservation-interruption", "state-change", "scheduled-change"}

// findQueues reads the tags of the queues whose names begin with the cluster's.
func (a *Account) findQueues(ctx context.Context, found *Found) error {
	if len(a.cluster) > maxQueueName {
		return nil
	}
	pages := sqs.NewListQueuesPaginator(a.sqs, &sqs.ListQueuesInput{QueueNamePrefix: &a.cluster, MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, url := range page.QueueUrls {
			tags, err := a.queueTags(ctx, url)
			if err != nil {
				return err
			}
			if tags == nil {
				continue // SQS lists a deleted queue for up to a minute
			}
			name := url[strings.LastIndexByte(url, '/')+1:]
			switch of, tagged := tags[ClusterTag]; {
			case of == a.cluster:
				found.Items = append(found.Items, Item{Kind: KindQueue, ID: url, Name: name, Tags: []string{ClusterTag + "=" + of}})
			case !tagged && name == a.cluster:
				found.Untagged = append(found.Untagged, string(KindQueue)+" "+name)
			}
		}
	}
	return nil
}

// queueTags returns the tags of a queue, or nil if there is no such queue.
func (a *Account) queueTags(ctx context.Context, url string) (map[string]string, error) {
	out, err := a.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &url})
	if hasCode(err, missingQueue...) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if out.Tags == nil {
		return map[string]string{}, nil
	}
	return out.Tags, nil
}

// missingQueue are the codes with which SQS says that there is no such queue.
var missingQueue = []string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
