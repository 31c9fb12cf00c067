package deploy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// rules returns the event patterns of the EventBridge rules, by name.
func rules(t *testing.T) map[string]map[string]any {
	t.Helper()
	data, err := os.ReadFile("terraform/interruption/events.json")
	if err != nil {
		t.Fatal(err)
	}
	var patterns map[string]map[string]any
	if err := json.Unmarshal(data, &patterns); err != nil {
		t.Fatal(err)
	}
	return patterns
}

// passes reports whether an event matches a pattern, as EventBridge decides it: every field of the pattern must be there
// with one of the values listed.
func passes(pattern, event map[string]any) bool {
	for field, want := range pattern {
		switch want := want.(type) {
		case map[string]any:
			nested, ok := event[field].(map[string]any)
			if !ok || !passes(want, nested) {
				return false
			}
		case []any:
			if !slices.Contains(want, event[field]) {
				return false
			}
		}
	}
	return true
}

// TestRulesDeliverWhatTheWorkerUnderstands sends every kind of announcement: the rules must deliver to the queue exactly
// what the worker acts upon.
func TestRulesDeliverWhatTheWorkerUnderstands(t *testing.T) {
	t.Parallel()
	sim, err := ec2sim.New(ec2sim.Options{Queues: []string{"raw", "worker"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	cfg := awssdk.Config{Region: "us-east-1", BaseEndpoint: awssdk.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")}
	provider, err := aws.NewFromConfig(cfg, aws.Options{Cluster: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	patterns := rules(t)
	used := map[string]bool{}
	for _, event := range []string{"spot-interruption", "rebalance-recommendation", "reservation-interruption", "scheduled-change",
		"pending", "running", "stopping", "stopped", "shutting-down", "terminated"} {
		if err := sim.Announce(event, "i-1"); err != nil {
			t.Fatal(err)
		}
		raw, err := sqs.NewFromConfig(cfg).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: awssdk.String(sim.URL() + "/1/raw")})
		if err != nil || len(raw.Messages) != 1 {
			t.Fatalf("%s: %v", event, err)
		}
		notices, err := provider.Interruptions("worker").Receive(t.Context())
		if err != nil || len(notices) != 1 {
			t.Fatalf("%s: %d notices, %v", event, len(notices), err)
		}
		var content map[string]any
		if err := json.Unmarshal([]byte(*raw.Messages[0].Body), &content); err != nil {
			t.Fatal(err)
		}
		var by []string
		for name, pattern := range patterns {
			if passes(pattern, content) {
				by, used[name] = append(by, name), true
			}
		}
		if understood := notices[0].Kind != ""; understood != (len(by) == 1) || len(by) > 1 {
			t.Errorf("%s is delivered by %v; the worker understands it: %v", event, by, understood)
		}
	}
	for name := range patterns {
		if !used[name] {
			t.Errorf("rule %s delivers nothing", name)
		}
	}
}

func TestQueueIsForTheRulesOnly(t *testing.T) {
	t.Parallel()
	var allowed, denied int
	for _, s := range readDocument(t, "terraform/interruption/queue-policy.json").Statement {
		if !slices.Equal(s.Resource, []string{"arn:${AWS_PARTITION}:sqs:${AWS_REGION}:${AWS_ACCOUNT_ID}:${CLUSTER_NAME}"}) {
			t.Errorf("%s is about %v, want the cluster's queue", s.Sid, s.Resource)
		}
		switch s.Effect {
		case "Allow":
			allowed++
			if !slices.Equal(s.Action, []string{"sqs:SendMessage"}) || !slices.Equal(s.Principal["Service"], []string{"events.amazonaws.com"}) ||
				!slices.Equal(s.Condition["ArnLike"]["aws:SourceArn"], []string{"arn:${AWS_PARTITION}:events:${AWS_REGION}:${AWS_ACCOUNT_ID}:rule/${CLUSTER_NAME}-*"}) {
				t.Errorf("%s allows more than the rules to send: %+v", s.Sid, s)
			}
		case "Deny":
			denied++
			if !slices.Equal(s.Condition["Bool"]["aws:SecureTransport"], []string{"false"}) {
				t.Errorf("%s denies something else than unencrypted calls: %+v", s.Sid, s)
			}
		}
	}
	if allowed != 1 || denied != 1 {
		t.Errorf("%d statements allow and %d deny, want one each", allowed, denied)
	}
}

// TestTerraformUsesTheDocuments checks that the module uses the documents that the tests above check, and a queue and rules
// that fit the worker's policy and the queue's own.
func TestTerraformUsesTheDocuments(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("terraform/interruption/main.tf")
	if err != nil {
		t.Fatal(err)
	}
	module := regexp.MustCompile(`[ \t]+`).ReplaceAllString(string(data), " ")
	for _, line := range []string{
		`events = jsondecode(file("${path.module}/events.json"))`, `policy = templatefile("${path.module}/queue-policy.json", {`,
		`event_pattern = jsonencode(each.value)`, `name = var.cluster_name`, `message_retention_seconds = 3600`, `name = "${var.cluster_name}-${each.key}"`, `tags = merge(var.tags, { "` + cleanup.ClusterTag + `" = var.cluster_name })`, `arn = aws_sqs_queue.interruption.arn`,
	} {
		if !strings.Contains(module, line) {
			t.Errorf("main.tf does not say %s", line)
		}
	}
	if n := strings.Count(module, " tags = local.tags\n"); n != 2 {
		t.Errorf("%d resources of main.tf have the cluster's tag, want the queue and the rules", n)
	}
	readme, err := os.ReadFile("terraform/interruption/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tags := range []string{`--tags "` + cleanup.ClusterTag + `=$CLUSTER_NAME"`, `--tags "Key=` + cleanup.ClusterTag + `,Value=$CLUSTER_NAME"`} {
		if !strings.Contains(string(readme), tags) {
			t.Errorf("README.md makes a queue or a rule without %s", tags)
		}
	}
	policy, err := os.ReadFile("terraform/interruption/queue-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, placeholder := range regexp.MustCompile(`\$\{(\w+)\}`).FindAllStringSubmatch(string(policy), -1) {
		if !strings.Contains(module, " "+placeholder[1]+" = ") {
			t.Errorf("main.tf does not fill in %s", placeholder[0])
		}
	}
	for name := range rules(t) {
		if rule := fmt.Sprintf("%038d-%s", 0, name); len(rule) > 64 {
			t.Errorf("a cluster's name of 38 characters makes rule %s %d characters long, EventBridge takes 64", name, len(rule))
		}
	}
}
