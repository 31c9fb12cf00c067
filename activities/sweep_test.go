package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/workflows"
)

func testScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, awsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// sweptCloud has instances and leftovers, and records which of them were terminated or removed and which tags were added.
type sweptCloud struct {
	cloud.Provider
	instances []cloud.Instance
	leftovers []cloud.Leftover
	// noLeftovers says that questions for leftovers fail.
	noLeftovers bool
	classes     []string // that the last question for leftovers named
	terminated  []string
	removed     []cloud.Leftover
	tagged      map[string]map[string]string
}

func (c *sweptCloud) Kind() cloud.Kind { return nodeclass.Kind() }

func (c *sweptCloud) Leftovers(_ context.Context, classes []cloud.NodeClass) ([]cloud.Leftover, error) {
	c.classes = nil
	for _, class := range classes {
		c.classes = append(c.classes, class.GetName())
	}
	if c.noLeftovers {
		return nil, &cloud.Error{Kind: cloud.Transient, Operation: "ListInstanceProfiles", Err: errors.New("no answer")}
	}
	return c.leftovers, nil
}

func (c *sweptCloud) RemoveLeftover(_ context.Context, leftover cloud.Leftover) error {
	c.removed = append(c.removed, leftover)
	return nil
}

func (c *sweptCloud) Instances(context.Context, cloud.Query) ([]cloud.Instance, error) {
	return c.instances, nil
}

func (c *sweptCloud) Terminate(_ context.Context, ids []string) error {
	c.terminated = append(c.terminated, ids...)
	return nil
}

func (c *sweptCloud) Tag(_ context.Context, id string, tags map[string]string) error {
	if c.tagged == nil {
		c.tagged = map[string]map[string]string{}
	}
	c.tagged[id] = tags
	return nil
}

// sweptTemporal has running workflows, and records which were started or signalled.
type sweptTemporal struct {
	temporal.Client
	running []string
	// asked is called with the id of each workflow that is queried.
	asked func(id string)
	// together delays starts of workflows until so many are under way at once; zero delays none.
	together int
	enough   chan struct{}
	mu       sync.Mutex
	started  []string
	signaled map[string]workflows.Ending
}

func (s *sweptTemporal) ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{}, nil
}

func (s *sweptTemporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if s.asked != nil {
		s.asked(id)
	}
	if !slices.Contains(s.running, id) {
		return nil, serviceerror.NewNotFound(id)
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}, nil
}

func (s *sweptTemporal) ExecuteWorkflow(ctx context.Context, options temporal.StartWorkflowOptions, _ any, _ ...any) (temporal.WorkflowRun, error) {
	s.mu.Lock()
	s.started = append(s.started, options.ID)
	if s.together > 0 && len(s.started) == s.together {
		close(s.enough)
	}
	s.mu.Unlock()
	if s.together > 0 {
		select {
		case <-s.enough:
		case <-time.After(20 * time.Second):
			return nil, errors.New("nobody else is started")
		}
	}
	return nil, nil
}

func (s *sweptTemporal) SignalWorkflow(_ context.Context, id, _, _ string, fact any) error {
	if s.asked != nil {
		s.asked(id)
	}
	if !slices.Contains(s.running, id) {
		return serviceerror.NewNotFound(id)
	}
	s.signaled[id] = fact.(workflows.Ending)
	return nil
}

func (s *sweptTemporal) SignalWithStartWorkflow(_ context.Context, id, _ string, fact any, _ temporal.StartWorkflowOptions, _ any, _ ...any) (temporal.WorkflowRun, error) {
	s.signaled[id] = fact.(workflows.Ending)
	return nil, nil
}

// sweptMirror finds Nodes by their provider id.
type sweptMirror struct {
	Mirror
	nodes  []*corev1.Node
	pauses []karpv1.Pause
	// kube serves everything else; nil for nothing else.
	kube client.Client
}

func (m sweptMirror) Fresh(time.Duration) error { return nil }

func (m sweptMirror) Claims() []*karpv1.NodeClaim {
	var list karpv1.NodeClaimList
	if err := m.kube.List(context.Background(), &list); err != nil {
		panic(err) // the fake client knows the kind
	}
	claims := make([]*karpv1.NodeClaim, len(list.Items))
	for i := range list.Items {
		claims[i] = &list.Items[i]
	}
	return claims
}

func (m sweptMirror) NodePool(name string) *karpv1.NodePool {
	var pool karpv1.NodePool
	if err := m.kube.Get(context.Background(), client.ObjectKey{Name: name}, &pool); err != nil {
		return nil
	}
	return &pool
}

func (m sweptMirror) Pauses() []karpv1.Pause { return m.pauses }

