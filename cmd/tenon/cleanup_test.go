package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// cleanupLab is a simulated account in which the cluster "blue" has left a launch template and a queue, and the EKS cluster
// of another name lives.
type cleanupLab struct {
	*testing.T
	sim *ec2sim.Server
	cfg aws.Config
	now time.Time
}

func newCleanupLab(t *testing.T, eksCluster string) *cleanupLab {
	t.Helper()
	l := &cleanupLab{T: t, now: time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)}
	sim, err := ec2sim.New(ec2sim.Options{Cluster: eksCluster, Now: func() time.Time { return l.now }, Queues: []string{"green"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sim.Close(); err != nil {
			t.Errorf("close the simulator: %v", err)
		}
	})
	l.sim = sim
	l.cfg = aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: ec2sim.Once}
	tags := []types.Tag{{Key: aws.String("kubernetes.io/cluster/blue"), Value: aws.String("owned")}, {Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String("default")}}
	if _, err := ec2.NewFromConfig(l.cfg).CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("tenon.sh/1"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Large}, TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tags}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := sqs.NewFromConfig(l.cfg).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("blue"), Tags: map[string]string{cleanup.ClusterTag: "blue"}}); err != nil {
		t.Fatal(err)
	}
	l.now = l.now.Add(2 * time.Hour)
	return l
}

// left returns how many things of the cluster's are in the account.
func (l *cleanupLab) left() int {
	l.Helper()
	found, err := cleanup.New(l.cfg, "blue").Find(l.Context(), func(string, int, int) {})
	if err != nil {
		l.Fatal(err)
	}
	return len(found.Items)
}

// run runs the command with an answer typed at a terminal, if it is not empty.
func (l *cleanupLab) run(flags cleanupFlags, answer string) (stdout, stderr string, err error) {
	l.Helper()
	flags.cluster = "blue"
	var out, notes bytes.Buffer
	c := &cleaner{flags: flags, account: cleanup.New(l.cfg, "blue"), in: strings.NewReader(answer), terminal: answer != "", out: &out, progress: &notes,
		now: func() time.Time { return l.now }}
	err = c.run(l.Context())
	return out.String(), notes.String(), err
}

// TestCleanupAsksFirst says what it takes to remove something.
func TestCleanupAsksFirst(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		flags  cleanupFlags
		answer string
		eks    string
		young  bool
		want   string // in the error; empty: everything is removed
	}{
		"the cluster's name at a terminal":         {answer: "blue\n"},
		"another answer":                           {answer: "yes\n", want: "the answer is not the cluster's name"},
		"the end of the input":                     {answer: " ", want: "the answer is not the cluster's name"},
		"without a terminal":                       {want: "give --yes to remove, or --dry-run to list only"},
		"a script":                                 {flags: cleanupFlags{yes: true}},
		"a cluster that exists":                    {flags: cleanupFlags{yes: true}, eks: "blue", want: "EKS has a cluster blue in us-east-1, which is ACTIVE"},
		"a cluster that exists, and a terminal":    {answer: "blue\n", eks: "blue", want: "--even-if-the-cluster-exists"},
		"a cluster that exists, on purpose":        {flags: cleanupFlags{yes: true, evenIf: true}, eks: "blue"},
		"the purpose alone does not remove":        {flags: cleanupFlags{evenIf: true}, eks: "blue", want: "there is no terminal to ask at"},
		"something that was made lately":           {flags: cleanupFlags{yes: true}, young: true, want: "so a worker may still be running"},
		"something that was made lately, accepted": {flags: cleanupFlags{yes: true, evenIf: true}, young: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			eks := test.eks
			if eks == "" {
				eks = "green"
			}
			l := newCleanupLab(t, eks)
			if test.young {
				l.now = l.now.Add(-90 * time.Minute)
			}
			out, notes, err := l.run(test.flags, test.answer)
			left := 0
			if test.want != "" {
				left = 2
			}
			if got := l.left(); got != left || (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%d things are left, want %d; %v, want %q", got, left, err, test.want)
			}
			if asked := strings.Contains(notes, "Remove these 2 things?"); asked != (test.answer != "" && eks == "green") {
				t.Errorf("asked: %v\n%s", asked, notes)
			}
			if !strings.Contains(out, "1 launch template, 1 SQS queue") || (test.want == "") != strings.Contains(out, "2 of 2 removed") {
				t.Errorf("the output is\n%s", out)
			}
		})
	}
}

// TestCleanupDryRun lists, in both formats, and removes nothing.
func TestCleanupDryRun(t *testing.T) {
	t.Parallel()
	l := newCleanupLab(t, "blue")
	out, _, err := l.run(cleanupFlags{dryRun: true}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"blue in us-east-1: 1 launch template, 1 SQS queue", "LAUNCH TEMPLATES", "tenon.sh/1", "120m", "SQS QUEUES",
		"kubernetes.io/cluster/blue=owned karpenter.k8s.aws/ec2nodeclass=default", "tenon.sh/cluster=blue", "WARNING: EKS has a cluster blue"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	out, _, err = l.run(cleanupFlags{dryRun: true, output: "json"}, "")
	var report cleanupReport
	if err != nil || json.Unmarshal([]byte(out), &report) != nil {
		t.Fatalf("%v, %s", err, out)
	}
	if len(report.Items) != 2 || report.Status != "ACTIVE" || len(report.Warnings) != 1 || report.Removed != 0 || report.Items[0].Name != "tenon.sh/1" {
		t.Errorf("the report is %s", out)
	}
	if l.left() != 2 {
		t.Error("a dry run removed something")
	}
}

// TestCleanupNamesWhatRemains cannot delete the queue.
func TestCleanupNamesWhatRemains(t *testing.T) {
	t.Parallel()
	l := newCleanupLab(t, "green")
	if err := l.sim.SetFaults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "DeleteQueue", Code: "AccessDenied", Message: "no"}}}); err != nil {
		t.Fatal(err)
	}
	out, _, err := l.run(cleanupFlags{yes: true}, "")
	if err == nil || !strings.Contains(err.Error(), "1 of 2 could not be removed") || !strings.Contains(out, "REMAINS: SQS queue") || l.left() != 1 {
		t.Errorf("%v\n%s", err, out)
	}
	if err := l.sim.SetFaults(ec2sim.Faults{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err = l.run(cleanupFlags{yes: true}, ""); err != nil || l.left() != 0 {
		t.Errorf("a second run: %v", err)
	}
	out, _, err = l.run(cleanupFlags{}, "")
	if err != nil || out != "blue in us-east-1: nothing is left\n" {
		t.Errorf("a third run: %v\n%s", err, out)
	}
}

// TestCleanupFlags: each mistake is named with its flag.
func TestCleanupFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"--cluster":                       {},
		"--yes and --dry-run":             {"--cluster", "blue", "--yes", "--dry-run"},
		"--output \"yaml\": must be json": {"--cluster", "blue", "-o", "yaml"},
	} {
		if _, _, err := tenon(t, "", append([]string{"cleanup"}, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("cleanup %v: %v, want %q", args, err, want)
		}
	}
}
