package clients

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/lab/labtest"
)

// deleted is a cluster that EKS no longer knows. The name of its neighbour begins with its own.
const deleted, neighbour = "red", "red-two"

// populate lets the CLI make what a cluster has: an instance with an instance profile, a launch template, and a queue and a
// rule as deploy/terraform/interruption's README makes them.
func (a account) populate(t *testing.T, name string) {
	t.Helper()
	tags := fmt.Sprintf("[{Key=kubernetes.io/cluster/%s,Value=owned},{Key=karpenter.k8s.aws/ec2nodeclass,Value=default},{Key=topology.kubernetes.io/region,Value=us-east-1}]", name)
	a.aws(t, nil, "iam", "create-instance-profile", "--instance-profile-name", name+"_1", "--path", "/karpenter/us-east-1/"+name+"/uid/", "--tags",
		"Key=kubernetes.io/cluster/"+name+",Value=owned", "Key=karpenter.k8s.aws/ec2nodeclass,Value=default", "Key=topology.kubernetes.io/region,Value=us-east-1")
	a.aws(t, nil, "iam", "add-role-to-instance-profile", "--instance-profile-name", name+"_1", "--role-name", "node")
	image := a.parameter(t, "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")
	a.aws(t, nil, "ec2", "create-launch-template", "--launch-template-name", "tenon.sh/"+name, "--launch-template-data", fmt.Sprintf(`{"ImageId": %q}`, image),
		"--tag-specifications", "ResourceType=launch-template,Tags="+tags)
	a.aws(t, nil, "ec2", "run-instances", "--image-id", image, "--instance-type", "c5.large", "--subnet-id", "subnet-0a5e7e0000000001",
		"--iam-instance-profile", "Name="+name+"_1", "--tag-specifications", "ResourceType=instance,Tags="+tags)
	a.aws(t, nil, "sqs", "create-queue", "--queue-name", name+"-q", "--tags", "tenon.sh/cluster="+name)
	a.aws(t, nil, "events", "put-rule", "--name", name+"-state-change", "--event-pattern", `{"source":["aws.ec2"]}`, "--tags", "Key=tenon.sh/cluster,Value="+name)
	a.aws(t, nil, "events", "put-targets", "--rule", name+"-state-change", "--targets", "Id=interruption-queue,Arn=arn:aws:sqs:us-east-1:123456789012:"+name+"-q")
}

// sight is what the CLI sees of the whole account.
func (a account) sight(t *testing.T) []string {
	t.Helper()
	var all []string
	for command, query := range map[string]string{
		"ec2 describe-instances --filters Name=instance-state-name,Values=pending,running,stopping,stopped,shutting-down": "Reservations[].Instances[].[InstanceId, IamInstanceProfile.Arn]",
		"ec2 describe-launch-templates": "LaunchTemplates[].[LaunchTemplateName]",
		"iam list-instance-profiles":    "InstanceProfiles[].[InstanceProfileName, Roles[0].RoleName]",
		"events list-rules":             "Rules[].[Name, State]",
		"sqs list-queues":               "QueueUrls[].[@]",
	} {
		var rows [][]string
		a.aws(t, &rows, append(words(command), "--query", query)...)
		for _, row := range rows {
			all = append(all, strings.Join(row, " "))
		}
	}
	var targets []string
	a.aws(t, &targets, "events", "list-targets-by-rule", "--rule", neighbour+"-state-change", "--query", "Targets[].Id")
	var tags map[string]string
	a.aws(t, &tags, "sqs", "list-queue-tags", "--queue-url", a.sim.URL()+"/123456789012/"+neighbour+"-q", "--query", "Tags")
	all = append(all, fmt.Sprint(neighbour, " has the targets ", targets, " and the tags ", tags))
	slices.Sort(all)
	return all
}

// TestTenonCleanup: after tenon cleanup, the CLI sees nothing of the deleted cluster and everything of its neighbour.
func TestTenonCleanup(t *testing.T) {
	t.Parallel()
	tenon := labtest.Build(t, t.TempDir())
	// Tenon compares what is there with its own clock.
	a := start(t, ec2sim.Options{PendingFor: time.Millisecond, ShuttingDownFor: time.Millisecond, Now: time.Now})
	a.populate(t, neighbour)
	before := a.sight(t)
	a.populate(t, deleted)
	cleanup := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, tenon, append([]string{"cleanup", "--region", "us-east-1"}, args...)...)
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "AWS_EC2_METADATA_DISABLED=true", "AWS_ENDPOINT_URL=" + a.sim.URL(),
			"AWS_ACCESS_KEY_ID=nobody", "AWS_SECRET_ACCESS_KEY=secret"}
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := cleanup("--cluster", deleted, "--yes"); err == nil || !strings.Contains(out, "so a worker may still be running") {
		t.Errorf("what was made a minute ago can be removed without more ado: %v\n%s", err, out)
	}
	if out, _ := cleanup("--cluster", cluster, "--yes"); !strings.Contains(out, "EKS has a cluster "+cluster) {
		t.Errorf("it does not say that a cluster exists:\n%s", out)
	}
	out, err := cleanup("--cluster", deleted, "--yes", "--even-if-the-cluster-exists")
	if err != nil || !strings.Contains(out, "5 of 5 removed") {
		t.Errorf("cleanup: %v\n%s", err, out)
	}
	if diff := cmp.Diff(before, a.sight(t)); diff != "" {
		t.Errorf("what the CLI sees (-before +after):\n%s", diff)
	}
	if out, err := cleanup("--cluster", deleted, "--yes"); err != nil || !strings.Contains(out, "nothing is left") {
		t.Errorf("a second run: %v\n%s", err, out)
	}
}
