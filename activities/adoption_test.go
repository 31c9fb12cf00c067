package activities

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/workflows"
)

// launchedCloud is a cloud that has only instances.
type launchedCloud struct {
	cloud.Provider
	ids []string
}

func (c launchedCloud) Kind() cloud.Kind { return nodeclass.Kind() }

func (c launchedCloud) Instances(context.Context, cloud.Query) ([]cloud.Instance, error) {
	var all []cloud.Instance
	for _, id := range c.ids {
		all = append(all, cloud.Instance{ID: id, ProviderID: "aws:///us-east-1a/" + id})
	}
	return all, nil
}

// startedWorkflows is a Temporal server on which workflows run that were started with these instances.
type startedWorkflows struct {
	temporal.Client
	instances map[string]string
}

func (s startedWorkflows) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	instance, ok := s.instances[id]
	if !ok {
		return nil, serviceerror.NewNotFound(id)
	}
	payload, err := converter.GetDefaultDataConverter().ToPayload(instance)
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status:           enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{workflows.AttrInstance.GetName(): payload}},
	}}, err
}

// groupClaim returns a claim of a launch group, with its instance if one is given.
func groupClaim(name, group, instance string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
		Annotations: map[string]string{karpv1.LaunchGroupAnnotationKey: group}}}
	if instance != "" {
		claim.Status.ProviderID = "aws:///us-east-1a/" + instance
	}
	return claim
}

// slowMirror shows no claims except those of the instances it knows.
type slowMirror struct {
	Mirror
	machines map[string]*karpv1.NodeClaim
}

func (m slowMirror) Claim(string) *karpv1.NodeClaim                { return nil }
func (m slowMirror) ClaimByProviderID(id string) *karpv1.NodeClaim { return m.machines[id] }
func (m slowMirror) Attached(string) []string                      { return nil }

func TestFindInstances(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	lists := 0
	kube := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			lists++
			return c.List(ctx, list, options...)
		}}).
		WithObjects(groupClaim("recorded", "g", "i-1"), groupClaim("started", "g", ""), groupClaim("waiting", "g", ""), groupClaim("shown", "g", "i-0")).Build()
	a := New(Config{Cluster: "c", Kube: kube, Cloud: launchedCloud{ids: []string{"i-0", "i-1", "i-2", "i-3"}},
		Mirror:   slowMirror{machines: map[string]*karpv1.NodeClaim{"aws:///us-east-1a/i-0": {}}},
		Temporal: startedWorkflows{instances: map[string]string{"c/nodeclaim/started": "i-2"}}, Log: zap.NewNop()})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a.FindInstances)
	ref := func(name string) workflows.ClaimRef { return workflows.ClaimRef{Name: name, UID: "uid-" + name} }
	value, err := env.ExecuteActivity(a.FindInstances, workflows.FindInstancesInput{Group: "g", Settle: true,
		Claims: []workflows.ClaimRef{ref("recorded"), ref("started"), ref("waiting")}})
	if err != nil {
		t.Fatal(err)
	}
	var got workflows.Found
	if err := value.Get(&got); err != nil {
		t.Fatal(err)
	}
	want := workflows.Found{Claims: []workflows.ClaimRef{ref("waiting")},
		Fleet: workflows.Fleet{Instances: []workflows.Instance{{ID: "i-3", ProviderID: "aws:///us-east-1a/i-3"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("an instance is a claim's as soon as its workflow was started with it (-want +got):\n%s", diff)
	}
	if lists != 1 {
		t.Errorf("all claims were read %d times for one group, want once", lists)
	}
}

// TestTheInstanceOfTheClaimCounts covers a claim that Karpenter launches after Tenon lost the Lease during its own launch.
func TestTheInstanceOfTheClaimCounts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason     string
		claim      *karpv1.NodeClaim
		others     []client.Object
		began      string
		want       string
		terminated []string
	}{
		{reason: "a claim is launched once", claim: groupClaim("a", "g", "i-1"), began: "i-1", want: "i-1"},
		{reason: "a claim that names no instance yet will name this one", claim: groupClaim("a", "g", ""), began: "i-1", want: "i-1"},
		{reason: "a claim that is gone names none", began: "i-1", want: "i-1"},
		{reason: "Karpenter has launched it as well", claim: groupClaim("a", "g", "i-2"), began: "i-1", want: "i-2", terminated: []string{"i-1"}},
		{reason: "another claim has ours", claim: groupClaim("a", "g", "i-2"), others: []client.Object{groupClaim("b", "g", "i-1")}, began: "i-1", want: "i-2"},
	} {
		provider := &sweptCloud{}
		a := New(Config{Cluster: "c", Cloud: provider, Log: zap.NewNop(), Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(test.others...).Build()})
		own, err := a.joiner.instances.ownInstance(t.Context(), test.claim, workflows.Instance{ID: test.began})
		if err != nil || own.ID != test.want {
			t.Errorf("%s: its instance is %s, want %s: %v", test.reason, own.ID, test.want, err)
		}
		if diff := cmp.Diff(test.terminated, provider.terminated); diff != "" {
			t.Errorf("%s: terminated (-want +got):\n%s", test.reason, diff)
		}
	}
}

// startingTemporal starts workflows, but refuses the first attempt to start one of them.
type startingTemporal struct {
	temporal.Client
	mu      sync.Mutex
	refuse  string
	started map[string]string
}

func (s *startingTemporal) ExecuteWorkflow(_ context.Context, options temporal.StartWorkflowOptions, _ any, args ...any) (temporal.WorkflowRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if options.ID == s.refuse {
		s.refuse = ""
		return nil, serviceerror.NewUnavailable("not now")
	}
	s.started[options.ID] = args[0].(workflows.NodeClaimInput).Instance.ID
	return nil, nil
}

func TestStartNodeClaims(t *testing.T) {
	t.Parallel()
	server := &startingTemporal{refuse: "c/nodeclaim/b", started: map[string]string{}}
	a := New(Config{Cluster: "c", Temporal: server, Log: zap.NewNop()})
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(a.StartNodeClaims)
	in := workflows.StartNodeClaimsInput{Cluster: "c", Group: "g", Claims: []workflows.ClaimRef{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Instances: []workflows.Instance{{ID: "i-1"}, {ID: "i-2"}, {ID: "i-3"}}}
	if _, err := env.ExecuteActivity(a.StartNodeClaims, in); err == nil {
		t.Error("a workflow that could not be started must be tried again")
	}
	if _, err := env.ExecuteActivity(a.StartNodeClaims, in); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"c/nodeclaim/a": "i-1", "c/nodeclaim/b": "i-2", "c/nodeclaim/c": "i-3"}
	if diff := cmp.Diff(want, server.started); diff != "" {
		t.Errorf("claim i has instance i, however often it is tried (-want +got):\n%s", diff)
	}
}