func (m sweptMirror) Nodes() []*corev1.Node {
	var list corev1.NodeList
	if err := m.kube.List(context.Background(), &list); err != nil {
		panic(err) // the fake client knows the kind
	}
	nodes := make([]*corev1.Node, len(list.Items))
	for i := range list.Items {
		nodes[i] = &list.Items[i]
	}
	return nodes
}

func (m sweptMirror) NodeClasses() []cloud.NodeClass {
	var list awsv1.EC2NodeClassList
	if err := m.kube.List(context.Background(), &list); err != nil {
		panic(err) // the fake client knows the kind
	}
	classes := make([]cloud.NodeClass, len(list.Items))
	for i := range list.Items {
		classes[i] = &list.Items[i]
	}
	return classes
}

func (m sweptMirror) Node(name string) *corev1.Node {
	for _, node := range m.Nodes() {
		if node.Name == name {
			return node
		}
	}
	return nil
}

func (m sweptMirror) NodeByProviderID(id string) *corev1.Node {
	for _, node := range m.nodes {
		if node.Spec.ProviderID == id {
			return node
		}
	}
	return nil
}

const old = 10 * time.Minute

func sweptInstance(id, group string, age time.Duration) cloud.Instance {
	return cloud.Instance{ID: id, ProviderID: "aws:///us-east-1a/" + id, LaunchGroup: group, LaunchTime: time.Now().Add(-age)}
}

// sweptClaim returns a claim that was created and launched that long ago; without an instance it was not launched.
func sweptClaim(name, group, instance string, age time.Duration) *karpv1.NodeClaim {
	claim := groupClaim(name, group, instance)
	at := metav1.NewTime(time.Now().Add(-age))
	claim.CreationTimestamp = at
	if instance != "" {
		claim.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: at}}
	}
	return claim
}

func sweptNode(name, instance string, isReady bool, age time.Duration) *corev1.Node {
	status := corev1.ConditionFalse
	if isReady {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", CreationTimestamp: metav1.NewTime(time.Now().Add(-age)),
			Labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true"}, Finalizers: []string{karpv1.TerminationFinalizer}},
		Spec:   corev1.NodeSpec{ProviderID: "aws:///us-east-1a/" + instance},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}},
	}
}

