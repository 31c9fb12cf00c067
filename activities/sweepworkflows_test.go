package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/workflows"
)

// life is a workflow on a fake Temporal server.
type life struct {
	id, uid, clusterUID, instance string
	age                           time.Duration
	status                        enumspb.WorkflowExecutionStatus
	pending                       string
	// problem is what Temporal reports about a workflow that makes no progress.
	problem string
	// listedOnly is a workflow that the list shows and the server does not have.
	listedOnly bool
}

// livesServer lists workflows and records what they were told.
type livesServer struct {
	temporal.Client
	lives []life
	told  map[string]any
	// started has the ids of the workflows that were started.
	started []string
	// old means that the server does not report problems.
	old bool
}

func payload(value any) *commonpb.Payload {
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return p
}

func (s *livesServer) info(l *life) *workflowpb.WorkflowExecutionInfo {
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: l.id, RunId: "run of " + l.id}, Status: l.status, StartTime: timestamppb.New(time.Now().Add(-l.age)),
		Memo:             &commonpb.Memo{Fields: map[string]*commonpb.Payload{workflows.MemoUID: payload(l.uid), workflows.MemoClusterUID: payload(l.clusterUID)}},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{workflows.AttrInstance.GetName(): payload(l.instance)}},
	}
}

func (s *livesServer) ListWorkflow(_ context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	var page workflowservice.ListWorkflowExecutionsResponse
	problems := strings.Contains(request.GetQuery(), reportedProblems)
	if problems && s.old {
		return nil, serviceerror.NewInvalidArgument("invalid search attribute: " + reportedProblems)
	}
	for i := range s.lives {
		l := &s.lives[i]
		if problems {
			if l.problem != "" {
				info := s.info(l)
				info.SearchAttributes.IndexedFields[reportedProblems] = payload([]string{l.problem})
				page.Executions = append(page.Executions, info)
			}
			continue
		}
		if l.status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && (strings.Contains(l.id, "/nodeclaim/") || strings.Contains(l.id, "/drain/")) {
			page.Executions = append(page.Executions, s.info(l))
		}
	}
	return &page, nil
}

func (s *livesServer) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	for i := range s.lives {
		if l := &s.lives[i]; l.id == id && !l.listedOnly {
			described := &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: s.info(l)}
			if l.pending != "" {
				described.PendingActivities = []*workflowpb.PendingActivityInfo{{ActivityType: &commonpb.ActivityType{Name: l.pending}}}
			}
			return described, nil
		}
	}
	return nil, serviceerror.NewNotFound(id)
}

func (s *livesServer) SignalWorkflow(_ context.Context, id, _, _ string, fact any) error {
	if strings.Contains(id, "poison") {
		return errors.New("the shard is gone")
	}
	s.told[id] = fact
	return nil
}

func (s *livesServer) ExecuteWorkflow(_ context.Context, options temporal.StartWorkflowOptions, _ any, _ ...any) (temporal.WorkflowRun, error) {
	s.started = append(s.started, options.ID)
	return nil, nil
}

const runs = enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING

// sweptLives returns n workflows of claims, each with its claim, unless that is gone, and its instance.
func sweptLives(n int, gone func(i int) bool) (lives []life, claims []client.Object, instances []cloud.Instance) {
	for i := range n {
		name, instance := fmt.Sprintf("a%02d", i), fmt.Sprintf("i-%02d", i)
		lives = append(lives, life{id: "c/nodeclaim/" + name, uid: "uid-" + name, clusterUID: "own", instance: instance, age: old, status: runs})
		instances = append(instances, sweptInstance(instance, "g", old))
		if !gone(i) {
			claims = append(claims, sweptClaim(name, "g", instance, old))
		}
	}
	return lives, claims, instances
}

