package cleanup_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/tenon-sh/tenon/cloud/aws/cleanup"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
)

// person is the access key of somebody with deploy/iam/cleanup.json for the cluster blue, and nothing else.
const person = "person"

// account is a simulated account, as an administrator uses it.
type account struct {
	*testing.T
	sim    *ec2sim.Server
	ec2    *ec2.Client
	iam    *iam.Client
	sqs    *sqs.Client
	events *eventbridge.Client
}

// newAccount returns an account with the EKS cluster green. There is no cluster blue.
func newAccount(t *testing.T) *account {
	t.Helper()
	text, err := deploy.CleanupPolicy(deploy.PolicyValues{Partition: "aws", Region: "us-east-1", AccountID: "123456789012", Cluster: "blue"})
	if err != nil {
		t.Fatal(err)
	}
	document, err := policy.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	sim, err := ec2sim.New(ec2sim.Options{
		Cluster: "green", CatalogueFile: "../testdata/catalogue.json", Policies: ec2sim.Policies{person: {document}, "nobody": {}},
		PendingFor: time.Millisecond, ShuttingDownFor: 10 * time.Millisecond,
	})
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
	cfg := config(sim, "admin")
	return &account{T: t, sim: sim, ec2: ec2.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), sqs: sqs.NewFromConfig(cfg), events: eventbridge.NewFromConfig(cfg)}
}

// config returns the configuration of somebody with this access key.
func config(sim *ec2sim.Server, key string) aws.Config {
	return aws.Config{Region: "us-east-1", BaseEndpoint: aws.String(sim.URL()), Credentials: credentials.NewStaticCredentialsProvider(key, "secret", ""), Retryer: ec2sim.Once}
}

func (a *account) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// nodeTags are the tags that Tenon and Karpenter give to what they create for a cluster.
func nodeTags(cluster string) map[string]string {
	return map[string]string{"kubernetes.io/cluster/" + cluster: "owned", "eks:eks-cluster-name": cluster, "karpenter.k8s.aws/ec2nodeclass": "default",
		"topology.kubernetes.io/region": "us-east-1"}
}

// without returns tags without one.
func without(tags map[string]string, key string) map[string]string {
	tags = maps.Clone(tags)
	delete(tags, key)
	return tags
}

func ec2Tags(kind types.ResourceType, tags map[string]string) []types.TagSpecification {
	if len(tags) == 0 {
		return nil
	}
	spec := types.TagSpecification{ResourceType: kind}
	for key, value := range tags {
		spec.Tags = append(spec.Tags, types.Tag{Key: &key, Value: &value})
	}
	return []types.TagSpecification{spec}
}

// instance launches an instance, and returns its id. profile is the name of its instance profile, if it is to have one.
func (a *account) instance(profile string, tags map[string]string, spot bool) string {
	a.Helper()
	images, err := a.ec2.DescribeImages(a.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	a.must(err)
	in := &ec2.RunInstancesInput{
		ImageId: images.Images[0].ImageId, InstanceType: "m5.large", MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String("subnet-0a5e7e0000000001"),
		TagSpecifications: ec2Tags(types.ResourceTypeInstance, tags),
	}
	if profile != "" {
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: &profile}
	}
	if spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	}
	out, err := a.ec2.RunInstances(a.Context(), in)
	a.must(err)
	return *out.Instances[0].InstanceId
}

// template makes a launch template, and returns its id.
func (a *account) template(name string, tags map[string]string) string {
	a.Helper()
	out, err := a.ec2.CreateLaunchTemplate(a.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Large}, TagSpecifications: ec2Tags(types.ResourceTypeLaunchTemplate, tags)})
	a.must(err)
	return *out.LaunchTemplate.LaunchTemplateId
}

// profile makes an instance profile with the role "node", and returns its name.
func (a *account) profile(name, path string, tags map[string]string) string {
	a.Helper()
	in := &iam.CreateInstanceProfileInput{InstanceProfileName: &name, Path: &path}
	for key, value := range tags {
		in.Tags = append(in.Tags, iamtypes.Tag{Key: &key, Value: &value})
	}
	_, err := a.iam.CreateInstanceProfile(a.Context(), in)
	a.must(err)
	_, err = a.iam.AddRoleToInstanceProfile(a.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: &name, RoleName: aws.String("node")})
	a.must(err)
	return name
}

