package deploy_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
)

// probe is a call that the worker's policies must allow or must refuse.
type probe struct {
	name    string
	allowed bool
	do      func(ctx context.Context, n *neighbourhood, p *principal) error
}

func needed(name string, do func(ctx context.Context, n *neighbourhood, p *principal) error) probe {
	return probe{name, true, do}
}

func forbidden(name string, do func(ctx context.Context, n *neighbourhood, p *principal) error) probe {
	return probe{name, false, do}
}

// probes are the operations of the provider, as it calls them, and what its permissions must not reach.
func probes() []probe {
	return slices.Concat(readProbes(), launchProbes(), removalProbes(), profileProbes())
}

func readProbes() []probe {
	return []probe{
		needed("read reservations", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeCapacityReservations)
		}),
		needed("read images", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeImages)
		}),
		needed("read instances", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstances)
		}),
		needed("read status checks", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstanceStatus)
		}),
		needed("read offerings", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstanceTypeOfferings)
		}),
		needed("read instance types", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeInstanceTypes)
		}),
		needed("read launch templates", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeLaunchTemplates)
		}),
		needed("read placement groups", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribePlacementGroups)
		}),
		needed("read security groups", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeSecurityGroups)
		}),
		needed("read spot prices", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeSpotPriceHistory)
		}),
		needed("read subnets", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.ec2.DescribeSubnets)
		}),
		forbidden("read another region", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.away.DescribeInstances)
		}),
		needed("read a published image", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: awssdk.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id")})
			return err
		}),
		forbidden("read somebody's parameter", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: awssdk.String("/secrets/database")})
			return err
		}),
		needed("read prices", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.pricing.GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: awssdk.String("AmazonEC2")})
			return err
		}),
		needed("read the cluster", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: awssdk.String("blue")})
			return err
		}),
		needed("read zonal shifts", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.shifts.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: awssdk.String("arn:aws:eks:us-east-1:123456789012:cluster/blue")})
			return err
		}),
		forbidden("read another cluster's zonal shifts", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.shifts.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: awssdk.String("arn:aws:eks:us-east-1:123456789012:cluster/red")})
			return err
		}),
		needed("find the queue", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			_, err := p.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: awssdk.String("blue")})
			return err
		}),
		needed("read the queue", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queueURL(n.url, "blue")})
			return err
		}),
		needed("empty the queue", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.sqs.DeleteMessageBatch(ctx, deleteBatch(n.url))
			return err
		}),
		forbidden("read another queue", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queueURL(n.url, "other")})
			return err
		}),
	}
}

func launchProbes() []probe {
	list := []probe{
		needed("make a launch template", func(_ context.Context, n *neighbourhood, p *principal) error { return n.makeTemplate(p, ownTags()) }),
		needed("launch on demand", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "lacks/", "on-demand", ownTags())
		}),
		needed("launch spot", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "spot", "spot", ownTags())
		}),
		needed("launch with a volume of a snapshot", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "snapshot", "on-demand", ownTags())
		}),
		needed("launch into a reservation", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "reserved", "on-demand", ownTags())
		}),
		needed("launch into a placement group", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "placed", "on-demand", ownTags())
		}),
		needed("try a launch", func(_ context.Context, n *neighbourhood, p *principal) error { return n.run(p, ownTags()) }),
		forbidden("launch with a role of somebody else's", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.launch(p, "admin", "on-demand", ownTags())
		}),
		needed("name an instance", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.tag(p, n.instances[""], map[string]string{"Name": "node", "karpenter.sh/nodeclaim": "claim"})
		}),
		forbidden("tag an instance with anything else", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.tag(p, n.instances[""], map[string]string{"Name": "node", "team": "red"})
		}),
		forbidden("make a foreign instance its own", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.tag(p, n.instances[clusterTag], ownTags())
		}),
	}
	for _, lacks := range []string{clusterTag, classTag} {
		list = append(list,
			forbidden("launch from a template without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.launch(p, "lacks/"+lacks, "on-demand", ownTags())
			}),
			forbidden("name an instance without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.tag(p, n.instances[lacks], map[string]string{"Name": "node"})
			}))
	}
	for _, lacks := range []string{clusterTag, nameTag, classTag} {
		list = append(list,
			forbidden("make a launch template without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.makeTemplate(p, without(lacks))
			}),
			forbidden("launch without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.launch(p, "lacks/", "on-demand", without(lacks))
			}),
			forbidden("try a launch without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error { return n.run(p, without(lacks)) }))
	}
	return list
}

