package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud/aws"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/cloud/ec2sim/policy"
	"github.com/tenon-sh/tenon/deploy"
	"github.com/tenon-sh/tenon/workflows"
)

// launchMirror knows one EC2NodeClass and has not seen any claim yet.
type launchMirror struct {
	classMirror
}

func (launchMirror) Claim(string) *karpv1.NodeClaim             { return nil }
func (launchMirror) ClaimByProviderID(string) *karpv1.NodeClaim { return nil }
func (launchMirror) NodeOverlays() []*karpv1alpha1.NodeOverlay  { return nil }

// noWorkflows is a Temporal server without workflows.
type noWorkflows struct{ temporalclient.Client }

func (noWorkflows) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return nil, serviceerror.NewNotFound("no workflow")
}

// killed is a worker that dies before or after its first CreateFleet call.
type killed struct {
	*Activities
	before, after bool
}

// noticedAfter is how long Temporal takes to give CreateFleet to another worker after its own has fallen silent.
var noticedAfter = workflows.CreateFleetActivity.Policy.Heartbeat

func later(why string, after time.Duration) error {
	return temporal.NewApplicationErrorWithOptions(why, "", temporal.ApplicationErrorOptions{NextRetryDelay: after})
}

func (k *killed) CreateFleet(ctx context.Context, in workflows.CreateFleetInput) (workflows.Fleet, error) {
	if k.before {
		k.before = false
		return workflows.Fleet{}, later("killed before the call", noticedAfter)
	}
	fleet, err := k.Activities.CreateFleet(ctx, in)
	if k.after {
		k.after = false
		return workflows.Fleet{}, later("killed after the call", noticedAfter)
	}
	return fleet, err
}

// FindInstances lets the cloud settle in the workflow's time, which the test skips.
func (k *killed) FindInstances(ctx context.Context, in workflows.FindInstancesInput) (workflows.Found, error) {
	if in.Settle && activity.GetInfo(ctx).Attempt == 1 {
		return workflows.Found{}, later("let the cloud settle", settleFor)
	}
	in.Settle = false
	return k.Activities.FindInstances(ctx, in)
}

// matrixCloud returns a provider with the worker's rights on a simulated account of its own, and a Ready class.
func matrixCloud(t *testing.T) (*ec2sim.Server, *aws.Provider, *awsv1.EC2NodeClass) {
	t.Helper()
	texts, err := deploy.WorkerPolicies(deploy.PolicyValues{Partition: "aws", Region: "us-east-1", AccountID: "123456789012", Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	policies, err := policy.ParseAll(texts)
	if err != nil {
		t.Fatal(err)
	}
	const workerKey = "worker"
	sim, err := ec2sim.New(ec2sim.Options{Cluster: "c", CatalogueFile: "../cloud/aws/testdata/catalogue.json", Policies: ec2sim.Policies{workerKey: policies}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sim.Close() })
	provider, err := aws.New(t.Context(), aws.Options{Cluster: "c", Load: []func(*config.LoadOptions) error{
		config.WithRegion("us-east-1"), config.WithBaseEndpoint(sim.URL()),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(workerKey, "secret", "")),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	discovery := map[string]string{"karpenter.sh/discovery": "c"}
	class := &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "class-uid", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role: "KarpenterNodeRole-c", AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: discovery}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: discovery}},
		},
	}
	resolved, err := provider.ResolveNodeClass(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	return sim, provider, resolved.(*awsv1.EC2NodeClass)
}

// matrixClaims returns two claims of one launch group.
func matrixClaims() []*karpv1.NodeClaim {
	var claims []*karpv1.NodeClaim
	for _, name := range []string{"a", "b"} {
		claims = append(claims, &karpv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: karpv1.NodeClaimSpec{
				NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
				Requirements: []karpv1.NodeSelectorRequirementWithMinValues{
					{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"m5.large"}},
					{Key: karpv1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"on-demand"}},
				},
			},
		})
	}
	return claims
}

