package aws_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/cloudtest"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
)

// account is a simulated AWS account with a provider for it and a clock that both use.
type account struct {
	t        testing.TB
	sim      *ec2sim.Server
	provider *aws.Provider
	ec2      *ec2.Client
	region   string

	mu  sync.Mutex
	now time.Time
}

// newAccount returns an account with a dozen instance types, so that tests do not wait for hundreds.
func newAccount(t testing.TB) *account { return newAccountWith(t, "testdata/catalogue.json") }

// newAccountWith returns an account with the instance types of a catalogue file, or the simulator's own if it is empty.
func newAccountWith(t testing.TB, catalogue string) *account {
	t.Helper()
	return startAccount(t, ec2sim.Options{CatalogueFile: catalogue})
}

// startAccount returns an account with these options, except for the cluster, the clock, the queues and the policies.
func startAccount(t testing.TB, options ec2sim.Options) *account {
	t.Helper()
	a := &account{t: t, now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	options.Cluster, options.Now, options.Queues = "blue", a.Now, []string{"blue"}
	if options.Region == "" {
		options.Region = "us-east-1"
	}
	a.region = options.Region
	options.Policies = ec2sim.Policies{workerKey: workerPolicies(t, a.region)}
	var err error
	if a.sim, err = ec2sim.New(options); err != nil {
		t.Fatal(err)
	}
	if err := a.sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.sim.Close(); err != nil {
			t.Errorf("close the simulator: %v", err)
		}
	})
	a.provider = a.newProvider()
	cfg, err := config.LoadDefaultConfig(t.Context(), a.admin()...)
	if err != nil {
		t.Fatal(err)
	}
	a.ec2 = ec2.NewFromConfig(cfg)
	return a
}

// newProvider returns the provider of a worker that has just started.
func (a *account) newProvider() *aws.Provider {
	a.t.Helper()
	return a.newProviderOf(func(*options) {})
}

type options = aws.Options

// newProviderOf returns the provider of a worker that has just started with other options.
func (a *account) newProviderOf(change func(*options)) *aws.Provider {
	a.t.Helper()
	o := options{Cluster: "blue", Load: a.load(), Now: a.Now}
	change(&o)
	provider, err := aws.New(a.t.Context(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(provider.Close)
	return provider
}

func (a *account) load() []func(*config.LoadOptions) error {
	return []func(*config.LoadOptions) error{
		config.WithRegion(a.region),
		config.WithBaseEndpoint(a.sim.URL()),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(workerKey, "secret", "")),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
	}
}

// admin returns the SDK configuration of a user with all rights.
func (a *account) admin() []func(*config.LoadOptions) error {
	return append(a.load(), config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("admin", "secret", "")))
}

// workerKey is the access key of the provider, which has the permissions of deploy/iam.
const workerKey = "worker"

// further allows the worker to pass the role that tests change a class to, to read the account's own parameters, as
// deploy/iam's README asks for, and to look for a queue that does not exist.
const further = `{"Version": "2012-10-17", "Statement": [
	{"Effect": "Allow", "Action": "iam:PassRole", "Resource": "arn:PARTITION:iam::123456789012:role/another-role"},
	{"Effect": "Allow", "Action": "ssm:GetParameter", "Resource": "arn:PARTITION:ssm:REGION:123456789012:parameter/*"},
	{"Effect": "Allow", "Action": "sqs:GetQueueUrl", "Resource": "arn:PARTITION:sqs:REGION:123456789012:none"}]}`

// partitionOf returns the AWS partition of a region.
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func workerPolicies(t testing.TB, region string) []*policy.Document {
	t.Helper()
	values := deploy.PolicyValues{Partition: partitionOf(region), Region: region, AccountID: "123456789012", Cluster: "blue"}
	texts, err := deploy.WorkerPolicies(values)
	if err != nil {
		t.Fatal(err)
	}
	texts["further"] = []byte(strings.NewReplacer("PARTITION", values.Partition, "REGION", region).Replace(further))
	documents, err := policy.ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

func (a *account) Now() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *account) Advance(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now = a.now.Add(d)
}

// harness is an account as the contract's tests see it.
type harness struct{ *account }

func (h harness) NodeClass() cloud.NodeClass { return h.account.NodeClass() }