func removalProbes() []probe {
	list := []probe{
		needed("delete a launch template", func(_ context.Context, n *neighbourhood, p *principal) error { return n.deleteTemplate(p, "lacks/") }),
		needed("terminate an instance", func(_ context.Context, n *neighbourhood, p *principal) error { return n.terminate(p, n.instances[""]) }),
	}
	for _, lacks := range []string{clusterTag, classTag} {
		list = append(list,
			forbidden("delete a launch template without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.deleteTemplate(p, "lacks/"+lacks)
			}),
			forbidden("terminate an instance without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.terminate(p, n.instances[lacks])
			}))
	}
	return list
}

func profileProbes() []probe {
	list := []probe{
		needed("make an instance profile", func(_ context.Context, n *neighbourhood, p *principal) error { return n.makeProfile(p, ownTags()) }),
		needed("put the node role into a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.addRole(p, n.profiles[""], nodeRole)
		}),
		needed("take a role out of a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.stripProfile(p, n.profiles[""])
		}),
		needed("delete a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.deleteProfile(p, n.profiles[""])
		}),
		needed("read a profile", func(ctx context.Context, n *neighbourhood, p *principal) error {
			_, err := p.iam.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: awssdk.String(n.profiles[""])})
			return err
		}),
		needed("find profiles", func(ctx context.Context, _ *neighbourhood, p *principal) error {
			return ignore(ctx, p.iam.ListInstanceProfiles)
		}),
		needed("pass the node role to EC2", func(_ context.Context, _ *neighbourhood, p *principal) error {
			return passRole(p, "aws", "ec2.amazonaws.com")
		}),
		needed("pass the node role to EC2 of China", func(_ context.Context, _ *neighbourhood, p *principal) error {
			return passRole(p, "aws", "ec2.amazonaws.com.cn")
		}),
		forbidden("pass the node role to anything else", func(_ context.Context, _ *neighbourhood, p *principal) error {
			return passRole(p, "aws", "lambda.amazonaws.com")
		}),
		forbidden("put another role into a profile", func(_ context.Context, n *neighbourhood, p *principal) error {
			return n.addRole(p, n.profiles[""], "Administrator")
		}),
	}
	for _, lacks := range []string{clusterTag, nameTag, classTag, regionTag} {
		list = append(list,
			forbidden("make a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error { return n.makeProfile(p, without(lacks)) }),
			forbidden("tag a profile of its own without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.tagProfile(p, ownTags(), without(lacks))
			}))
		if lacks == nameTag {
			continue
		}
		list = append(list,
			forbidden("make a profile its own that lacks "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.tagProfile(p, without(lacks), ownTags())
			}),
			forbidden("put a role into a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.addRole(p, n.profiles[lacks], nodeRole)
			}),
			forbidden("strip a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.stripProfile(p, n.profiles[lacks])
			}),
			forbidden("delete a profile without "+lacks, func(_ context.Context, n *neighbourhood, p *principal) error {
				return n.deleteProfile(p, n.profiles[lacks])
			}))
	}
	return list
}

// twins are statements that AWS both evaluates when something is created with tags. A condition on a tag of the request
// counts for both, so AWS notices its absence only if it is missing from both. twinsDiffer shows whether one has lost it.
var twins = map[string]string{
	"CreateOnlyWhatIsTaggedAsOwn": "TagOnlyWhileCreating",
	"TagOnlyWhileCreating":        "CreateOnlyWhatIsTaggedAsOwn",
	"CreateOwnInstanceProfiles":   "TagOnlyWhatIsOwn",
}

// mutant is the worker's policies with one thing removed.
type mutant struct {
	name string
	// change removes it from a fresh copy of the policies.
	change func(policies map[string]*policyDocument)
}

// policyDocument is a policy that can be written again.
type policyDocument struct {
	Version   string
	Statement []*policyStatement
}