// TestSweepEndsWorkflowsOfClaimsThatAreGone has claims vanish one by one, all at once, and with their cluster.
func TestSweepEndsWorkflowsOfClaimsThatAreGone(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		lives  int
		gone   func(i int) bool
		change func(l *life)
		// alone means that the claims' instances are gone with them.
		alone bool
		most  float64
		// told is how many workflows are told the reason.
		told     int
		why      string
		withheld int
		stopped  bool
		failures int
	}{
		"nothing is gone": {lives: 20, gone: func(int) bool { return false }},
		"one claim's finalizer was taken off by hand": {lives: 20, gone: func(i int) bool { return i == 3 }, told: 1, why: workflows.ReasonClaimGone},
		"its claim may not be listed yet": {lives: 20, gone: func(i int) bool { return i == 3 },
			change: func(l *life) { l.age = adoptAge / 2 }},
		"another claim has the name by now": {lives: 20, gone: func(int) bool { return false }, change: func(l *life) {
			if l.id == "c/nodeclaim/a03" {
				l.uid = "uid-before"
			}
		}, told: 1, why: workflows.ReasonClaimGone},
		"a workflow of before there were memos goes by its name":        {lives: 20, gone: func(int) bool { return false }, change: func(l *life) { l.uid, l.clusterUID = "", "" }},
		"few are ended at a time":                                       {lives: 20, gone: func(i int) bool { return i < 8 }, told: 3, withheld: 5, why: workflows.ReasonClaimGone},
		"a tenth of many":                                               {lives: 90, gone: func(i int) bool { return i < 20 }, told: 9, withheld: 11, why: workflows.ReasonClaimGone},
		"most claims vanish at once":                                    {lives: 20, gone: func(i int) bool { return i < 19 }, stopped: true},
		"another controller has ended most nodes, claims and instances": {lives: 20, gone: func(i int) bool { return i < 19 }, alone: true, told: 19, why: workflows.ReasonClaimGone},
		"and that is meant":                                             {lives: 20, gone: func(i int) bool { return i < 19 }, most: 1, told: 19, why: workflows.ReasonClaimGone},
		"the cluster was made again under its old name": {lives: 20, gone: func(int) bool { return true },
			change: func(l *life) { l.clusterUID = "before" }, told: 20, why: workflows.ReasonClusterGone},
		"one that cannot be told keeps no other from it": {lives: 20, gone: func(i int) bool { return i < 2 }, change: func(l *life) {
			l.id = strings.Replace(l.id, "a00", "poison", 1)
		}, told: 1, why: workflows.ReasonClaimGone, failures: 1},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			lives, claims, instances := sweptLives(test.lives, test.gone)
			for i := range lives {
				if test.change != nil {
					test.change(&lives[i])
				}
			}
			if test.alone {
				instances = instances[len(lives)-len(claims):]
			}
			server, provider := &livesServer{lives: lives, told: map[string]any{}}, &sweptCloud{instances: instances}
			got := sweepOnce(t, New(Config{Cluster: "c", ClusterUID: "own", SweepMost: max(test.most, SweepMost), Temporal: server, Cloud: provider, Mirror: sweptMirror{}, Log: zap.NewNop(),
				Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claims...).Build()}))
			if len(server.told) != test.told || len(got.Ended) != test.told {
				t.Errorf("told %d workflows and reports %v, want %d", len(server.told), got.Ended, test.told)
			}
			for id, fact := range server.told {
				if ending, ok := fact.(workflows.Ending); !ok || ending.Reason != test.why || !ending.Deleting || ending.Lost {
					t.Errorf("%s was told %+v", id, fact)
				}
			}
			if got.Withheld != test.withheld || (got.Stopped != "") != test.stopped || got.Failures != test.failures || len(got.Failed) != test.failures {
				t.Errorf("withheld %d, stopped %q, failed %v", got.Withheld, got.Stopped, got.Failed)
			}
			if len(provider.terminated) > 0 {
				t.Errorf("instances were terminated whose workflows drain them: %v", provider.terminated)
			}
		})
	}
}