// queue makes a queue, and returns its URL. cluster is the value of its tag, if it is to have one.
func (a *account) queue(name, cluster string) string {
	a.Helper()
	in := &sqs.CreateQueueInput{QueueName: &name}
	if cluster != "" {
		in.Tags = map[string]string{cleanup.ClusterTag: cluster}
	}
	out, err := a.sqs.CreateQueue(a.Context(), in)
	a.must(err)
	return *out.QueueUrl
}

// rule makes a rule with two targets, and returns its name.
func (a *account) rule(name, cluster string) string {
	a.Helper()
	in := &eventbridge.PutRuleInput{Name: &name, EventPattern: aws.String(`{"source": ["aws.ec2"]}`)}
	if cluster != "" {
		in.Tags = []eventtypes.Tag{{Key: aws.String(cleanup.ClusterTag), Value: &cluster}}
	}
	_, err := a.events.PutRule(a.Context(), in)
	a.must(err)
	_, err = a.events.PutTargets(a.Context(), &eventbridge.PutTargetsInput{Rule: &name, Targets: []eventtypes.Target{
		{Id: aws.String("interruption-queue"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:blue")},
		{Id: aws.String("another"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:blue")}}})
	a.must(err)
	return name
}

// all returns the ids of everything in the account: of instances that are not terminated, launch templates, instance
// profiles, rules with the number of their targets, and queues.
func (a *account) all() []string {
	a.Helper()
	var ids []string
	instances, err := a.ec2.DescribeInstances(a.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"pending", "running", "stopped"}}}})
	a.must(err)
	for _, r := range instances.Reservations {
		for i := range r.Instances {
			ids = append(ids, *r.Instances[i].InstanceId)
		}
	}
	templates, err := a.ec2.DescribeLaunchTemplates(a.Context(), &ec2.DescribeLaunchTemplatesInput{})
	a.must(err)
	for _, template := range templates.LaunchTemplates {
		ids = append(ids, *template.LaunchTemplateId)
	}
	profiles, err := a.iam.ListInstanceProfiles(a.Context(), &iam.ListInstanceProfilesInput{})
	a.must(err)
	for i := range profiles.InstanceProfiles {
		ids = append(ids, fmt.Sprintf("%s with %d roles", *profiles.InstanceProfiles[i].InstanceProfileName, len(profiles.InstanceProfiles[i].Roles)))
	}
	rules, err := a.events.ListRules(a.Context(), &eventbridge.ListRulesInput{})
	a.must(err)
	for _, rule := range rules.Rules {
		targets, err := a.events.ListTargetsByRule(a.Context(), &eventbridge.ListTargetsByRuleInput{Rule: rule.Name})
		a.must(err)
		ids = append(ids, fmt.Sprintf("%s with %d targets", *rule.Name, len(targets.Targets)))
	}
	queues, err := a.sqs.ListQueues(a.Context(), &sqs.ListQueuesInput{})
	a.must(err)
	ids = append(ids, queues.QueueUrls...)
	slices.Sort(ids)
	return ids
}

// neighbours are things of others in the account, among them some that differ from the cluster's by one tag.
func (a *account) neighbours() []cleanup.Item {
	a.Helper()
	var items []cleanup.Item
	add := func(kind cleanup.Kind, id string) { items = append(items, cleanup.Item{Kind: kind, ID: id}) }
	own := nodeTags("blue")
	others := []map[string]string{nil, nodeTags("blue-two"), without(own, "kubernetes.io/cluster/blue"), without(own, "karpenter.k8s.aws/ec2nodeclass")}
	for i, tags := range others {
		add(cleanup.KindInstance, a.instance("", tags, false))
		add(cleanup.KindLaunchTemplate, a.template(fmt.Sprint("tenon.sh/other-", i), tags))
		add(cleanup.KindInstanceProfile, a.profile(fmt.Sprint("blue_other-", i), "/karpenter/us-east-1/blue/uid/", tags))
	}
	add(cleanup.KindInstanceProfile, a.profile("blue_abroad", "/karpenter/eu-west-1/blue/uid/", without(own, "topology.kubernetes.io/region")))
	add(cleanup.KindRule, a.rule("blue-state-change", ""))
	add(cleanup.KindRule, a.rule("blue-two-state-change", "blue-two"))
	add(cleanup.KindRule, a.rule("blue-backup", ""))
	add(cleanup.KindQueue, a.queue("blue", ""))
	add(cleanup.KindQueue, a.queue("blue-two", "blue-two"))
	return items
}

// cluster makes everything that the cluster blue leaves, one of it by an older Karpenter, and returns the ids.
func (a *account) cluster() map[cleanup.Kind][]string {
	a.Helper()
	tags := nodeTags("blue")
	profile := a.profile("blue_1", "/karpenter/us-east-1/blue/uid/", tags)
	return map[cleanup.Kind][]string{
		cleanup.KindInstance:        {a.instance(profile, tags, false), a.instance(profile, tags, true)},
		cleanup.KindLaunchTemplate:  {a.template("tenon.sh/one", tags), a.template("karpenter.k8s.aws/2", tags)},
		cleanup.KindInstanceProfile: {profile, a.profile("blue_2", "/", tags)},
		cleanup.KindRule:            {a.rule("blue-spot-interruption", "blue"), a.rule("blue-scheduled-change", "blue")},
		cleanup.KindQueue:           {a.queue("blue-interruption", "blue")},
	}
}

func quiet(string, int, int) {}

// find lists what the cluster left, as somebody with the policy.
func (a *account) find() *cleanup.Found {
	a.Helper()
	found, err := cleanup.New(config(a.sim, person), "blue").Find(a.Context(), quiet)
	a.must(err)
	return found
}

// TestCleanup removes everything of a cluster's and nothing of its neighbours'.
func TestCleanup(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.neighbours()
	before := a.all()
	made := a.cluster()
	found := a.find()
	got := map[cleanup.Kind][]string{}
	for _, item := range found.Items {
		got[item.Kind] = append(got[item.Kind], item.ID)
		if want := item.Kind == cleanup.KindInstance; (item.PricePerHour > 0) != want || want && item.InstanceType != "m5.large" {
			t.Errorf("%s %s, %s, costs %g", item.Kind, item.ID, item.InstanceType, item.PricePerHour)
		}
		if len(item.Tags) == 0 {
			t.Errorf("nothing says why %s %s is the cluster's", item.Kind, item.ID)
		}
	}
	for _, of := range []map[cleanup.Kind][]string{made, got} {
		for kind := range of {
			slices.Sort(of[kind])
		}
	}
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("found (-made +found):\n%s", diff)
	}
	if want := []string{"EventBridge rule blue-state-change", "SQS queue blue"}; !slices.Equal(found.Untagged, want) || found.Status != "" || len(found.Unknown) > 0 {
		t.Errorf("untagged %v, want %v; status %q, unknown %v", found.Untagged, want, found.Status, found.Unknown)
	}
	if first := found.Items[0]; first.State != "running" {
		t.Errorf("the first item is %+v, want a running instance", first)
	}
	var steps []string
	person := cleanup.New(config(a.sim, person), "blue")
	if failures := person.Remove(t.Context(), found.Items, func(what string, _, _ int) { steps = append(steps, what) }); len(failures) > 0 {
		t.Errorf("remain: %+v", failures)
	}
	if diff := cmp.Diff(before, a.all()); diff != "" {
		t.Errorf("the account without the cluster (-before +after):\n%s", diff)
	}
	if len(steps) < len(cleanup.Kinds()) {
		t.Errorf("only these steps were told: %q", steps)
	}
	if again := a.find(); len(again.Items) > 0 {
		t.Errorf("a second run finds %+v", again.Items)
	}
	if failures := person.Remove(t.Context(), found.Items, quiet); len(failures) > 0 {
		t.Errorf("removing what is gone fails: %+v", failures)
	}
}

// TestNothingOfOthersCanBeRemoved asks for the removal of the neighbours' things, as a defect in Find would. The tags of
// instance profiles and queues are read again; everything else is left to AWS, which denies it. That AWS would deny the former
// as well is shown in package deploy.
func TestNothingOfOthersCanBeRemoved(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	items := a.neighbours()
	before := a.all()
	failures := cleanup.New(config(a.sim, person), "blue").Remove(t.Context(), items, quiet)
	if diff := cmp.Diff(before, a.all()); diff != "" {
		t.Errorf("neighbours (-before +after):\n%s", diff)
	}
	why := map[string]string{}
	for _, failure := range failures {
		why[failure.Item.ID] = failure.Error
	}
	for _, item := range items {
		want := "not authorized"
		if item.Kind == cleanup.KindInstanceProfile || item.Kind == cleanup.KindQueue {
			want = "it does not have the cluster's tags"
		}
		if !strings.Contains(why[item.ID], want) {
			t.Errorf("%s %s: %q, want %q", item.Kind, item.ID, why[item.ID], want)
		}
	}
}

// TestWhatFailsIsNamed lets calls fail, each for one kind: what else there is goes all the same, and a second run removes the
// rest.
func TestWhatFailsIsNamed(t *testing.T) {
	t.Parallel()
	for action, test := range map[string]struct {
		code   string
		remain cleanup.Kind
	}{
		"TerminateInstances":            {"OperationNotPermitted", cleanup.KindInstance},
		"DeleteLaunchTemplate":          {"RequestLimitExceeded", cleanup.KindLaunchTemplate},
		"RemoveRoleFromInstanceProfile": {"AccessDenied", cleanup.KindInstanceProfile},
		"DeleteInstanceProfile":         {"DeleteConflict", cleanup.KindInstanceProfile},
		"RemoveTargets":                 {"ManagedRuleException", cleanup.KindRule},
		"DeleteRule":                    {"ConcurrentModificationException", cleanup.KindRule},
		"DeleteQueue":                   {"AccessDenied", cleanup.KindQueue},
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			made := a.cluster()
			items := a.find().Items
			a.must(a.sim.SetFaults(ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: action, Code: test.code}}}))
			failures := cleanup.New(config(a.sim, person), "blue").Remove(t.Context(), items, quiet)
			remain := map[string]bool{}
			for _, failure := range failures {
				remain[failure.Item.ID] = true
				// A profile remains as long as its instances.
				if failure.Item.Kind != test.remain && !(test.remain == cleanup.KindInstance && failure.Item.ID == "blue_1") || failure.Error == "" {
					t.Errorf("%s %s remains: %s", failure.Item.Kind, failure.Item.ID, failure.Error)
				}
			}
			for _, id := range made[test.remain] {
				if !remain[id] {
					t.Errorf("%s %s is not named", test.remain, id)
				}
			}
			a.must(a.sim.SetFaults(ec2sim.Faults{}))
			if failures := cleanup.New(config(a.sim, person), "blue").Remove(t.Context(), a.find().Items, quiet); len(failures) > 0 || len(a.find().Items) > 0 {
				t.Errorf("a second run leaves %+v", failures)
			}
		})
	}
}

