package ec2sim_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// TestRules makes, lists, tags and deletes rules as their README and tenon cleanup do.
func TestRules(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	client := eventbridge.NewFromConfig(a.cfg)
	name, pattern := aws.String("blue-state-change"), aws.String(`{"source": ["aws.ec2"]}`)
	_, err := client.ListTargetsByRule(ctx(t), &eventbridge.ListTargetsByRuleInput{Rule: name})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = client.PutRule(ctx(t), &eventbridge.PutRuleInput{Name: aws.String("with space"), EventPattern: pattern})
	wantCode(t, err, "ValidationException")
	made, err := client.PutRule(ctx(t), &eventbridge.PutRuleInput{Name: name, EventPattern: pattern, Tags: []eventtypes.Tag{{Key: aws.String("a"), Value: aws.String("1")}}})
	if err != nil || *made.RuleArn != "arn:aws:events:us-east-1:123456789012:rule/blue-state-change" {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := client.TagResource(ctx(t), &eventbridge.TagResourceInput{ResourceARN: made.RuleArn, Tags: []eventtypes.Tag{{Key: aws.String("b"), Value: aws.String("2")}}}); err != nil {
		t.Fatal(err)
	}
	// "If you are updating an existing rule, any tags you specify in the PutRule operation are ignored" (API reference).
	if _, err := client.PutRule(ctx(t), &eventbridge.PutRuleInput{Name: name, EventPattern: pattern, Tags: []eventtypes.Tag{{Key: aws.String("c"), Value: aws.String("3")}}}); err != nil {
		t.Fatal(err)
	}
	tags, err := client.ListTagsForResource(ctx(t), &eventbridge.ListTagsForResourceInput{ResourceARN: made.RuleArn})
	if err != nil || len(tags.Tags) != 2 || *tags.Tags[0].Key+*tags.Tags[1].Value != "a2" {
		t.Errorf("tags %+v, %v", tags, err)
	}
	targets := []eventtypes.Target{{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:blue")}, {Id: aws.String("r"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:red")}}
	if _, err := client.PutTargets(ctx(t), &eventbridge.PutTargetsInput{Rule: name, Targets: targets}); err != nil {
		t.Fatal(err)
	}
	_, err = client.DeleteRule(ctx(t), &eventbridge.DeleteRuleInput{Name: name})
	wantCode(t, err, "ValidationException")
	listed, err := client.ListTargetsByRule(ctx(t), &eventbridge.ListTargetsByRuleInput{Rule: name})
	if err != nil || len(listed.Targets) != 2 || *listed.Targets[1].Arn != *targets[1].Arn {
		t.Errorf("targets %+v, %v", listed, err)
	}
	if _, err := client.RemoveTargets(ctx(t), &eventbridge.RemoveTargetsInput{Rule: name, Ids: []string{"q", "r", "none"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.DeleteRule(ctx(t), &eventbridge.DeleteRuleInput{Name: name}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if _, err := client.PutRule(ctx(t), &eventbridge.PutRuleInput{Name: aws.String(fmt.Sprint("page-", n)), EventPattern: pattern}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for in := (&eventbridge.ListRulesInput{NamePrefix: aws.String("page-"), Limit: aws.Int32(2)}); ; {
		page, err := client.ListRules(ctx(t), in)
		if err != nil || len(page.Rules) > 2 {
			t.Fatalf("%+v, %v", page, err)
		}
		for _, rule := range page.Rules {
			names = append(names, *rule.Name)
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			break
		}
	}
	if want := []string{"page-0", "page-1", "page-2", "page-3", "page-4"}; !slices.Equal(names, want) {
		t.Errorf("rules %v, want %v", names, want)
	}
	_, err = client.ListRules(ctx(t), &eventbridge.ListRulesInput{EventBusName: aws.String("partners")})
	wantCode(t, err, "ResourceNotFoundException")
}

// TestQueueTagsAndPages uses both of SQS's protocols.
func TestQueueTagsAndPages(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	client := a.sqs()
	var urls []string
	for _, name := range []string{"blue", "blue-two", "blue-three", "red"} {
		made, err := client.CreateQueue(ctx(t), &sqs.CreateQueueInput{QueueName: &name, Tags: map[string]string{"cluster": name}})
		if err != nil {
			t.Fatal(err)
		}
		urls = append(urls, *made.QueueUrl)
	}
	var listed []string
	for pages := sqs.NewListQueuesPaginator(client, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("blue"), MaxResults: aws.Int32(2)}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx(t))
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page.QueueUrls...)
	}
	if want := []string{urls[0], urls[2], urls[1]}; !slices.Equal(listed, want) {
		t.Errorf("queues %v, want %v", listed, want)
	}
	if _, err := client.TagQueue(ctx(t), &sqs.TagQueueInput{QueueUrl: &urls[0], Tags: map[string]string{"team": "a"}}); err != nil {
		t.Fatal(err)
	}
	tagged := func(at string) map[string]string {
		t.Helper()
		out, err := client.ListQueueTags(ctx(t), &sqs.ListQueueTagsInput{QueueUrl: &at})
		if err != nil {
			t.Fatal(err)
		}
		return out.Tags
	}
	if diff := cmp.Diff(map[string]string{"cluster": "blue", "team": "a"}, tagged(urls[0])); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	for _, form := range []url.Values{
		{"Action": {"TagQueue"}, "QueueUrl": {urls[1]}, "Tag.1.Key": {"team"}, "Tag.1.Value": {"b"}},
		{"Action": {"ListQueueTags"}, "QueueUrl": {urls[1]}},
		{"Action": {"ListQueues"}, "QueueNamePrefix": {"blue"}, "MaxResults": {"1"}},
		{"Action": {"DeleteQueue"}, "QueueUrl": {urls[0]}},
	} {
		if status, out := a.query(t, "/", form); status != http.StatusOK {
			t.Errorf("%s was refused: %+v", form.Get("Action"), out.Error)
		}
	}
	if diff := cmp.Diff(map[string]string{"cluster": "blue-two", "team": "b"}, tagged(urls[1])); diff != "" {
		t.Errorf("tags by the query protocol (-want +got):\n%s", diff)
	}
	_, err := client.ListQueueTags(ctx(t), &sqs.ListQueueTagsInput{QueueUrl: &urls[0]})
	wantCode(t, err, "AWS.SimpleQueueService.NonExistentQueue")
}
