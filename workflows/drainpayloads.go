package workflows

import "time"

// DrainInput starts a Drain.
type DrainInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Node and NodeUID identify the node. A node of that name with another UID is a different one and is not touched.
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
	// Claim is the NodeClaim of the node; empty where the node is not Tenon's.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUID,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Deadline is when the drain ends regardless of what is left; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason is one of the Reason constants. Note is what the person who ordered the drain wrote, and By is who that is to
	// the API server.
	Reason string `json:"reason"`
	Note   string `json:"note,omitempty"`
	By     string `json:"by,omitempty"`
	// Delete says that the NodeClaim is deleted once the node is drained. A drain that is part of a claim's own end
	// leaves it false, as does a drain by hand that only empties the node.
	Delete bool `json:"delete,omitempty"`
	// Progress is what one run hands to the next; it is empty at the start.
	Progress DrainProgress `json:"progress,omitzero"`
}

// DrainProgress is what a drain carries from run to run: its orders, and what it has found so far.
type DrainProgress struct {
	Paused bool `json:"paused,omitempty"`
	Forced bool `json:"forced,omitempty"`
	// Evicted counts the evictions and direct deletions that were accepted. It may miss some that a worker made just
	// before it died.
	Evicted int `json:"evicted,omitempty"`
	// Left and Blockers are what the last pass found. Digest identifies the blockers.
	Left     int       `json:"left,omitempty"`
	Blockers []Blocker `json:"blockers,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	// Waiters are the ids of the workflows to signal when the drain ends.
	Waiters []string `json:"waiters,omitempty"`
	// Phase is the value of the search attribute, empty while that is still the one the drain was started with.
	Phase string `json:"phase,omitempty"`
	// Said is the last order that had an author or a note.
	Said string `json:"said,omitempty"`
	// Started is when the first run began.
	Started time.Time `json:"started,omitzero"`
	// Hooks is how far the hooks of the NodePool have come.
	Hooks HookProgress `json:"hooks,omitzero"`
}

// SignalDrainNotify carries a DrainWaiter to a running Drain.
const SignalDrainNotify = "notify"

// DrainWaiter tells a Drain who waits for it, or what has changed for it. When the drain ends, it signals its DrainResult to
// each waiting workflow as SignalDrainFinished.
type DrainWaiter struct {
	// Workflow is the id of the NodeClaim workflow that waits for a drain it did not start; empty if none does and the
	// signal only carries news.
	Workflow string `json:"workflow"`
	// Deadline, unless zero, is the claim's own: the drain ends by then at the latest.
	Deadline time.Time `json:"deadline,omitzero"`
	// NodeUID is the UID of the node to be drained; empty if not stated. A drain of another node of that name ends.
	NodeUID string `json:"nodeUID,omitempty"`
	// Gone says that the drain's node is gone.
	Gone bool `json:"gone,omitempty"`
	// Wake says that what blocked the drain may have changed.
	Wake bool `json:"wake,omitempty"`
}

// DrainOutcome is how a drain ended.
type DrainOutcome string

const (
	// Drained means no pod that counts is left and its volumes are detached.
	Drained DrainOutcome = "Drained"
	// DeadlineReached means the deadline passed first; what was left is in DrainResult.Blockers.
	DeadlineReached DrainOutcome = "DeadlineReached"
	// DrainCanceled means that the drain was cancelled. If a person did that by UpdateCancel, the node is schedulable again.
	DrainCanceled DrainOutcome = "Canceled"
	// NodeGone means the node no longer exists.
	NodeGone DrainOutcome = "NodeGone"
)

// DrainResult is what a Drain workflow returns.
type DrainResult struct {
	Outcome  DrainOutcome `json:"outcome"`
	Evicted  int          `json:"evicted"`
	Blockers []Blocker    `json:"blockers,omitempty"`
}

// Blocker is one thing that keeps a node from being drained now.
type Blocker struct {
	// Pod is namespace/name; empty for a hook, which keeps all pods.
	Pod string `json:"pod"`
	// Cause is PodDisruptionBudget, DoNotDisrupt, NoPlaceElsewhere, Terminating, Volume, Hook or Error.
	Cause string `json:"cause"`
	// By names the budget, annotation, finalizer or volume.
	By string `json:"by,omitempty"`
	// Message is the sentence a person reads.
	Message string `json:"message,omitempty"`
}

// EvictInput is one pass of evictions.
type EvictInput struct {
	Node     string    `json:"node"`
	NodeUID  string    `json:"nodeUID"`
	Claim    string    `json:"claim,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Force treats the deadline as now.
	Force  bool   `json:"force,omitempty"`
	Reason string `json:"reason"`
	// Known is the digest of the blockers the workflow already shows; empty while it shows none.
	Known string `json:"known,omitempty"`
	// MayWait says that the pass may return while it can do nothing, because the workflow then waits by itself.
	MayWait bool `json:"mayWait,omitempty"`
	// HooksOf is the NodePool whose hooks have to run before the first pod is evicted: if it has any, the pass only cordons the
	// node and says so. Empty if they have run, and in builds from before this field.
	HooksOf string `json:"hooksOf,omitempty"`
}