// TestSweepBoundsWhatItTerminates has many instances that neither a claim nor a workflow knows.
func TestSweepBoundsWhatItTerminates(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		share      float64
		orphans    int
		terminated int
		withheld   int
		stopped    bool
	}{
		"a tenth of all at a time":              {share: SweepMost, orphans: 20, terminated: 5, withheld: 15, stopped: false},
		"three at least":                        {share: 0.01, orphans: 20, terminated: minSweep, withheld: 20 - minSweep, stopped: false},
		"as many as it is told":                 {share: 1, orphans: 50, terminated: 50, withheld: 0, stopped: false},
		"they may be another cluster's of this": {share: SweepMost, orphans: 50, terminated: 0, withheld: 0, stopped: true},
	} {
		lives, claims, instances := sweptLives(50, func(i int) bool { return i < test.orphans })
		provider := &sweptCloud{instances: instances}
		got := sweepOnce(t, New(Config{Cluster: "c", SweepMost: test.share, Temporal: &livesServer{lives: lives[test.orphans:], told: map[string]any{}}, Cloud: provider, Mirror: sweptMirror{},
			Log: zap.NewNop(), Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claims...).Build()}))
		if len(provider.terminated) != test.terminated || got.Withheld != test.withheld || (got.Stopped != "") != test.stopped {
			t.Errorf("%s: of %d, %d were terminated and %d withheld, stopped %q", reason, test.orphans, len(provider.terminated), got.Withheld, got.Stopped)
		}
	}
}

// TestSweepDoubtsACloudWithoutInstances has the cloud show none of the instances of many claims whose nodes are not ready.
func TestSweepDoubtsACloudWithoutInstances(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		claims, shown int
		share         float64
		lost          int
		stopped       bool
	}{
		"a zone went down":                         {claims: 20, shown: 12, share: SweepMost, lost: 8, stopped: false},
		"all of a few are gone":                    {claims: 3, shown: 0, share: SweepMost, lost: 3, stopped: false},
		"the worker asks another account, perhaps": {claims: 20, shown: 0, share: SweepMost, lost: 0, stopped: true},
		"and they are gone indeed":                 {claims: 20, shown: 0, share: 1, lost: 20, stopped: false},
	} {
		lives, claims, instances := sweptLives(test.claims, func(int) bool { return false })
		got := sweepOnce(t, New(Config{Cluster: "c", SweepMost: test.share, Temporal: &livesServer{lives: lives, told: map[string]any{}}, Cloud: &sweptCloud{instances: instances[:test.shown]},
			Mirror: sweptMirror{}, Log: zap.NewNop(), Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claims...).Build()}))
		if len(got.Lost) != test.lost || (got.Stopped != "") != test.stopped {
			t.Errorf("%s: %d claims were told, stopped %q", reason, len(got.Lost), got.Stopped)
		}
	}
}

