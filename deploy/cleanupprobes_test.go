package deploy_test

import (
	"context"
	"fmt"
	"slices"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
)

// cleanupProbes are the calls of tenon cleanup, and what its permissions must not reach.
func cleanupProbes() []probe {
	list := []probe{
		needed("read instances", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstances)
		}),
		needed("read launch templates", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeLaunchTemplates)
		}),
		needed("read spot prices", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeSpotPriceHistory)
		}),
		forbidden("read another region", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.away.DescribeInstances)
		}),
		needed("read the cluster", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: awssdk.String("blue")})
			return err
		}),
		needed("find profiles", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.iam.ListInstanceProfiles)
		}),
		needed("read a profile", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: awssdk.String(n.profiles[""])})
			return err
		}),
		needed("find rules", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.events.ListRules)
		}),
		needed("find queues", func(ctx context.Context, _ *neighbourhood, p *principal) error { return ignore(ctx, p.sqs.ListQueues) }),
		needed("read the tags of a rule", func(ctx context.Context, n *neighbourhood, p *principal) error {
			arn := "arn:aws:events:us-east-1:123456789012:rule/" + n.rule("blue-", "blue")
			_, err := p.events.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &arn})
			return err
		}),
		needed("read the targets of a rule", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.events.ListTargetsByRule(ctx, &eventbridge.ListTargetsByRuleInput{Rule: awssdk.String(n.rule("blue-", "blue"))})
			return err
		}),
		needed("read the tags of a queue", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.sqs.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: queueURL(n.url, "blue")})
			return err
		}),
		needed("take a role out of a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.stripProfile(p, n.profiles[""])
		}),
		needed("delete a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.deleteProfile(p, n.profiles[""])
		}),
		forbidden("make an instance profile", func(_ context.Context, n *neighbourhood, p *principal) error { return n.makeProfile(p, ownTags()) }),
		forbidden("launch", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "lacks/", "on-demand", ownTags())
		}),
	}
	for what, of := range map[string]struct {
		prefix, tag string
		allowed     bool
	}{
		"the cluster's": {"blue-", "blue", true}, "without a tag": {"blue-", "", false}, "another cluster's": {"blue-", "blue-two", false},
	} {
		list = append(list,
			probe{"remove the targets of a rule " + what, of.allowed, func(ctx context.Context, n *neighbourhood, p *principal) error {
				_, err := p.events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: awssdk.String(n.rule(of.prefix, of.tag)), Ids: []string{"none"}})
				return err
			}},
			probe{"delete a rule " + what, of.allowed, func(ctx context.Context, n *neighbourhood, p *principal) error {
				_, err := p.events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: awssdk.String(n.rule(of.prefix, of.tag))})
				return err
			}},
			probe{"delete a queue " + what, of.allowed, func(ctx context.Context, n *neighbourhood, p *principal) error {
				_, err := p.sqs.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: queueURL(n.url, n.queue(of.prefix, of.tag))})
				return err
			}})
	}
	for _, lacks := range []string{clusterTag, classTag, regionTag} {
		list = append(list,
			forbidden("strip a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.stripProfile(p, n.profiles[lacks])
			}),
			forbidden("delete a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.deleteProfile(p, n.profiles[lacks])
			}))
	}
	return slices.Concat(list, removalProbes())
}

// tagOf returns the tag of a cluster's queue and rules; none for "".
func tagOf(cluster string) map[string]string {
	if cluster == "" {
		return nil
	}
	return map[string]string{cleanup.ClusterTag: cluster}
}

// rule makes a rule, whose name begins with prefix, and returns the name.
func (n *neighbourhood) rule(prefix, cluster string) string {
	n.t.Helper()
	name := fmt.Sprintf("%srule-%d", prefix, n.made.Add(1))
	in := &eventbridge.PutRuleInput{Name: &name, EventPattern: awssdk.String(`{"source": ["aws.ec2"]}`)}
	for key, value := range tagOf(cluster) {
		in.Tags = append(in.Tags, eventtypes.Tag{Key: &key, Value: &value})
	}
	_, err := n.admin.events.PutRule(n.t.Context(), in)
	n.must(err)
	return name
}

// queue makes a queue, whose name begins with prefix, and returns the name.
func (n *neighbourhood) queue(prefix, cluster string) string {
	n.t.Helper()
	name := fmt.Sprintf("%squeue-%d", prefix, n.made.Add(1))
	_, err := n.admin.sqs.CreateQueue(n.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Tags: tagOf(cluster)})
	n.must(err)
	return name
}
