package nodegroups_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/aws/nodegroups"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/internal/nodegroup"
)

// person is the access key of somebody with deploy/iam/node-groups.json for the cluster blue, and nothing else.
const person = "person"

// subnets are two of the simulated account's.
var subnets = []string{"subnet-0a5e7e0000000001", "subnet-0a5e7e0000000002"}

// account is a simulated account with the cluster blue, as an administrator uses it.
type account struct {
	*testing.T
	url     string
	ec2     *ec2.Client
	eks     *eks.Client
	scaling *autoscaling.Client
}

func newAccount(t *testing.T) *account {
	t.Helper()
	text, err := deploy.NodeGroupsPolicy(deploy.PolicyValues{Partition: "aws", Region: "us-east-1", AccountID: "123456789012", Cluster: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	document, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := ec2sim.New(ec2sim.Options{Cluster: "blue", Policies: ec2sim.Policies{person: {document}, "nobody": {}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	cfg := configOf(sim.URL(), "admin")
	return &account{T: t, url: sim.URL(), ec2: ec2.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), scaling: autoscaling.NewFromConfig(cfg)}
}

func configOf(url, key string) aws.Config {
	return aws.Config{Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider(key, "secret", ""), Retryer: ec2sim.Once}
}

func (a *account) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// template makes a launch template and returns its id.
func (a *account) template(name string, data *types.RequestLaunchTemplateData) *string {
	a.Helper()
	out, err := a.ec2.CreateLaunchTemplate(a.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: data})
	a.must(err)
	return out.LaunchTemplate.LaunchTemplateId
}

func (a *account) managed(name string, template *ekstypes.LaunchTemplateSpecification) {
	a.Helper()
	in := &eks.CreateNodegroupInput{ClusterName: aws.String("blue"), NodegroupName: &name, NodeRole: aws.String("arn:aws:iam::123456789012:role/nodes"), Subnets: subnets,
		LaunchTemplate: template, ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(3), DesiredSize: aws.Int32(0)}}
	if template == nil {
		in.InstanceTypes = []string{"m5.large", "m6g.large"}
	}
	_, err := a.eks.CreateNodegroup(a.Context(), in)
	a.must(err)
}

func (a *account) selfManaged(name string, template *string, keys ...string) {
	a.Helper()
	in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(3), VPCZoneIdentifier: aws.String(strings.Join(subnets, ",")),
		LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateId: template, Version: aws.String("$Latest")}}
	for _, key := range keys {
		in.Tags = append(in.Tags, astypes.Tag{Key: &key, Value: aws.String("true")})
	}
	_, err := a.scaling.CreateAutoScalingGroup(a.Context(), in)
	a.must(err)
}

// read reads with the rights of deploy/iam/node-groups.json.
func (a *account) read(cluster string, names ...string) (nodegroup.Source, error) {
	return nodegroups.New(configOf(a.url, person), cluster).Read(a.Context(), names, func(string, int, int) {})
}

// TestRead reads managed groups and those that carry the Cluster Autoscaler's tags for the cluster, and no others.
func TestRead(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if _, err := a.read("blue"); err == nil || !strings.Contains(err.Error(), "no managed node groups, and no Auto Scaling groups with the tags k8s.io/cluster-autoscaler/enabled") {
		t.Errorf("a cluster without groups: %v", err)
	}
	id := a.template("own", &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeC5Large, KeyName: aws.String("first")})
	_, err := a.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("other"), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Xlarge}})
	a.must(err)
	a.managed("web", nil)
	a.managed("batch", &ekstypes.LaunchTemplateSpecification{Name: aws.String("other"), Version: aws.String("1")})
	mine := nodegroup.AutoscalerTag + "blue"
	a.selfManaged("own", id, nodegroup.EnabledTag, mine)
	a.selfManaged("not-enabled", id, mine)
	a.selfManaged("of-green", id, nodegroup.EnabledTag, nodegroup.AutoscalerTag+"green")
	source, err := a.read("blue")
	a.must(err)
	type group struct {
		Name             string
		Managed, Scaling bool
		Template         types.InstanceType
		Types            []string
	}
	var got []group
	for i := range source.Groups {
		g := &source.Groups[i]
		one := group{Name: g.Name(), Managed: g.Managed != nil, Scaling: g.Scaling != nil, Types: g.InstanceTypes()}
		if g.Template != nil {
			one.Template = g.Template.InstanceType
		}
		got = append(got, one)
	}
	want := []group{
		{"batch", true, true, "m5.xlarge", []string{"m5.xlarge"}}, {"web", true, true, "", []string{"m5.large", "m6g.large"}}, {"own", false, true, "c5.large", []string{"c5.large"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
	wantTypes := map[string]nodegroup.InstanceType{
		"m5.xlarge": {VCPUs: 4, MemoryMiB: 16384, Arch: "amd64"}, "m5.large": {VCPUs: 2, MemoryMiB: 8192, Arch: "amd64"},
		"m6g.large": {VCPUs: 2, MemoryMiB: 8192, Arch: "arm64"}, "c5.large": {VCPUs: 2, MemoryMiB: 4096, Arch: "amd64"},
	}
	if diff := cmp.Diff(wantTypes, source.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if source.Cluster.Name != "blue" || source.Cluster.Version != "1.36" || source.Cluster.SecurityGroup == "" {
		t.Errorf("the cluster is %+v", source.Cluster)
	}
	some, err := a.read("blue", "own", "web")
	if err != nil || len(some.Groups) != 2 || some.Groups[0].Name() != "own" {
		t.Errorf("groups by name: %v, %d", err, len(some.Groups))
	}
	if _, err := a.read("blue", "wbe"); err == nil || !strings.Contains(err.Error(), "no node group wbe: there are batch, own, web") {
		t.Errorf("a name that is misspelt: %v", err)
	}
}

// TestErrors says what is missing.
func TestErrors(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for reason, row := range map[string]struct{ key, cluster, says string }{
		"a cluster that does not exist": {"admin", "green", "EKS has no cluster green in this region and account: check --cluster-name and --region"},
		"no rights":                     {"nobody", "blue", "eks:DescribeCluster"},
	} {
		if _, err := nodegroups.New(configOf(a.url, row.key), row.cluster).Read(t.Context(), nil, func(string, int, int) {}); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: error %v, want one that says %q", reason, err, row.says)
		}
	}
}