// TestSweepTellsWhoWaitsInVain has drains end by the buttons of Temporal's UI, and nodes vanish while their drains are
// paused.
func TestSweepTellsWhoWaitsInVain(t *testing.T) {
	t.Parallel()
	// Create a row's claim only when the row runs, which on a busy machine is a minute later.
	leaving := func(change func(*karpv1.NodeClaim)) func() *karpv1.NodeClaim {
		return func() *karpv1.NodeClaim {
			claim := sweptClaim("a", "g", "i-1", old)
			claim.Finalizers, claim.Status.NodeName = []string{karpv1.TerminationFinalizer}, "n"
			claim.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-old)}
			change(claim)
			return claim
		}
	}
	node := func(uid types.UID) *corev1.Node {
		node := sweptNode("n", "i-1", true, old)
		node.UID = uid
		return node
	}
	serving := life{id: "c/nodeclaim/a", uid: "uid-a", instance: "i-1", age: old, status: runs}
	drain := life{id: "c/drain/n", uid: "uid-n", age: old, status: runs}
	canceled := workflows.DrainResult{Outcome: workflows.DrainCanceled}
	for reason, test := range map[string]struct {
		claim func() *karpv1.NodeClaim
		node  *corev1.Node
		lives []life
		want  map[string]any
	}{
		"its drain was terminated": {claim: leaving(func(*karpv1.NodeClaim) {}), node: node("uid-n"), lives: []life{serving},
			want: map[string]any{"c/nodeclaim/a": canceled}},
		"its drain goes on": {claim: leaving(func(*karpv1.NodeClaim) {}), node: node("uid-n"), lives: []life{serving, drain}, want: map[string]any{}},
		"it was deleted a moment ago": {claim: leaving(func(c *karpv1.NodeClaim) { c.DeletionTimestamp.Time = time.Now() }),
			node: node("uid-n"), lives: []life{serving}, want: map[string]any{}},
		"its instance ends by now": {claim: leaving(func(c *karpv1.NodeClaim) {
			c.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeInstanceTerminating, Status: metav1.ConditionTrue})
		}), node: node("uid-n"), lives: []life{serving}, want: map[string]any{}},
		"the node of a drain is gone": {claim: nil, lives: []life{drain}, want: map[string]any{"c/drain/n": workflows.DrainWaiter{Gone: true}}},
		"another node has its name": {claim: nil, node: node("uid-later"), lives: []life{drain},
			want: map[string]any{"c/drain/n": workflows.DrainWaiter{Gone: true}}},
		"nobody knows the drain's UID": {claim: nil, lives: []life{{id: drain.id, age: old, status: runs}}, want: map[string]any{}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if test.claim != nil {
				objects = append(objects, test.claim())
			}
			if test.node != nil {
				objects = append(objects, test.node)
			}
			server := &livesServer{lives: test.lives, told: map[string]any{}}
			sweepOnce(t, New(Config{Cluster: "c", SweepMost: SweepMost, Temporal: server, Cloud: &sweptCloud{instances: []cloud.Instance{sweptInstance("i-1", "g", old)}},
				Mirror: sweptMirror{}, Log: zap.NewNop(), Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build()}))
			if diff := cmp.Diff(test.want, server.told); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSweepOpensWhatNobodyKeepsClosed has a node marked by each kind of workflow that marks nodes, and that workflow ended
// by a button of Temporal's UI.
func TestSweepOpensWhatNobodyKeepsClosed(t *testing.T) {
	t.Parallel()
	const terminated, completed = enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
	reason := map[string]string{karpv1.RemovalReasonAnnotationKey: "Empty"}
	byHand := map[string]string{drainedAnnotation: "true"}
	replaced := map[string]string{karpv1.ReplacementAnnotationKey: "r1"}
	for name, test := range map[string]struct {
		notes map[string]string
		lives []life
		opens bool
	}{
		"a removal goes on": {notes: reason,
			lives: []life{{id: "c/disruption", status: runs, pending: workflows.RemoveActivity.Name}}, opens: false},
		"Disruption was terminated while it removed": {notes: reason, lives: []life{{id: "c/disruption", status: terminated}}, opens: true},
		"Disruption runs, and removes nothing": {notes: reason,
			lives: []life{{id: "c/disruption", status: runs, pending: workflows.EvaluateActivity.Name}}, opens: true},
		"a replacement lets it go": {notes: map[string]string{karpv1.RemovalReasonAnnotationKey: "Drifted", karpv1.ReplacementAnnotationKey: "r1"},
			lives: []life{{id: "c/replacement/r1", status: runs}}, opens: false},
		"the replacement was terminated":             {notes: replaced, lives: []life{{id: "c/replacement/r1", status: terminated}}, opens: true},
		"somebody drains it":                         {notes: byHand, lives: []life{{id: "c/drain/n", status: runs}}, opens: false},
		"somebody has drained it and kept it":        {notes: byHand, lives: []life{{id: "c/drain/n", status: completed}}, opens: false},
		"somebody did long ago, and Temporal forgot": {notes: byHand, opens: false},
		"the drain by hand was cancelled in the UI": {notes: byHand,
			lives: []life{{id: "c/drain/n", status: enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED}}, opens: true},
		"the drain by hand was terminated in the UI":   {notes: byHand, lives: []life{{id: "c/drain/n", status: terminated}}, opens: true},
		"nothing says who closed it, as in old drains": {notes: nil, opens: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := sweptNode("n", "i-1", true, old)
			cordonClaimed(node)
			for key, value := range test.notes {
				setAnnotation(node, key, value)
			}
			claim := sweptClaim("a", "g", "i-1", old)
			kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithStatusSubresource(&karpv1.NodeClaim{}).WithObjects(node, claim).Build()
			lives := append([]life{{id: "c/nodeclaim/a", uid: "uid-a", instance: "i-1", age: old, status: runs}}, test.lives...)
			got := sweepOnce(t, New(Config{Cluster: "c", SweepMost: SweepMost, Temporal: &livesServer{lives: lives, told: map[string]any{}}, Mirror: sweptMirror{nodes: []*corev1.Node{node}},
				Cloud: &sweptCloud{instances: []cloud.Instance{sweptInstance("i-1", "g", old)}}, Log: zap.NewNop(), Events: record.NewFakeRecorder(10), Kube: kube}))
			var now corev1.Node
			if err := kube.Get(t.Context(), client.ObjectKey{Name: "n"}, &now); err != nil {
				t.Fatal(err)
			}
			if opened := !disrupted(&now); opened != test.opens || (len(got.Unmarked) == 1) != test.opens || got.Failures > 0 {
				t.Errorf("opened %v (%v, %v), want %v", opened, got.Unmarked, got.Failed, test.opens)
			}
			if notes := now.Annotations[karpv1.RemovalReasonAnnotationKey] + now.Annotations[drainedAnnotation] + now.Annotations[karpv1.ReplacementAnnotationKey]; test.opens && notes != "" {
				t.Errorf("a node that serves on carries %v", now.Annotations)
			}
		})
	}
}

