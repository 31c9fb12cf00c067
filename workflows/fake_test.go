package workflows

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/tenon-sh/tenon/cloud"
)

// fakes are activities with answers that a test sets. Activities that a test leaves out must not be called.
type fakes struct {
	Activities
	plan    func(PlanInput) (PlanResult, error)
	why     func(PodQuestion) (PodAnswer, error)
	prepare func(LaunchGroup) (PreparedLaunch, error)
	fleet   func(CreateFleetInput) (Fleet, error)
	find    func(FindInstancesInput) (Found, error)
	release func(ReleaseClaimsInput)
	start   func(StartNodeClaimsInput) error
	join    func(context.Context, JoinInput) (JoinResult, error)
	end     func(TerminateInput)
	delete  func(DeleteClaimInput) Ending
	look    func() Evaluation
	remove  func(Removal) RemovalResult
	// asked receives the input of Evaluate, if set.
	asked func(EvaluateInput)
	begin func(ReplacementCommand) (BeginResult, error)
	await func(context.Context, AwaitReplacementsInput) (Awaited, error)
	let   func(RetireInput) RetireResult
	moved func(AwaitMovedInput) MovedPods
	undo  func(UndoInput) Undone
	hooks func(HookInput) (HookResult, error)
	// ask and settle are those of an Approval.
	ask    func(AskApprovalInput) ApprovalChecked
	settle func(SettleApprovalInput) ApprovalChecked
	order  func(ReplacementOrderInput) (PlannedReplacements, error)
}

func (f *fakes) Plan(_ context.Context, in PlanInput) (PlanResult, error) { return f.plan(in) }
func (f *fakes) WhyPod(_ context.Context, in PodQuestion) (PodAnswer, error) {
	return f.why(in)
}
func (f *fakes) PrepareLaunch(_ context.Context, in LaunchGroup) (PreparedLaunch, error) {
	return f.prepare(in)
}
func (f *fakes) CreateFleet(_ context.Context, in CreateFleetInput) (Fleet, error) {
	return f.fleet(in)
}
func (f *fakes) FindInstances(_ context.Context, in FindInstancesInput) (Found, error) {
	return f.find(in)
}
func (f *fakes) ReleaseClaims(_ context.Context, in ReleaseClaimsInput) (struct{}, error) {
	f.release(in)
	return struct{}{}, nil
}
func (f *fakes) StartNodeClaims(_ context.Context, in StartNodeClaimsInput) (struct{}, error) {
	return struct{}{}, f.start(in)
}
func (f *fakes) Join(ctx context.Context, in JoinInput) (JoinResult, error) { return f.join(ctx, in) }
func (f *fakes) Terminate(_ context.Context, in TerminateInput) (struct{}, error) {
	f.end(in)
	return struct{}{}, nil
}
func (f *fakes) DeleteClaim(_ context.Context, in DeleteClaimInput) (Ending, error) {
	return f.delete(in), nil
}
func (f *fakes) Evaluate(_ context.Context, in EvaluateInput) (Evaluation, error) {
	if f.asked != nil {
		f.asked(in)
	}
	return f.look(), nil
}
func (f *fakes) BeginReplacement(_ context.Context, in ReplacementCommand) (BeginResult, error) {
	return f.begin(in)
}
func (f *fakes) AwaitReplacements(ctx context.Context, in AwaitReplacementsInput) (Awaited, error) {
	return f.await(ctx, in)
}
func (f *fakes) Retire(_ context.Context, in RetireInput) (RetireResult, error) {
	return f.let(in), nil
}
func (f *fakes) AwaitMoved(_ context.Context, in AwaitMovedInput) (MovedPods, error) {
	return f.moved(in), nil
}
func (f *fakes) UndoReplacement(_ context.Context, in UndoInput) (Undone, error) {
	return f.undo(in), nil
}
func (f *fakes) AskApproval(_ context.Context, in AskApprovalInput) (ApprovalChecked, error) {
	return f.ask(in), nil
}
func (f *fakes) SettleApproval(_ context.Context, in SettleApprovalInput) (ApprovalChecked, error) {
	return f.settle(in), nil
}
func (f *fakes) PlanReplacements(_ context.Context, in ReplacementOrderInput) (PlannedReplacements, error) {
	return f.order(in)
}
func (f *fakes) Remove(_ context.Context, in Removal) (RemovalResult, error) {
	return f.remove(in), nil
}

func (f *fakes) Hooks(_ context.Context, in HookInput) (HookResult, error) { return f.hooks(in) }

// environment returns a workflow environment with these activities, in which a claim's launch never fails by itself.
func environment(t *testing.T, f *fakes) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(30 * time.Second)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: 20 * time.Second}) // the machine may be busy
	Register(env)
	f.register(env)
	return env
}

func (f *fakes) register(env *testsuite.TestWorkflowEnvironment) {
	PlanActivity.register(env, f.Plan)
	WhyPodActivity.register(env, f.WhyPod)
	PrepareLaunchActivity.register(env, f.PrepareLaunch)
	CreateFleetActivity.register(env, f.CreateFleet)
	FindInstancesActivity.register(env, f.FindInstances)
	ReleaseClaimsActivity.register(env, f.ReleaseClaims)
	StartNodeClaimsActivity.register(env, f.StartNodeClaims)
	JoinActivity.register(env, f.Join)
	TerminateActivity.register(env, f.Terminate)
	DeleteClaimActivity.register(env, f.DeleteClaim)
	EvaluateActivity.register(env, f.Evaluate)
	RemoveActivity.register(env, f.Remove)
	BeginReplacementActivity.register(env, f.BeginReplacement)
	AwaitReplacementsActivity.register(env, f.AwaitReplacements)
	RetireActivity.register(env, f.Retire)
	AwaitMovedActivity.register(env, f.AwaitMoved)
	UndoReplacementActivity.register(env, f.UndoReplacement)
	HooksActivity.register(env, f.Hooks)
	AskApprovalActivity.register(env, f.AskApproval)
	SettleApprovalActivity.register(env, f.SettleApproval)
	PlanReplacementsActivity.register(env, f.PlanReplacements)
}

// prepared returns a prepared launch of these claims.
func prepared(claims ...ClaimRef) PreparedLaunch {
	return PreparedLaunch{Claims: claims, Request: cloud.LaunchRequest{Group: "g", Count: len(claims), CapacityType: "on-demand"}}
}

func instance(id string) Instance {
	return Instance{ID: id, ProviderID: "aws:///us-east-1a/" + id, InstanceType: "m6i.large", Zone: "us-east-1a", CapacityType: "on-demand"}
}