type policyStatement struct {
	Sid       string
	Effect    string
	Action    list
	Resource  list
	Condition map[string]map[string]list `json:",omitempty"`
}

func workerPolicies(t *testing.T) map[string]*policyDocument {
	t.Helper()
	documents, err := deploy.WorkerPolicies(blue)
	if err != nil {
		t.Fatal(err)
	}
	return readPolicies(t, documents)
}

func cleanupPolicies(t *testing.T) map[string]*policyDocument {
	t.Helper()
	document, err := deploy.CleanupPolicy(blue)
	if err != nil {
		t.Fatal(err)
	}
	return readPolicies(t, map[string][]byte{cleanupPolicy: document})
}

// blue is the cluster whose policies are tested.
var blue = deploy.PolicyValues{Partition: "aws", Region: "us-east-1", AccountID: "123456789012", Cluster: "blue"}

func readPolicies(t *testing.T, documents map[string][]byte) map[string]*policyDocument {
	t.Helper()
	out := map[string]*policyDocument{}
	for name, data := range documents {
		out[name] = &policyDocument{}
		if err := json.Unmarshal(data, out[name]); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return out
}

// mutants removes each statement, each action, each resource, each condition and each value of a condition.
func mutants(policies map[string]*policyDocument) []mutant {
	var out []mutant
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		for i, s := range policies[name].Statement {
			add := func(what string, change func(*policyStatement, map[string]*policyDocument)) {
				out = append(out, mutant{name + "/" + s.Sid + " without " + what, func(p map[string]*policyDocument) { change(p[name].Statement[i], p) }})
			}
			out = append(out, mutant{name + " without " + s.Sid, func(p map[string]*policyDocument) { p[name].Statement = slices.Delete(p[name].Statement, i, i+1) }})
			for j, action := range s.Action {
				if len(s.Action) > 1 { // without its only action the statement is gone
					add(action, func(s *policyStatement, _ map[string]*policyDocument) { s.Action = slices.Delete(s.Action, j, j+1) })
				}
			}
			for j, resource := range s.Resource {
				if len(s.Resource) > 1 {
					add(resource, func(s *policyStatement, _ map[string]*policyDocument) { s.Resource = slices.Delete(s.Resource, j, j+1) })
				}
			}
			for operator, keys := range s.Condition {
				for key, values := range keys {
					add(operator+" "+key, func(s *policyStatement, _ map[string]*policyDocument) { delete(s.Condition[operator], key) })
					if twin := twins[s.Sid]; twin != "" {
						add(operator+" "+key+", nor "+twin, func(s *policyStatement, p map[string]*policyDocument) {
							delete(s.Condition[operator], key)
							removeTwin(p[name], twin, key)
						})
					}
					for j, value := range values {
						if len(values) > 1 {
							add(key+" "+value, func(s *policyStatement, _ map[string]*policyDocument) {
								s.Condition[operator][key] = slices.Delete(s.Condition[operator][key], j, j+1)
							})
						}
					}
				}
			}
		}
	}
	return out
}

// removeTwin removes the conditions on a tag from the statement that also requires it.
func removeTwin(document *policyDocument, sid, key string) {
	_, tag, isTag := strings.Cut(key, "/")
	for _, s := range document.Statement {
		if s.Sid != sid || !isTag {
			continue
		}
		for _, keys := range s.Condition {
			delete(keys, "aws:RequestTag/"+tag)
			delete(keys, "aws:ResourceTag/"+tag)
		}
	}
}

// twinsDiffer returns the statement that requires other request tags than its twin; empty if none does.
func twinsDiffer(policies map[string]*policyDocument) string {
	asks := map[string]map[string]string{}
	for _, document := range policies {
		for _, s := range document.Statement {
			tags := map[string]string{}
			for operator, keys := range s.Condition {
				for key, values := range keys {
					if strings.HasPrefix(key, "aws:RequestTag/") {
						tags[key] = operator + " " + strings.Join(values, " ")
					}
				}
			}
			asks[s.Sid] = tags
		}
	}
	for _, sid := range slices.Sorted(maps.Keys(twins)) {
		if !maps.Equal(asks[sid], asks[twins[sid]]) {
			return sid + " asks for other tags than " + twins[sid]
		}
	}
	return ""
}