func (h harness) Zones(class cloud.NodeClass) []string {
	var zones []string
	for _, subnet := range class.(*awsv1.EC2NodeClass).Status.Subnets {
		zones = append(zones, subnet.Zone)
	}
	return zones
}

func (h harness) SelectsNothing() map[string]cloud.NodeClass {
	nothing := map[string]string{"tenon.sh/no-such-tag": "at-all"}
	subnets, groups, images := h.account.NodeClass(), h.account.NodeClass(), h.account.NodeClass()
	subnets.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: nothing}}
	groups.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: nothing}}
	family := awsv1.AMIFamilyCustom
	images.Spec.AMIFamily, images.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{Tags: nothing}}
	return map[string]cloud.NodeClass{awsv1.ConditionTypeSubnetsReady: subnets, awsv1.ConditionTypeSecurityGroupsReady: groups, awsv1.ConditionTypeAMIsReady: images}
}

func (a *account) NodeClass() *awsv1.EC2NodeClass {
	discovery := map[string]string{"karpenter.sh/discovery": "blue"}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "0b2a7a4e-0000-4000-8000-000000000001", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role:                       "KarpenterNodeRole-blue",
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
			Tags:                       map[string]string{"team": "blue"},
		},
	}
}

// change changes the faults in force.
func (a *account) change(change func(*ec2sim.Faults)) {
	a.t.Helper()
	faults := a.sim.Faults()
	change(&faults)
	if err := a.sim.SetFaults(faults); err != nil {
		a.t.Fatal(err)
	}
}

func (a *account) LoseLaunchReplies(n int) {
	a.t.Helper()
	a.change(func(f *ec2sim.Faults) {
		f.Lost = []ec2sim.ReplyFault{{Action: "CreateFleet", Occurrence: ec2sim.Occurrence{Times: n}}}
	})
}

func (a *account) LimitCapacity(key cloud.OfferingKey, remaining int) {
	a.t.Helper()
	a.change(func(f *ec2sim.Faults) {
		f.Capacity = nil
		if remaining != cloudtest.Unlimited {
			pools := ec2sim.PoolPattern{InstanceType: key.InstanceType, Zone: key.Zone, CapacityType: key.CapacityType}
			f.Capacity = []ec2sim.CapacityFault{{PoolPattern: pools, Remaining: remaining}}
		}
	})
}

func (a *account) HideNewInstances(d time.Duration) {
	a.t.Helper()
	a.change(func(f *ec2sim.Faults) { f.DescribeLag = ec2sim.Duration(d) })
}

// ForeignInstance launches an instance like those of a managed node group of the same cluster, which have the cluster's
// tag, too.
func (a *account) ForeignInstance() string {
	a.t.Helper()
	images, err := a.ec2.DescribeImages(a.t.Context(), &ec2.DescribeImagesInput{
		Filters: []types.Filter{{Name: awssdk.String("architecture"), Values: []string{"x86_64"}}},
	})
	if err != nil || len(images.Images) == 0 {
		a.t.Fatalf("no image for a foreign instance: %v", err)
	}
	subnets, err := a.ec2.DescribeSubnets(a.t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil || len(subnets.Subnets) == 0 {
		a.t.Fatalf("no subnet for a foreign instance: %v", err)
	}
	out, err := a.ec2.RunInstances(a.t.Context(), &ec2.RunInstancesInput{
		SubnetId: subnets.Subnets[0].SubnetId,
		ImageId:  images.Images[0].ImageId, InstanceType: types.InstanceTypeM5Large, MinCount: awssdk.Int32(1), MaxCount: awssdk.Int32(1),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{
			{Key: awssdk.String("kubernetes.io/cluster/blue"), Value: awssdk.String("owned")},
			{Key: awssdk.String("eks:nodegroup-name"), Value: awssdk.String("system")},
		}}},
	})
	if err != nil {
		a.t.Fatalf("launch a foreign instance: %v", err)
	}
	return awssdk.ToString(out.Instances[0].InstanceId)
}

func (a *account) Alive() []string {
	alive := []string{}
	for _, i := range a.sim.Instances() {
		if i.EndedAt == nil {
			alive = append(alive, i.ID)
		}
	}
	return alive
}

func TestContract(t *testing.T) {
	t.Parallel()
	cloudtest.Run(t, func(t *testing.T) (cloud.Provider, cloudtest.Harness) {
		a := newAccount(t)
		return a.provider, harness{a}
	})
}
