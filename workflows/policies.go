package workflows

import "time"

// The side effects with their timeouts and retries, in one place. The reasons:
//
//   - Attempt limits one try, and is as short as the slowest legitimate try: a fleet call takes seconds, but may wait in
//     a throttled queue, hence 90 seconds.
//   - Total is set only where giving up leads to another decision. Whatever must happen in the end (terminating an
//     instance, removing a finalizer) has none: giving up would leak.
//   - Every activity has a Heartbeat: a killed worker is noticed after that long, and a cancellation reaches the activity
//     with the next one. An activity that ends before half of it has passed sends none. Waiting for a boot heartbeats
//     slowly, since each heartbeat is a billed action.
//   - Pauses double from First to Most. Activities that know better (EC2 said when to retry, a budget is blocked) ask for
//     their own next delay.
var (
	// PlanActivity waits for the burst of pods to end, plans them from the mirror and creates the NodeClaims. If a worker
	// dies midway, the next try finds the claims already created by the plan's id.
	PlanActivity = Activity[PlanInput, PlanResult]{"Plan", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 30 * time.Second}}
	// WhyPodActivity makes a plan to answer one person's question, and changes nothing. Since somebody waits for the answer,
	// it gives up sooner than any other activity.
	WhyPodActivity = Activity[PodQuestion, PodAnswer]{"WhyPod", Policy{Attempt: 30 * time.Second, Total: time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 2 * time.Second}}

	// PrepareLaunchActivity resolves a launch group into the complete fleet request. Karpenter gives a launch five minutes
	// (its LaunchTimeout); after that the claims are released and their pods planned again.
	PrepareLaunchActivity = Activity[LaunchGroup, PreparedLaunch]{"PrepareLaunch", Policy{Attempt: time.Minute, Total: launchTimeout, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// CreateFleetActivity sends the request. A throttled call may sit in the client's own queue for a while before it is
	// sent, hence the long attempt. If the worker dies with the answer, pods wait until that is noticed and the cloud has
	// been searched, hence the short heartbeat.
	CreateFleetActivity = Activity[CreateFleetInput, Fleet]{"CreateFleet", Policy{Attempt: 90 * time.Second, Total: launchTimeout, Heartbeat: 10 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// FindInstancesActivity looks for the instances of a launch group. It is retried without limit: until it succeeds, an
	// instance may be running that nobody owns.
	FindInstancesActivity = Activity[FindInstancesInput, Found]{"FindInstances", Policy{Attempt: 2 * time.Minute, Heartbeat: 15 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// ReleaseClaimsActivity deletes claims that got no instance.
	ReleaseClaimsActivity = Activity[ReleaseClaimsInput, struct{}]{"ReleaseClaims", kubeWrite}
	// StartNodeClaimsActivity starts the workflows of claims that have instances. It is retried without limit: an instance
	// without a workflow belongs to nobody until the next sweep.
	StartNodeClaimsActivity = Activity[StartNodeClaimsInput, struct{}]{"StartNodeClaims", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}

	// JoinActivity records the launch on the claim, waits for the Node, registers it and waits until it is initialized. It
	// is one activity, rather than three with signals between them, because a life must fit its budget of events. It returns
	// after twenty minutes in any case, since a node may take for ever to initialize.
	JoinActivity = Activity[JoinInput, JoinResult]{"Join", Policy{Attempt: 25 * time.Minute, Heartbeat: 30 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// TerminateActivity terminates the instance, waits until the cloud reports it gone, and removes the finalizers.
	TerminateActivity = Activity[TerminateInput, struct{}]{"Terminate", Policy{Attempt: 20 * time.Minute, Heartbeat: 20 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// DeleteClaimActivity deletes the NodeClaim object and returns the deadline for draining its node.
	DeleteClaimActivity = Activity[DeleteClaimInput, Ending]{"DeleteClaim", kubeWrite}

	// EvictActivity cordons a node and evicts its pods until none is left. It returns when the node is drained, when the
	// blockers have changed, so that the workflow can show them, and after half an hour at the latest.
	EvictActivity = Activity[EvictInput, EvictResult]{"Evict", Policy{Attempt: 35 * time.Minute, Heartbeat: 15 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// HooksActivity runs hooks of a NodePool one after the other, each within its own time.
	HooksActivity = Activity[HookInput, HookResult]{"Hooks", Policy{Attempt: 5 * time.Hour, Heartbeat: 15 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// UncordonActivity reverts what EvictActivity did to the node itself, after a drain was cancelled.
	UncordonActivity = Activity[UncordonInput, struct{}]{"Uncordon", kubeWrite}

	// EvaluateActivity decides from the mirror which nodes are not needed. A stale mirror is an error, so the activity is
	// retried until the mirror is fresh again: nothing is disrupted on a stale view.
	EvaluateActivity = Activity[EvaluateInput, Evaluation]{"Evaluate", Policy{Attempt: time.Minute, Heartbeat: 10 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// RemoveActivity taints the nodes of a removal, checks once more whether they are needed, and deletes the claims of
	// those that are not.
	RemoveActivity = Activity[Removal, RemovalResult]{"Remove", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}

	// BeginReplacementActivity creates the claims of a replacement and marks the nodes to be removed. If a worker dies
	// midway, the next try finds by the replacement's id what was done. A replacement that cannot begin within Total was
	// decided for a cluster that no longer exists in that state.
	BeginReplacementActivity = Activity[ReplacementCommand, BeginResult]{"BeginReplacement", Policy{Attempt: time.Minute, Total: 5 * time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// AwaitReplacementsActivity watches the mirror until claims serve. It heartbeats as slowly as Join.
	AwaitReplacementsActivity = Activity[AwaitReplacementsInput, Awaited]{"AwaitReplacements", Policy{Attempt: 2 * time.Hour, Heartbeat: 30 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// RetireActivity checks once more that the nodes of a replacement may be removed, and deletes their claims. If the
	// mirror stays stale for the whole of Total, the replacement is undone: nothing is disrupted on a stale view.
	RetireActivity = Activity[RetireInput, RetireResult]{"Retire", Policy{Attempt: 2 * time.Minute, Total: 20 * time.Minute, Heartbeat: 10 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// AwaitMovedActivity waits until moved pods are Ready elsewhere.
	AwaitMovedActivity = Activity[AwaitMovedInput, MovedPods]{"AwaitMoved", Policy{Attempt: 20 * time.Minute, Heartbeat: 30 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// UndoReplacementActivity undoes a replacement. It is retried without limit: a node that stayed marked would never be
	// used again.
	UndoReplacementActivity = Activity[UndoInput, Undone]{"UndoReplacement", kubeWrite}

	// AskApprovalActivity marks NodeClaims as waiting for a person, and tells people. SettleApprovalActivity writes down what
	// they have decided; it asks the planner whether an approved decision still holds, and needs a fresh mirror for that. Both
	// are retried without limit: a person's decision must not be lost.
	AskApprovalActivity    = Activity[AskApprovalInput, ApprovalChecked]{"AskApproval", kubeWrite}
	SettleApprovalActivity = Activity[SettleApprovalInput, ApprovalChecked]{"SettleApproval", Policy{Attempt: time.Minute, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// PlanReplacementsActivity decides how nodes are replaced that a person has ordered to be replaced, and changes nothing. It
	// gives up as soon as WhyPodActivity, for the same reason.
	PlanReplacementsActivity = Activity[ReplacementOrderInput, PlannedReplacements]{"PlanReplacements", WhyPodActivity.Policy}

	// SweepActivity compares cloud, cluster and workflows. It is tried twice; the next sweep follows soon anyway.
	SweepActivity = Activity[SweepInput, SweepResult]{"Sweep", Policy{Attempt: 2 * time.Minute, Heartbeat: 30 * time.Second, First: 5 * time.Second, Most: 10 * time.Second, Tries: 2}}
)

// kubeWrite is for single writes to the API server: quick, idempotent, and tried until they succeed.
var kubeWrite = Policy{Attempt: 30 * time.Second, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}

const (
	// launchTimeout is Karpenter's: a claim that is not launched by then is deleted and its pods are planned again.
	launchTimeout = 5 * time.Minute
	// RegistrationTimeout is Karpenter's: a claim whose node has not registered by then, counted from the launch, is
	// deleted. The Join activity keeps it, since it knows when the claim was launched.
	RegistrationTimeout = 15 * time.Minute
	// SweepInterval is how often cloud, cluster and workflows are compared while any of them changes.
	SweepInterval = 2 * time.Minute
	// SweepNet is how often they are compared in any case.
	SweepNet = 5 * SweepInterval
)
