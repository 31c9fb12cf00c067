package workflows

import "time"

// Every side effect, its timeouts and its retries, in one place. The reasons:
//
//   - Attempt bounds one try, so it is as short as the slowest honest try: a fleet call takes seconds, but EC2 may keep
//     it waiting in a throttled queue, so a minute.
//   - Total is set only where somebody has to decide differently afterwards. Whatever must happen in the end (terminate,
//     take a finalizer off) has none: giving up would leak.
//   - Every activity has a Heartbeat: a worker that is killed is noticed after that long, and a cancellation reaches the
//     activity with the next one. An activity that is over before half of it has passed sends none. Waiting for a boot
//     beats slowly, since each heartbeat is an action that somebody pays for.
//   - Pauses double from First to Most. Activities that know better (EC2 said when to come back, a budget is blocked)
//     ask for their own next delay.
var (
	// PlanActivity waits for the burst of pods to end, plans them over the mirror and creates the NodeClaims. A worker
	// that dies in it has created some of the claims; the next try finds them by the plan's id.
	PlanActivity = Activity[PlanInput, PlanResult]{"Plan", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 30 * time.Second}}
	// WhyPodActivity plans for one person who asks, and changes nothing. Somebody waits for the answer, so it is given up
	// sooner than any other activity.
	WhyPodActivity = Activity[PodQuestion, PodAnswer]{"WhyPod", Policy{Attempt: 30 * time.Second, Total: time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 2 * time.Second}}

	// PrepareLaunchActivity resolves a launch group into the complete fleet request. Karpenter gives a launch five
	// minutes (its LaunchTimeout); after that the claims are given back and their pods planned again.
	PrepareLaunchActivity = Activity[LaunchGroup, PreparedLaunch]{"PrepareLaunch", Policy{Attempt: time.Minute, Total: launchTimeout, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// CreateFleetActivity sends the request. A throttled call may sit in the client's own queue for a while before it is
	// sent, hence the long attempt.
	CreateFleetActivity = Activity[CreateFleetInput, Fleet]{"CreateFleet", Policy{Attempt: 90 * time.Second, Total: launchTimeout, Heartbeat: 15 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// FindInstancesActivity looks for what a launch group has got. It has no end: as long as nobody knows, an instance
	// may be running that nobody owns.
	FindInstancesActivity = Activity[FindInstancesInput, Found]{"FindInstances", Policy{Attempt: 2 * time.Minute, Heartbeat: 15 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// ReleaseClaimsActivity deletes claims that got no instance.
	ReleaseClaimsActivity = Activity[ReleaseClaimsInput, struct{}]{"ReleaseClaims", kubeWrite}
	// StartNodeClaimsActivity starts the workflows of claims that have got their instances. It has no end: without its
	// workflow, an instance belongs to nobody until the sweep comes.
	StartNodeClaimsActivity = Activity[StartNodeClaimsInput, struct{}]{"StartNodeClaims", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}

	// JoinActivity records the launch on the claim, waits for the Node, registers it and waits until it is initialized.
	// It is one activity and not three with signals between them because a life must fit its budget of events. It
	// returns after twenty minutes whatever has happened, since a node may take for ever to initialize.
	JoinActivity = Activity[JoinInput, JoinResult]{"Join", Policy{Attempt: 25 * time.Minute, Heartbeat: 30 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// TerminateActivity ends the instance, waits until the cloud says it is gone, and takes the finalizers off.
	TerminateActivity = Activity[TerminateInput, struct{}]{"Terminate", Policy{Attempt: 20 * time.Minute, Heartbeat: 20 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// DeleteClaimActivity deletes the NodeClaim object and returns by when its node must be drained.
	DeleteClaimActivity = Activity[DeleteClaimInput, Ending]{"DeleteClaim", kubeWrite}

	// EvictActivity cordons a node and evicts its pods until none is left. It returns when the node is drained, when
	// what blocks the drain has changed, so that the workflow can show it, and at the latest after half an hour.
	EvictActivity = Activity[EvictInput, EvictResult]{"Evict", Policy{Attempt: 35 * time.Minute, Heartbeat: 15 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// UncordonActivity takes back what EvictActivity did to the node itself, after a drain was cancelled.
	UncordonActivity = Activity[UncordonInput, struct{}]{"Uncordon", kubeWrite}

	// EvaluateActivity decides over the mirror which nodes are not needed. A stale mirror is an error, so it is retried
	// until the view is fresh again: nothing is disrupted on an old one.
	EvaluateActivity = Activity[EvaluateInput, Evaluation]{"Evaluate", Policy{Attempt: time.Minute, Heartbeat: 10 * time.Second, First: time.Second, Most: 30 * time.Second}}
	// RemoveActivity taints the nodes of a removal, looks once more whether they are needed, and deletes their claims.
	RemoveActivity = Activity[Removal, RemovalResult]{"Remove", Policy{Attempt: 2 * time.Minute, Heartbeat: 10 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}

	// BeginReplacementActivity creates the claims of a replacement and marks the nodes that go. A worker that dies in it
	// has done a part of that; the next try finds it by the replacement's id. What cannot be begun in that time was
	// decided over a cluster that is no more.
	BeginReplacementActivity = Activity[Replace, BeginResult]{"BeginReplacement", Policy{Attempt: time.Minute, Total: 5 * time.Minute, Heartbeat: 10 * time.Second, First: 200 * time.Millisecond, Most: 10 * time.Second}}
	// AwaitReplacementsActivity waits over the mirror until claims serve. It beats slowly, as Join does.
	AwaitReplacementsActivity = Activity[AwaitReplacementsInput, Awaited]{"AwaitReplacements", Policy{Attempt: 2 * time.Hour, Heartbeat: 30 * time.Second, First: 500 * time.Millisecond, Most: 15 * time.Second}}
	// RetireActivity looks once more whether the nodes of a replacement may go, and deletes their claims. A mirror that is
	// stale for all of that time is a reason to take the replacement back: nothing is disrupted on an old view.
	RetireActivity = Activity[RetireInput, RetireResult]{"Retire", Policy{Attempt: 2 * time.Minute, Total: 20 * time.Minute, Heartbeat: 10 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// AwaitMovedActivity waits until moved pods are Ready elsewhere.
	AwaitMovedActivity = Activity[AwaitMovedInput, MovedPods]{"AwaitMoved", Policy{Attempt: 20 * time.Minute, Heartbeat: 30 * time.Second, First: time.Second, Most: 15 * time.Second}}
	// UndoReplacementActivity takes a replacement back. It has no end: a node that stayed marked would never be used again.
	UndoReplacementActivity = Activity[UndoInput, Undone]{"UndoReplacement", kubeWrite}

	// SweepActivity compares everything with everything. It is tried twice; the next sweep comes soon anyway.
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
	// SweepInterval is how often cloud, cluster and workflows are compared while any of them changes, and SweepNet how often
	// in any case.
	SweepInterval = 2 * time.Minute
	SweepNet      = 5 * SweepInterval
)
