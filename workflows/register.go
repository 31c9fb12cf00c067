// Package workflows orchestrates the lives of a cluster's nodes: deterministic workflow code, and nothing else.
//
// Reading order: activity, failures, names, interruption, plannedclaim, provisioningpayloads, launchpayloads,
// nodeclaimpayloads, adoption, hookpayloads, drainpayloads, disruptionpayloads, replacementpayloads, replacementorderpayloads,
// approvalpayloads, sweeppayloads, whypayloads, policies, priority, start, launch, drain, drainorders, draindetails, nodeclaim,
// attach, series, singleton, retire, replacementdetails, replacement, replacementorder, approval, provisioning, why, disruption,
// whynode, sweep, register.
//
// # The workflows
//
//	Provisioning  for ever    pods are pending → one plan → a Launch per group of alike claims
//	Launch        seconds     one CreateFleet, exactly once → a NodeClaim workflow per instance
//	NodeClaim     the node's  join → serve until something ends it → drain → terminate
//	Drain         minutes     cordon, hooks, evict in order under budgets, wait for volumes, by a deadline
//	Disruption    for ever    something changed → one evaluation → empty nodes are removed, others through Replacements
//	Replacement   minutes     mark → launch → initialized → stable → check again → delete the claims; or undo everything
//	ReplacementOrder  seconds  a person orders nodes to be replaced → a Replacement for each
//	Approval      days        a person has to approve a decision → what they decide is written onto the claims
//	Sweep         seconds     compares cloud, cluster and workflows, and puts right what nobody owns
//
// # How they are written
//
// Each workflow is a struct of durable state and a loop that waits in one place. Signals report facts and change only the
// state; updates are orders from people and have validators. All durable state is in the input, so that a workflow can
// continue as new at any quiet point.
//
// Workflows know neither Kubernetes nor AWS. Every side effect is an activity. policies.go declares the activities with
// their types, timeouts and retries, and package activities implements them. Payloads are names and numbers.
//
// # Which build runs them
//
// All workflows upgrade automatically: each task runs on the build that is current at that moment, older or newer than the
// one before. No workflow is pinned to the build that started it, because nobody keeps that build's workers running until
// the workflow ends (package worker says why). So a change in what a workflow does is marked with workflow.GetVersion, and
// recorded histories are replayed.
//
// # What it costs
//
// An uneventful node life is budgeted at 12 actions and 50 history events including its drain and its share of the
// launch; a test counts them. That is why Join is one activity which waits, why search attributes are written once
// only, why many workflows are started by one activity, and why nothing is signalled that an activity can see for itself.
package workflows

import (
	"context"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Activities lists every side effect of the workflows. Package activities implements it.
type Activities interface {
	Plan(context.Context, PlanInput) (PlanResult, error)
	WhyPod(context.Context, PodQuestion) (PodAnswer, error)
	WhyNode(context.Context, NodeQuestion) (NodeAnswer, error)
	PrepareLaunch(context.Context, LaunchGroup) (PreparedLaunch, error)
	CreateFleet(context.Context, CreateFleetInput) (Fleet, error)
	FindInstances(context.Context, FindInstancesInput) (Found, error)
	ReleaseClaims(context.Context, ReleaseClaimsInput) (struct{}, error)
	StartNodeClaims(context.Context, StartNodeClaimsInput) (struct{}, error)
	Join(context.Context, JoinInput) (JoinResult, error)
	Terminate(context.Context, TerminateInput) (struct{}, error)
	DeleteClaim(context.Context, DeleteClaimInput) (Ending, error)
	Evict(context.Context, EvictInput) (EvictResult, error)
	Uncordon(context.Context, UncordonInput) (struct{}, error)
	Hooks(context.Context, HookInput) (HookResult, error)
	Evaluate(context.Context, EvaluateInput) (Evaluation, error)
	Remove(context.Context, Removal) (RemovalResult, error)
	BeginReplacement(context.Context, ReplacementCommand) (BeginResult, error)
	AwaitReplacements(context.Context, AwaitReplacementsInput) (Awaited, error)
	Retire(context.Context, RetireInput) (RetireResult, error)
	AwaitMoved(context.Context, AwaitMovedInput) (MovedPods, error)
	UndoReplacement(context.Context, UndoInput) (Undone, error)
	AskApproval(context.Context, AskApprovalInput) (ApprovalChecked, error)
	SettleApproval(context.Context, SettleApprovalInput) (ApprovalChecked, error)
	PlanReplacements(context.Context, ReplacementOrderInput) (PlannedReplacements, error)
	Sweep(context.Context, SweepInput) (SweepResult, error)
}

// Register registers every workflow.
func Register(r worker.WorkflowRegistry) {
	for name, definition := range map[string]any{
		ProvisioningType: Provisioning,
		LaunchType:       Launch,
		NodeClaimType:    NodeClaim,
		DrainType:        Drain,
		DisruptionType:   Disruption,
		ReplacementType:  Replacement,
		ApprovalType:     Approval,
		SweepType:        Sweep,

		ReplacementOrderType: ReplacementOrder,
	} {
		r.RegisterWorkflowWithOptions(definition, workflow.RegisterOptions{Name: name})
	}
}

// RegisterActivities registers every activity under the name its workflows use.
func RegisterActivities(r worker.ActivityRegistry, a Activities) {
	PlanActivity.register(r, a.Plan)
	WhyPodActivity.register(r, a.WhyPod)
	WhyNodeActivity.register(r, a.WhyNode)
	PrepareLaunchActivity.register(r, a.PrepareLaunch)
	CreateFleetActivity.register(r, a.CreateFleet)
	FindInstancesActivity.register(r, a.FindInstances)
	ReleaseClaimsActivity.register(r, a.ReleaseClaims)
	StartNodeClaimsActivity.register(r, a.StartNodeClaims)
	JoinActivity.register(r, a.Join)
	TerminateActivity.register(r, a.Terminate)
	DeleteClaimActivity.register(r, a.DeleteClaim)
	EvictActivity.register(r, a.Evict)
	UncordonActivity.register(r, a.Uncordon)
	HooksActivity.register(r, a.Hooks)
	EvaluateActivity.register(r, a.Evaluate)
	RemoveActivity.register(r, a.Remove)
	BeginReplacementActivity.register(r, a.BeginReplacement)
	AwaitReplacementsActivity.register(r, a.AwaitReplacements)
	RetireActivity.register(r, a.Retire)
	AwaitMovedActivity.register(r, a.AwaitMoved)
	UndoReplacementActivity.register(r, a.UndoReplacement)
	AskApprovalActivity.register(r, a.AskApproval)
	SettleApprovalActivity.register(r, a.SettleApproval)
	PlanReplacementsActivity.register(r, a.PlanReplacements)
	SweepActivity.register(r, a.Sweep)
}

func (a Activity[In, Out]) register(r worker.ActivityRegistry, do func(context.Context, In) (Out, error)) {
	r.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: a.Name})
}
