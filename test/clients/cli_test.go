package clients

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/catalogue"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// Exit codes of the AWS CLI ("Understand return codes from the AWS CLI", AWS CLI User Guide).
const (
	commandWrong   = 252 // the client refused the command
	serviceRefused = 254
)

// aws runs the CLI against the account, and decodes its answer into a value unless that is nil.
func (a account) aws(t *testing.T, into any, args ...string) {
	t.Helper()
	stdout, stderr, exit := run(t, "nobody", awsCLI, a.arguments(args)...)
	if exit != 0 {
		t.Fatalf("aws %v ended with %d: %s", args, exit, stderr)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(stdout, into); err != nil {
		t.Fatalf("aws %v printed %s: %v", args, stdout, err)
	}
}

func (a account) arguments(args []string) []string {
	return append([]string{"--endpoint-url", a.sim.URL(), "--output", "json"}, args...)
}

func words(line string) []string { return strings.Fields(line) }

// TestCLIReads lets the CLI print what exists from the start, and picks from the answer with --query.
func TestCLIReads(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	sold, err := catalogue.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	const image = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/image_id"
	for why, c := range map[string]struct {
		args  string
		query string
		want  any
	}{
		"all pages together": {args: "ec2 describe-instance-types --page-size 100", query: "length(InstanceTypes)", want: len(sold.Types())},
		"a page of the client's own, with a token for the next": {
			args: "ec2 describe-instance-types --page-size 100 --max-items 150", query: "[length(InstanceTypes), type(NextToken)]", want: []any{150, "string"},
		},
		"a type, and another that has accelerators": {
			args:  "ec2 describe-instance-types --instance-types m5.large inf2.xlarge",
			query: "InstanceTypes[].[InstanceType, VCpuInfo.DefaultVCpus, MemoryInfo.SizeInMiB, InferenceAcceleratorInfo.Accelerators[0].Count]",
			want:  []any{[]any{"inf2.xlarge", 4, 16384, 1}, []any{"m5.large", 2, 8192, nil}},
		},
		"types by two filters": {
			args:  "ec2 describe-instance-types --filters Name=instance-type,Values=m5.* Name=vcpu-info.default-vcpus,Values=2",
			query: "InstanceTypes[].InstanceType", want: []any{"m5.large"},
		},
		"offerings": {
			args:  "ec2 describe-instance-type-offerings --location-type availability-zone --filters Name=instance-type,Values=m5.large",
			query: "sort_by(InstanceTypeOfferings, &Location)[].Location", want: []any{"us-east-1a", "us-east-1b", "us-east-1c"},
		},
		"images by filters": {
			args:  "ec2 describe-images --owners amazon --filters Name=image-id,Values=" + ec2sim.ImageID("none") + "," + a.parameter(t, image) + " Name=architecture,Values=arm64",
			query: "Images[].[ImageId, Architecture]", want: []any{[]any{a.parameter(t, image), "arm64"}},
		},
		"subnets by tag": {
			args:  "ec2 describe-subnets --filters Name=tag:karpenter.sh/discovery,Values=" + cluster,
			query: "sort_by(Subnets, &AvailabilityZone)[].[AvailabilityZone, AvailabilityZoneId]",
			want:  []any{[]any{"us-east-1a", "use1-az1"}, []any{"us-east-1b", "use1-az2"}, []any{"us-east-1c", "use1-az3"}},
		},
		"spot prices of a zone": {
			args:  "ec2 describe-spot-price-history --instance-types m5.large c5.large --product-descriptions Linux/UNIX --filters Name=availability-zone,Values=us-east-1b",
			query: "sort(SpotPriceHistory[].InstanceType)", want: []any{"c5.large", "m5.large"},
		},
		"no reservations": {args: "ec2 describe-capacity-reservations", query: "CapacityReservations", want: []any{}},
		"the cluster": {
			args: "eks describe-cluster --name " + cluster, query: "cluster.[name, status, endpoint]", want: []any{cluster, "ACTIVE", "https://api.blue.example"},
		},
		"prices": {
			args: "pricing get-products --service-code AmazonEC2 --filters Type=TERM_MATCH,Field=instanceType,Value=m5.large Type=TERM_MATCH,Field=regionCode,Value=us-east-1 " +
				"Type=TERM_MATCH,Field=operatingSystem,Value=Linux Type=TERM_MATCH,Field=tenancy,Value=Shared",
			query: "length(PriceList) > `0`", want: true,
		},
		"who calls": {args: "sts get-caller-identity", query: "Account", want: "123456789012"},
	} {
		var got any
		a.aws(t, &got, append(words(c.args), "--query", c.query)...)
		if diff := cmp.Diff(normal(t, c.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", why, diff)
		}
	}
}

// normal returns a value as it comes back from JSON.
func normal(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (a account) parameter(t *testing.T, name string) string {
	t.Helper()
	var value string
	a.aws(t, &value, "ssm", "get-parameter", "--name", name, "--query", "Parameter.Value")
	return value
}

// TestCLILaunches lets the CLI launch, tag and terminate instances, and compares what it prints with the account.
func TestCLILaunches(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{PendingFor: time.Millisecond, ShuttingDownFor: time.Millisecond})
	image := a.parameter(t, "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")
	subnet, group := "", ""
	a.aws(t, &subnet, "ec2", "describe-subnets", "--filters", "Name=availability-zone,Values=us-east-1b", "--query", "Subnets[0].SubnetId")
	a.aws(t, &group, "ec2", "describe-security-groups", "--filters", "Name=tag:karpenter.sh/discovery,Values="+cluster, "--query", "SecurityGroups[0].GroupId")
	a.aws(t, nil, "ec2", "create-launch-template", "--launch-template-name", "cli", "--launch-template-data",
		fmt.Sprintf(`{"ImageId": %q, "SecurityGroupIds": [%q]}`, image, group))
	a.control(t, "PUT", "faults", `{"capacity": [{"instanceType": "c5.*", "capacityType": "on-demand", "remaining": 2}]}`, nil)
	var fleet struct {
		Errors    []struct{ ErrorCode string }
		Instances []struct{ InstanceIDs []string }
	}
	a.aws(t, &fleet, "ec2", "create-fleet", "--type", "instant",
		"--launch-template-configs", fmt.Sprintf(`[{"LaunchTemplateSpecification": {"LaunchTemplateName": "cli", "Version": "$Default"},
			"Overrides": [{"InstanceType": "c5.large", "SubnetId": %q}]}]`, subnet),
		"--target-capacity-specification", "TotalTargetCapacity=3,DefaultTargetCapacityType=on-demand",
		"--tag-specifications", "ResourceType=instance,Tags=[{Key=group,Value=cli}]")
	if len(fleet.Errors) != 1 || fleet.Errors[0].ErrorCode != "InsufficientInstanceCapacity" || len(fleet.Instances) != 1 || len(fleet.Instances[0].InstanceIDs) != 2 {
		t.Fatalf("three were asked for with room for two: %+v", fleet)
	}
	ids := fleet.Instances[0].InstanceIDs
	a.aws(t, nil, append(words("ec2 wait instance-running --instance-ids"), ids...)...)
	a.aws(t, nil, append(append(words("ec2 create-tags --resources"), ids...), "--tags", "Key=team,Value=a b")...)

	var printed [][]string
	a.aws(t, &printed, append(words("ec2 describe-instances --page-size 5 --filters Name=tag:group,Values=cli Name=instance-state-name,Values=running"), "--query",
		"sort_by(Reservations[].Instances[], &InstanceId)[].[InstanceId, InstanceType, Placement.AvailabilityZone, PrivateDnsName, Tags[?Key=='team'].Value | [0]]")...)
	var want [][]string
	for id, i := range a.instances(t) {
		want = append(want, []string{id, i.Type, i.Zone, i.PrivateDNS, "a b"})
	}
	slices.SortFunc(want, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	if diff := cmp.Diff(want, printed); diff != "" {
		t.Errorf("instances (-account +printed):\n%s", diff)
	}

	dry := words("ec2 run-instances --dry-run --instance-type c5.large --launch-template LaunchTemplateName=cli --subnet-id " + subnet)
	if _, stderr, exit := run(t, "nobody", awsCLI, a.arguments(dry)...); exit != serviceRefused || !strings.Contains(stderr, "(DryRunOperation)") {
		t.Errorf("a dry run ended with %d: %s", exit, stderr)
	}
	var states [][]string
	a.aws(t, &states, append(append(words("ec2 terminate-instances --instance-ids"), ids...), "--query", "TerminatingInstances[].[PreviousState.Name, CurrentState.Name]")...)
	if diff := cmp.Diff([][]string{{"running", "shutting-down"}, {"running", "shutting-down"}}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	a.aws(t, nil, append(words("ec2 wait instance-terminated --instance-ids"), ids...)...)
	for id, i := range a.instances(t) {
		if i.State != "terminated" {
			t.Errorf("the CLI has waited for the end of %s, which is %s", id, i.State)
		}
	}
}

// TestCLIProfilesAndQueues lets the CLI create and delete an instance profile, and use a queue; Debian 12's CLI does so in
// SQS's query protocol.
func TestCLIProfilesAndQueues(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	a.aws(t, nil, words("iam create-instance-profile --instance-profile-name cli --path /tenon/ --tags Key=cluster,Value="+cluster)...)
	a.aws(t, nil, words("iam add-role-to-instance-profile --instance-profile-name cli --role-name node")...)
	a.aws(t, nil, words("iam wait instance-profile-exists --instance-profile-name cli")...)
	var profile []string
	a.aws(t, &profile, append(words("iam get-instance-profile --instance-profile-name cli"), "--query",
		"InstanceProfile.[Path, Roles[0].RoleName, Tags[0].Key, Tags[0].Value]")...)
	if diff := cmp.Diff([]string{"/tenon/", "node", "cluster", cluster}, profile); diff != "" {
		t.Errorf("profile (-want +got):\n%s", diff)
	}
	a.aws(t, nil, words("iam remove-role-from-instance-profile --instance-profile-name cli --role-name node")...)
	a.aws(t, nil, words("iam delete-instance-profile --instance-profile-name cli")...)

	var url string
	a.aws(t, &url, "sqs", "get-queue-url", "--queue-name", cluster, "--query", "QueueUrl")
	a.control(t, "POST", "event", `{"event": "scheduled-change", "instances": ["i-0123456789abcdef0"]}`, nil)
	a.aws(t, nil, "sqs", "send-message", "--queue-url", url, "--message-body", "<hello> & more")
	var messages []struct {
		Body, ReceiptHandle string
		Attributes          map[string]string
	}
	a.aws(t, &messages, "sqs", "receive-message", "--queue-url", url, "--max-number-of-messages", "10", "--wait-time-seconds", "1",
		"--attribute-names", "ApproximateReceiveCount", "--query", "Messages")
	if len(messages) != 2 || !strings.Contains(messages[0].Body, `"AWS Health Event"`) || messages[1].Body != "<hello> & more" ||
		messages[1].Attributes["ApproximateReceiveCount"] != "1" || len(messages[1].Attributes) != 1 {
		t.Fatalf("messages: %+v", messages)
	}
	a.aws(t, nil, "sqs", "delete-message", "--queue-url", url, "--receipt-handle", messages[0].ReceiptHandle)
	a.aws(t, nil, "sqs", "delete-message-batch", "--queue-url", url, "--entries", "Id=a,ReceiptHandle="+messages[1].ReceiptHandle)
	var left map[string]string
	a.aws(t, &left, "sqs", "get-queue-attributes", "--queue-url", url, "--attribute-names", "ApproximateNumberOfMessages",
		"ApproximateNumberOfMessagesNotVisible", "--query", "Attributes")
	if diff := cmp.Diff(map[string]string{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"}, left); diff != "" {
		t.Errorf("left in the queue (-want +got):\n%s", diff)
	}
}

// TestCLIIsRefused checks the message and the exit code with which the CLI reports a refusal.
func TestCLIIsRefused(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{})
	for why, c := range map[string]struct {
		key  string
		args string
		exit int
		says string
	}{
		"an instance that there is not": {
			key: "nobody", args: "ec2 describe-instances --instance-ids i-0123456789abcdef0", exit: serviceRefused,
			says: "An error occurred (InvalidInstanceID.NotFound) when calling the DescribeInstances operation",
		},
		"a filter that EC2 does not have": {
			key: "nobody", args: "ec2 describe-capacity-reservations --filters Name=capacity-reservation-id,Values=cr-1", exit: serviceRefused,
			says: "(InvalidParameterValue) when calling the DescribeCapacityReservations operation",
		},
		"no permission": {
			key: reader, args: "ec2 create-tags --resources subnet-0a5e7e0000000001 --tags Key=a,Value=b", exit: serviceRefused,
			says: "(UnauthorizedOperation) when calling the CreateTags operation",
		},
		"no permission of SQS, in the query protocol": {
			key: reader, args: "sqs send-message --queue-url http://x/0/" + cluster + " --message-body x", exit: serviceRefused, says: "(AccessDenied) when calling the SendMessage operation",
		},
		"a queue that there is not": {
			key: "nobody", args: "sqs get-queue-url --queue-name none", exit: serviceRefused, says: "(AWS.SimpleQueueService.NonExistentQueue) when calling the GetQueueUrl operation",
		},
		"no such profile":      {key: "nobody", args: "iam get-instance-profile --instance-profile-name none", exit: serviceRefused, says: "(NoSuchEntity)"},
		"no such cluster":      {key: "nobody", args: "eks describe-cluster --name none", exit: serviceRefused, says: "(ResourceNotFoundException)"},
		"no such parameter":    {key: "nobody", args: "ssm get-parameter --name /none", exit: serviceRefused, says: "(ParameterNotFound)"},
		"an option of nothing": {key: "nobody", args: "ec2 describe-instances --colour red", exit: commandWrong, says: "Unknown options: --colour"},
	} {
		_, stderr, exit := run(t, c.key, awsCLI, a.arguments(words(c.args))...)
		if exit != c.exit || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: ended with %d: %s", why, exit, stderr)
		}
	}
}

// TestCLINodeGroups lets the CLI make node groups, read what the simulator says of them, and scale one to zero.
func TestCLINodeGroups(t *testing.T) {
	t.Parallel()
	a := start(t, ec2sim.Options{PendingFor: time.Millisecond})
	a.aws(t, nil, "eks", "create-nodegroup", "--cluster-name", cluster, "--nodegroup-name", "web", "--subnets", "subnet-0a5e7e0000000001", "subnet-0a5e7e0000000002",
		"--node-role", "arn:aws:iam::123456789012:role/nodes", "--instance-types", "m5.large", "--scaling-config", "minSize=0,maxSize=4,desiredSize=3",
		"--labels", "team=shop", "--taints", "key=team,value=shop,effect=NO_SCHEDULE", "--update-config", "maxUnavailablePercentage=33")
	a.aws(t, nil, "eks", "wait", "nodegroup-active", "--cluster-name", cluster, "--nodegroup-name", "web")
	a.aws(t, nil, "ec2", "create-launch-template", "--launch-template-name", "own", "--launch-template-data", `{"InstanceType": "m5.large"}`)
	a.aws(t, nil, "autoscaling", "create-auto-scaling-group", "--auto-scaling-group-name", "own", "--min-size", "0", "--max-size", "2",
		"--vpc-zone-identifier", "subnet-0a5e7e0000000001", "--launch-template", "LaunchTemplateName=own,Version=1",
		"--tags", "Key=k8s.io/cluster-autoscaler/enabled,Value=true,PropagateAtLaunch=false")
	var names []string
	a.aws(t, &names, "eks", "list-nodegroups", "--cluster-name", cluster, "--query", "nodegroups")
	var group []any
	a.aws(t, &group, "eks", "describe-nodegroup", "--cluster-name", cluster, "--nodegroup-name", "web", "--query",
		"nodegroup.[status, amiType, instanceTypes[0], scalingConfig.maxSize, labels.team, taints[0].effect, updateConfig.maxUnavailablePercentage, diskSize]")
	want := []any{"ACTIVE", "AL2023_x86_64_STANDARD", "m5.large", 4.0, "shop", "NO_SCHEDULE", 33.0, 20.0}
	if diff := cmp.Diff([]string{"web"}, names) + cmp.Diff(want, group); diff != "" {
		t.Errorf("the node group (-want +got):\n%s", diff)
	}
	sizes := func() (sizes [][]float64) {
		a.aws(t, &sizes, "autoscaling", "describe-auto-scaling-groups", "--filters", "Name=tag-key,Values=k8s.io/cluster-autoscaler/enabled",
			"--query", "sort_by(AutoScalingGroups, &AutoScalingGroupName)[].[MinSize, DesiredCapacity, MaxSize]")
		return sizes
	}
	if diff := cmp.Diff([][]float64{{0, 3, 4}, {0, 0, 2}}, sizes()); diff != "" {
		t.Errorf("Auto Scaling groups (-want +got):\n%s", diff)
	}
	a.aws(t, nil, "eks", "update-nodegroup-config", "--cluster-name", cluster, "--nodegroup-name", "web", "--scaling-config", "minSize=0,maxSize=4,desiredSize=0")
	if diff := cmp.Diff([][]float64{{0, 0, 4}, {0, 0, 2}}, sizes()); diff != "" {
		t.Errorf("Auto Scaling groups after the update (-want +got):\n%s", diff)
	}
	var states []string
	a.aws(t, &states, "ec2", "describe-instances", "--filters", "Name=tag:eks:nodegroup-name,Values=web", "--query", "Reservations[].Instances[].State.Name")
	if len(states) != 3 || slices.Contains(states, "running") {
		t.Errorf("the instances of the group without nodes are %v", states)
	}
}