// TestSweepNamesWorkflowsThatDoNotGoOn has Temporal report that the workflow tasks of two workflows fail.
func TestSweepNamesWorkflowsThatDoNotGoOn(t *testing.T) {
	t.Parallel()
	const problem = "category=WorkflowTaskFailed cause=WorkflowTaskFailedCauseNonDeterministicError"
	lives, claims, instances := sweptLives(4, func(int) bool { return false })
	lives[1].problem = problem
	lives = append(lives, life{id: "c/disruption", problem: problem})
	for _, old := range []bool{false, true} {
		registry, events := prometheus.NewRegistry(), record.NewFakeRecorder(10)
		metrics, err := NewSweepMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		acts := New(Config{Cluster: "c", ClusterUID: "own", SweepMost: SweepMost, Temporal: &livesServer{lives: lives, old: old}, Cloud: &sweptCloud{instances: instances},
			Mirror: sweptMirror{}, Log: zap.NewNop(), Events: events, SweepMetrics: metrics, Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claims...).Build()})
		for range 2 {
			got := sweepOnce(t, acts)
			want := []string{lives[1].id + " " + problem, "c/disruption " + problem}
			if old {
				want = nil
			}
			if diff := cmp.Diff(want, got.Stuck); diff != "" || got.Failures > 0 {
				t.Errorf("old server %v: failed %v, stuck (-want +got):\n%s", old, got.Failed, diff)
			}
		}
		if told, want := len(events.Events), map[bool]int{false: 2, true: 0}[old]; told != want {
			t.Errorf("old server %v: %d Events, want %d: each is told of once", old, told, want)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if want := map[bool]float64{false: 2}[old]; family.GetName() == "tenon_sweep_stuck_workflows" && family.GetMetric()[0].GetGauge().GetValue() != want {
				t.Errorf("old server %v: the metric says %v", old, family.GetMetric())
			}
		}
	}
}