func TestSweep(t *testing.T) {
	t.Parallel()
	terminating := sweptClaim("a", "g", "i-1", old)
	terminating.Status.Conditions = append(terminating.Status.Conditions, metav1.Condition{Type: karpv1.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue})
	for _, test := range []struct {
		reason    string
		instances []cloud.Instance
		claims    []*karpv1.NodeClaim
		nodes     []*corev1.Node
		running   []string
		want      workflows.SweepResult
	}{
		{reason: "what belongs together is left alone", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", old)},
			nodes:  []*corev1.Node{sweptNode("n", "i-1", true, old)}, running: []string{"c/nodeclaim/a"}, want: workflows.SweepResult{}},
		{reason: "an instance nobody has is terminated", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			want: workflows.SweepResult{Terminated: []string{"i-1"}}},
		{reason: "a young instance may still be handed out", instances: []cloud.Instance{sweptInstance("i-1", "g", orphanAge/2)}, want: workflows.SweepResult{}},
		{reason: "an instance whose launch runs may still be handed out", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			running: []string{"c/launch/g"}, want: workflows.SweepResult{}},
		{reason: "an instance may be that of a claim of its group that has not written it down", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "", adoptAge/2)}, want: workflows.SweepResult{}},
		{reason: "a claim of another group does not keep it", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			claims: []*karpv1.NodeClaim{sweptClaim("a", "h", "", adoptAge/2)}, want: workflows.SweepResult{Terminated: []string{"i-1"}}},
		{reason: "a claim without a workflow is adopted", instances: []cloud.Instance{sweptInstance("i-1", "g", old)},
			claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", old)},
			want:   workflows.SweepResult{Adopted: []string{"a"}}},
		{reason: "one that another controller has just launched is adopted at once", instances: []cloud.Instance{sweptInstance("i-1", "", orphanAge/2)},
			claims: []*karpv1.NodeClaim{sweptClaim("a", "", "i-1", orphanAge/2)}, want: workflows.SweepResult{Adopted: []string{"a"}}},
		{reason: "claims without instance and workflow are launched together",
			claims:  []*karpv1.NodeClaim{sweptClaim("a", "g", "", old), sweptClaim("b", "g", "", old)},
			running: []string{"c/launch/h"}, want: workflows.SweepResult{Adopted: []string{"a", "b"}}},
		{reason: "a claim whose launch runs is not adopted", claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "", old)},
			running: []string{"c/launch/g"}, want: workflows.SweepResult{}},
		{reason: "a young claim is on its way", claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "", adoptAge/2)}, want: workflows.SweepResult{}},
		{reason: "a claim whose instance is gone is told", claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", old)},
			nodes:   []*corev1.Node{sweptNode("n", "i-1", false, old)},
			running: []string{"c/nodeclaim/a"}, want: workflows.SweepResult{Lost: []string{"a"}}},
		{reason: "a claim whose instance is gone is told, though its workflow has to be started for it",
			claims:  []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", old)},
			running: nil, want: workflows.SweepResult{Lost: []string{"a"}}},
		{reason: "an instance whose Node is ready is not gone, whatever the cloud shows", claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", old)},
			nodes: []*corev1.Node{sweptNode("n", "i-1", true, old)}, running: []string{"c/nodeclaim/a"}, want: workflows.SweepResult{}},
		{reason: "an instance may be too young to be seen",
			claims: []*karpv1.NodeClaim{sweptClaim("a", "g", "i-1", consistencyLag/2+adoptAge/2)}, running: []string{"c/nodeclaim/a"},
			want: workflows.SweepResult{}},
		{reason: "an instance that is being terminated may be gone", claims: []*karpv1.NodeClaim{terminating},
			running: []string{"c/nodeclaim/a"}, want: workflows.SweepResult{}},
		{reason: "a Node without claim and instance is let go", nodes: []*corev1.Node{sweptNode("n", "i-1", false, old)},
			want: workflows.SweepResult{Nodes: []string{"n"}}},
		{reason: "a Node that is ready has an instance", nodes: []*corev1.Node{sweptNode("n", "i-1", true, old)}, want: workflows.SweepResult{}},
		{reason: "a Node whose instance is there is kept until that one goes", instances: []cloud.Instance{sweptInstance("i-1", "g", orphanAge/2)},
			nodes: []*corev1.Node{sweptNode("n", "i-1", false, old)}, want: workflows.SweepResult{}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var objects []client.Object
			for _, claim := range test.claims {
				objects = append(objects, claim.DeepCopy())
			}
			for _, node := range test.nodes {
				objects = append(objects, node.DeepCopy())
			}
			instances := &sweptCloud{instances: test.instances}
			server := &sweptTemporal{running: test.running, signaled: map[string]workflows.Ending{}}
			got := sweepOnce(t, New(Config{Cluster: "c", Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build(),
				Cloud: instances, Temporal: server, Mirror: sweptMirror{nodes: test.nodes}, Log: zap.NewNop()}))
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(workflows.SweepResult{}, "Instances", "Claims", "Leftovers")); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.want.Terminated, instances.terminated); diff != "" {
				t.Errorf("terminated (-want +got):\n%s", diff)
			}
			for _, claim := range test.want.Lost {
				if ending := server.signaled["c/nodeclaim/"+claim]; !ending.Lost || ending.Reason != workflows.ReasonInstanceGone {
					t.Errorf("the workflow of %s was told %+v", claim, ending)
				}
			}
			if (len(test.want.Adopted) > 0) != (len(server.started) > 0) {
				t.Errorf("started %v", server.started)
			}
		})
	}
}

// TestSweepAdoptsManyAtOnce takes over a cluster from another controller.
func TestSweepAdoptsManyAtOnce(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	var instances []cloud.Instance
	for i := range 2 * adoptAtOnce {
		name := fmt.Sprintf("a%02d", i)
		objects = append(objects, sweptClaim(name, "", "i-"+name, old))
		instances = append(instances, sweptInstance("i-"+name, "", old))
	}
	server := &sweptTemporal{together: adoptAtOnce, enough: make(chan struct{})}
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build()
	got := sweepOnce(t, New(Config{Cluster: "c", Kube: kube, Cloud: &sweptCloud{instances: instances}, Temporal: server, Mirror: sweptMirror{}, Log: zap.NewNop()}))
	if len(got.Adopted) != len(objects) || !slices.IsSorted(got.Adopted) || got.Failures > 0 {
		t.Errorf("%d of %d claims were adopted: %v; failed: %v", len(got.Adopted), len(objects), got.Adopted, got.Failed)
	}
}