// TestAnsweredFailures answers a launch with failures for a while, in each of the ways EC2 has, and disturbs it meanwhile:
// within thirty seconds of healing the claims have their instances, there are no others, and no token was sent again unless
// its answer had not arrived.
func TestAnsweredFailures(t *testing.T) {
	t.Parallel()
	codes := map[string]string{
		"RequestLimitExceeded": "", "InternalError": "", "UnauthorizedOperation": "", "NeverHeardOf": "",
		"InvalidParameterValue": "Value (p) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
	}
	for code, message := range codes {
		for where, faults := range map[string]ec2sim.Faults{
			"in the body": {Fleet: []ec2sim.FleetFault{{Code: code, Message: message}}},
			"as an error": {Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: code, Message: message}}},
			"mixed with capacity": {
				Fleet:    []ec2sim.FleetFault{{Code: code, Message: message, PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1a"}}},
				Capacity: []ec2sim.CapacityFault{{PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1b"}}, {PoolPattern: ec2sim.PoolPattern{Zone: "us-east-1c"}}},
			},
		} {
			t.Run(fmt.Sprintf("%s %s, for long", code, where), func(t *testing.T) {
				t.Parallel()
				answeredFailure(t, faults, 40*time.Second, killed{})
			})
			for disturbed, with := range map[string]killed{
				"nothing else": {}, "a lost reply": {}, "killed before": {before: true}, "killed after": {after: true},
			} {
				t.Run(fmt.Sprintf("%s %s, %s", code, where, disturbed), func(t *testing.T) {
					t.Parallel()
					if disturbed == "a lost reply" {
						faults.Lost = []ec2sim.ReplyFault{{Action: "CreateFleet", Occurrence: ec2sim.Occurrence{Times: 1}}}
					}
					answeredFailure(t, faults, 10*time.Second, with)
				})
			}
		}
	}
}

func answeredFailure(t *testing.T, faults ec2sim.Faults, heals time.Duration, with killed) {
	t.Helper()
	sim, provider, class := matrixCloud(t)
	claims := matrixClaims()
	builder := fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(&karpv1.NodeClaim{})
	in := workflows.LaunchInput{Cluster: "c", LaunchGroup: workflows.LaunchGroup{Group: "g"}}
	for _, claim := range claims {
		builder = builder.WithObjects(claim)
		in.Claims = append(in.Claims, workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)})
	}
	with.Activities = New(Config{Cluster: "c", Kube: builder.Build(), Mirror: launchMirror{classMirror{class: class}}, Cloud: provider, Temporal: noWorkflows{}, Log: zap.NewNop()})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(2 * time.Minute)
	workflows.Register(env)
	workflows.RegisterActivities(env, &with)
	var got []string
	var at time.Time
	env.OnWorkflow(workflows.NodeClaimType, mock.Anything, mock.Anything).Return(func(_ workflow.Context, in workflows.NodeClaimInput) (workflows.NodeClaimResult, error) {
		got, at = append(got, in.Instance.ID), env.Now()
		return workflows.NodeClaimResult{}, nil
	})
	env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(errors.New("not there"))
	killedAfter := with.after
	const within = 30 * time.Second
	if err := sim.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
	began := env.Now()
	env.RegisterDelayedCallback(func() {
		if err := sim.SetFaults(ec2sim.Faults{Lost: faults.Lost}); err != nil {
			t.Error(err)
		}
	}, heals)
	env.ExecuteWorkflow(workflows.LaunchType, in)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, i := range sim.Instances() {
		there = append(there, i.ID)
	}
	slices.Sort(got)
	slices.Sort(there)
	if len(got) != len(claims) || !slices.Equal(got, there) {
		t.Errorf("claims got %v, and there are %v", got, there)
	}
	if took := at.Sub(began); took > heals+within {
		t.Errorf("launched after %v, which is more than %v after healing", took, within)
	}
	sent, unheard := map[string]int{}, 0
	for _, call := range sim.Calls("CreateFleet") {
		if call.ClientToken == "" { // a dry run
			continue
		}
		sent[call.ClientToken]++
		if call.Lost {
			unheard++
		}
	}
	if killedAfter {
		unheard++
	}
	for token, times := range sent {
		if times > 1+unheard {
			t.Errorf("token %s was sent %d times, with %d answers that did not arrive", token, times, unheard)
		}
	}
}