// EvictResult is what a pass of evictions found when it returned.
type EvictResult struct {
	// Done says that no pod that counts is left and its volumes are detached.
	Done bool `json:"done"`
	// Gone says that the node of that UID does not exist.
	Gone bool `json:"gone,omitempty"`
	// Evicted counts the evictions and direct deletions this pass had accepted.
	Evicted int `json:"evicted"`
	// Left counts the pods that still have to go.
	Left int `json:"left"`
	// Blockers are at most MaxBlockers; Digest identifies all of them, and is empty when there are none.
	Blockers []Blocker `json:"blockers,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	// Waiting says that nothing can be done until the blockers change, or until Again, unless that is zero.
	Waiting bool      `json:"waiting,omitempty"`
	Again   time.Time `json:"again,omitzero"`
	// HooksDue says that hooks have to run first. The node is cordoned, and nothing is evicted.
	HooksDue bool `json:"hooksDue,omitempty"`
}

// MaxBlockers limits the blockers in a payload. A node has at most a few hundred pods, and a person reads fewer.
const MaxBlockers = 25

// UncordonInput names a node to be made schedulable again.
type UncordonInput struct {
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
}

// The updates a Drain accepts. Each takes a DrainOrder and returns the resulting DrainStatus. An order that makes no sense
// is rejected with the reason.
const (
	// UpdatePause stops evictions, and returns when they have stopped; the node stays cordoned and the deadline keeps
	// running.
	UpdatePause = "pause"
	// UpdateResume ends a pause.
	UpdateResume = "resume"
	// UpdateCancel stops evictions, makes the node schedulable again and ends the drain.
	UpdateCancel = "cancel"
	// UpdateForce deletes the remaining pods now, as if the deadline had passed, and ends the drain within two minutes.
	UpdateForce = "force"
	// UpdateDeadline sets a new deadline; zero removes it.
	UpdateDeadline = "deadline"
	// QueryStatus returns the DrainStatus.
	QueryStatus = "status"
)

// DrainOrder is an order that a person gives a drain.
type DrainOrder struct {
	// Note says why, for those who read the drain later. By is who gave the order, as the API server knows them.
	Note string `json:"note,omitempty"`
	By   string `json:"by,omitempty"`
	// Deadline is for UpdateDeadline only.
	Deadline time.Time `json:"deadline,omitzero"`
}

// DrainStatus is what a drain reports about itself.
type DrainStatus struct {
	Node     string `json:"node"`
	Claim    string `json:"claim,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Phase is PhaseDraining or one of the other phases of a drain; Outcome is set once it is PhaseFinished.
	Phase   string       `json:"phase"`
	Outcome DrainOutcome `json:"outcome,omitempty"`
	Reason  string       `json:"reason"`
	Note    string       `json:"note,omitempty"`
	// By is who ordered the drain; empty where no person did.
	By string `json:"by,omitempty"`
	// Delete says that the node is terminated afterwards.
	Delete   bool      `json:"delete,omitempty"`
	Forced   bool      `json:"forced,omitempty"`
	Started  time.Time `json:"started"`
	Deadline time.Time `json:"deadline,omitzero"`
	Evicted  int       `json:"evicted"`
	// Left and Blockers are as of the last time the blockers changed.
	Left     int       `json:"left"`
	Blockers []Blocker `json:"blockers,omitempty"`
}

// The phases of a drain besides PhaseDraining.
const (
	PhaseBlocked   = "Blocked"
	PhasePaused    = "Paused"
	PhaseCanceling = "Canceling"
	PhaseFinished  = "Finished"
)