func TestSweepAdoptsNothingThatPeopleHoldBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason     string
		instance   string
		annotation string
		pauses     []karpv1.Pause
		adopted    bool
	}{
		"Nothing":          {reason: "nobody holds it back", instance: "i-1", adopted: true},
		"Observed":         {reason: "the NodePool is only observed", instance: "i-1", annotation: karpv1.ObserveAnnotationKey},
		"ObservedLaunch":   {reason: "so its claims are not launched either", annotation: karpv1.ObserveAnnotationKey},
		"Launch":           {reason: "a claim without an instance is launched", adopted: true},
		"PausedLaunch":     {reason: "launches are paused in the cluster", pauses: []karpv1.Pause{{What: karpv1.PauseProvisioning}}},
		"PausedLaunches":   {reason: "an instance that exists needs no launch", instance: "i-1", pauses: []karpv1.Pause{{What: karpv1.PauseProvisioning}}, adopted: true},
		"PausedDisruption": {reason: "launches are not paused", pauses: []karpv1.Pause{{What: karpv1.PauseDisruption}}, adopted: true},
		"PausedInItsPool":  {reason: "launches are paused for the NodePool", annotation: karpv1.PauseAnnotationKey},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := sweptClaim("a", "", test.instance, old)
			claim.Labels = map[string]string{karpv1.NodePoolLabelKey: "pool"}
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
			if test.annotation != "" {
				pool.Annotations = map[string]string{test.annotation: "all"}
			}
			account := &sweptCloud{}
			if test.instance != "" {
				account.instances = append(account.instances, sweptInstance(test.instance, "", old))
			}
			server := &sweptTemporal{}
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim, pool).Build()
			sweepOnce(t, New(Config{Cluster: "c", Kube: kube, Cloud: account, Temporal: server, Mirror: sweptMirror{pauses: test.pauses}, Log: zap.NewNop()}))
			if (len(server.started) > 0) != test.adopted {
				t.Errorf("%s: started %v", test.reason, server.started)
			}
		})
	}
}

// TestSweepSeesWhatIsHandedOutMeanwhile has a slow launch end, and its claim get the instance, after the sweep has read the
// claims and before it queries the launch.
func TestSweepSeesWhatIsHandedOutMeanwhile(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(&karpv1.NodeClaim{}).WithObjects(sweptClaim("a", "g", "", old)).Build()
	instances := &sweptCloud{instances: []cloud.Instance{sweptInstance("i-1", "g", old)}}
	server := &sweptTemporal{running: []string{"c/nodeclaim/a"}, signaled: map[string]workflows.Ending{}}
	server.asked = func(id string) {
		if id != "c/launch/g" {
			return
		}
		claim := &karpv1.NodeClaim{}
		if err := kube.Get(t.Context(), client.ObjectKey{Name: "a"}, claim); err != nil {
			t.Error(err)
		}
		claim.Status.ProviderID = "aws:///us-east-1a/i-1"
		if err := kube.Status().Update(t.Context(), claim); err != nil {
			t.Error(err)
		}
	}
	got := sweepOnce(t, New(Config{Cluster: "c", Kube: kube, Cloud: instances, Temporal: server, Mirror: sweptMirror{}, Log: zap.NewNop()}))
	if len(got.Terminated)+len(instances.terminated) > 0 {
		t.Errorf("the instance of a claim was terminated: %v", instances.terminated)
	}
}

// TestSweepTellsNobodyOfAClaimThatIsGone has a node's life end after the sweep has read the claims and before it looks for
// the life's workflow: the node was removed for another reason, and no second one is recorded.
func TestSweepTellsNobodyOfAClaimThatIsGone(t *testing.T) {
	t.Parallel()
	for name, instances := range map[string][]cloud.Instance{"instance gone": nil, "instance seen": {sweptInstance("i-1", "g", old)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := sweptClaim("a", "g", "i-1", old)
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).Build()
			server := &sweptTemporal{signaled: map[string]workflows.Ending{}}
			server.asked = func(id string) {
				if id == "c/nodeclaim/a" {
					if err := kube.Delete(context.WithoutCancel(t.Context()), claim); err != nil {
						t.Error(err)
					}
				}
			}
			sweepOnce(t, New(Config{Cluster: "c", Kube: kube, Cloud: &sweptCloud{instances: instances}, Temporal: server, Mirror: sweptMirror{}, Log: zap.NewNop()}))
			if len(server.signaled)+len(server.started) > 0 {
				t.Errorf("told %v, started %v", server.signaled, server.started)
			}
		})
	}
}

func sweepOnce(t *testing.T, a *Activities) workflows.SweepResult {
	t.Helper()
	return sweepAgain(t, a, nil)
}

// sweepAgain sweeps with what the last sweep knew of leftovers.
func sweepAgain(t *testing.T, a *Activities, known *workflows.Leftovers) workflows.SweepResult {
	t.Helper()
	if mirror, ok := a.sweeper.mirror.(sweptMirror); ok {
		mirror.kube = a.sweeper.objects
		a.sweeper.mirror = mirror
	}
	var suite testsuite.WorkflowTestSuite
	environment := suite.NewTestActivityEnvironment()
	environment.RegisterActivity(a.Sweep)
	value, err := environment.ExecuteActivity(a.Sweep, workflows.SweepInput{Cluster: "c", Leftovers: known})
	if err != nil {
		t.Fatal(err)
	}
	var result workflows.SweepResult
	if err := value.Get(&result); err != nil {
		t.Fatal(err)
	}
	return result
}