// TestAProfileInUseStays has a person launch an instance with the cluster's profile.
func TestAProfileInUseStays(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.cluster()
	id := a.instance("blue_1", nil, false)
	failures := cleanup.New(config(a.sim, person), "blue").Remove(t.Context(), a.find().Items, quiet)
	if len(failures) != 1 || failures[0].Item.ID != "blue_1" || !strings.Contains(failures[0].Error, id) {
		t.Errorf("remain: %+v; want blue_1, which %s has", failures, id)
	}
}

// TestAClusterWithTheLongestName has a name that is longer than those of rules and queues.
func TestAClusterWithTheLongestName(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	name := strings.Repeat("c", 100)
	id := a.instance("", nodeTags(name), false)
	found, err := cleanup.New(config(a.sim, "admin"), name).Find(t.Context(), quiet)
	a.must(err)
	if len(found.Unknown) > 0 || len(found.Items) != 1 || found.Items[0].ID != id {
		t.Errorf("found %+v, unknown %v", found.Items, found.Unknown)
	}
}

// TestWhatCannotBeLookedUpIsNamed asks as somebody without any permission.
func TestWhatCannotBeLookedUpIsNamed(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.cluster()
	found, err := cleanup.New(config(a.sim, "nobody"), "blue").Find(t.Context(), quiet)
	a.must(err)
	if len(found.Unknown) != 5 || len(found.Items) > 0 || found.ClusterUnknown == "" {
		t.Errorf("found %d items, and does not know %q", len(found.Items), found.Unknown)
	}
}