func parsePolicies(t *testing.T, policies map[string]*policyDocument) []*policy.Document {
	t.Helper()
	var documents []*policy.Document
	for name, document := range policies {
		for _, s := range document.Statement { // an operator without keys is none
			maps.DeleteFunc(s.Condition, func(_ string, keys map[string]list) bool { return len(keys) == 0 })
		}
		data, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := policy.Parse(data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		documents = append(documents, parsed)
	}
	return documents
}

// TestNothingInThePoliciesIsSuperfluous removes one thing after another from the worker's policies. A principal with the
// rest then tries, at the simulated AWS, everything that the worker needs and everything that it must not do. Each time one
// of these must end differently than with the whole policies.
func TestNothingInThePoliciesIsSuperfluous(t *testing.T) {
	t.Parallel()
	everyMutantIsNoticed(t, workerPolicies, probes())
}

// TestNothingInTheCleanupPolicyIsSuperfluous does the same to the policy of a person who runs tenon cleanup: without any one
// of its conditions, something of a neighbour's could be removed.
func TestNothingInTheCleanupPolicyIsSuperfluous(t *testing.T) {
	t.Parallel()
	everyMutantIsNoticed(t, cleanupPolicies, cleanupProbes())
}

// TestNothingInTheNodeGroupsPolicyIsSuperfluous does the same to the policy of a person who runs tenon convert --from-asg.
func TestNothingInTheNodeGroupsPolicyIsSuperfluous(t *testing.T) {
	t.Parallel()
	everyMutantIsNoticed(t, func(t *testing.T) map[string]*policyDocument {
		t.Helper()
		document, err := deploy.NodeGroupsPolicy(blue)
		if err != nil {
			t.Fatal(err)
		}
		return readPolicies(t, map[string][]byte{nodeGroupsPolicy: document})
	}, nodeGroupsProbes())
}

func everyMutantIsNoticed(t *testing.T, whole func(*testing.T) map[string]*policyDocument, probes []probe) {
	t.Helper()
	all := append([]mutant{{name: "the whole", change: func(map[string]*policyDocument) {}}}, mutants(whole(t))...)
	policies, differ := ec2sim.Policies{}, map[string]string{}
	for i, m := range all {
		changed := whole(t)
		m.change(changed)
		differ[fmt.Sprint("mutant-", i)] = twinsDiffer(changed)
		policies[fmt.Sprint("mutant-", i)] = parsePolicies(t, changed)
	}
	n := newNeighbourhood(t, policies)
	for i, m := range all {
		key := fmt.Sprint("mutant-", i)
		p := newPrincipal(n.url, key, policies[key])
		noticed := ""
		for _, probe := range probes {
			err := probe.do(t.Context(), n, p)
			if refused(err) == !probe.allowed {
				continue
			}
			noticed = probe.name
			if i == 0 {
				t.Errorf("%s: allowed should be %v: %v", probe.name, probe.allowed, err)
				continue
			}
			break
		}
		noticed = cmp.Or(noticed, differ[key])
		if i == 0 && differ[key] != "" {
			t.Error(differ[key])
		}
		if i > 0 {
			if noticed == "" {
				t.Errorf("%s: nothing notices", m.name)
			}
			t.Logf("%s: noticed by %q", m.name, noticed)
		}
	}
	t.Logf("%d mutants", len(all)-1)
}

// TestRefusalsSayWhatIsMissing: EC2 and IAM each have their own code, and name the action and the resource.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	n := newNeighbourhood(t, ec2sim.Policies{"nobody": {}})
	p := newPrincipal(n.url, "nobody", nil)
	_, err := p.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	for _, want := range []string{"UnauthorizedOperation", "ec2:DescribeInstances", "resource: *"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("EC2 says %v, want %s in it", err, want)
		}
	}
	err = n.deleteProfile(p, n.profiles[""])
	for _, want := range []string{"AccessDenied", "iam:DeleteInstanceProfile", "instance-profile/karpenter/" + n.profiles[""]} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("IAM says %v, want %s in it", err, want)
		}
	}
}
