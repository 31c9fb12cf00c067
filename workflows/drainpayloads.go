package workflows

import "time"

// DrainInput starts a Drain.
type DrainInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which tells it from another cluster of its name; empty
	// where whoever started this did not know it.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Node and NodeUID are the node; a node of that name with another UID is somebody else's and is not touched.
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
	// Claim is the NodeClaim of the node; empty where the node is not Tenon's.
	Claim    string `json:"claim,omitempty"`
	ClaimUID string `json:"claimUID,omitempty"`
	NodePool string `json:"nodePool,omitempty"`
	// Deadline is when the drain ends whatever is left; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Reason is one of the Reason constants, Note what the person who asked wrote, and By who that is to the API server.
	Reason string `json:"reason"`
	Note   string `json:"note,omitempty"`
	By     string `json:"by,omitempty"`
	// Delete says that the NodeClaim is deleted once the node is drained. A drain that is part of a claim's own end
	// leaves it false, as does a drain by hand that only empties the node.
	Delete bool `json:"delete,omitempty"`
	// Progress is what one run hands to the next; it is empty at the start.
	Progress DrainProgress `json:"progress,omitzero"`
}

// DrainProgress is what a drain has been told and has found so far.
type DrainProgress struct {
	Paused bool `json:"paused,omitempty"`
	Forced bool `json:"forced,omitempty"`
	// Evicted counts the evictions and direct deletions that were accepted. It may miss some that a worker made just
	// before it died.
	Evicted int `json:"evicted,omitempty"`
	// Left and Blockers are what the last pass found, Digest the identity of the blockers.
	Left     int       `json:"left,omitempty"`
	Blockers []Blocker `json:"blockers,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	// Waiters are the workflows to be told of the end.
	Waiters []string `json:"waiters,omitempty"`
	// Phase is what the search attribute shows, empty as long as it is what the drain was started with.
	Phase string `json:"phase,omitempty"`
	// Said is the last order that had an author or a note.
	Said string `json:"said,omitempty"`
	// Started is when the first run began.
	Started time.Time `json:"started,omitzero"`
}

// SignalDrainNotify carries a DrainWaiter to a Drain that was started by hand before its node's claim ended.
const SignalDrainNotify = "notify"

// DrainWaiter is a NodeClaim workflow that waits for a drain it did not start. When the drain ends, it signals its
// DrainResult to the workflow as SignalDrainFinished.
type DrainWaiter struct {
	// Workflow is the id of the one that waits; empty where nobody does and only the deadline is told.
	Workflow string `json:"workflow"`
	// Deadline, unless zero, is the claim's own: the drain ends by then at the latest.
	Deadline time.Time `json:"deadline,omitzero"`
	// NodeUID is the node that is to be drained; empty where nobody says. A drain of another node of that name is over.
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
	// DrainCanceled means a person took it back; the node is schedulable again.
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
	// Pod is namespace/name.
	Pod string `json:"pod"`
	// Cause is PodDisruptionBudget, DoNotDisrupt, NoPlaceElsewhere, Terminating, Volume or Error.
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
	// MayWait says that the workflow waits by itself while the pass can do nothing.
	MayWait bool `json:"mayWait,omitempty"`
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
	// Waiting says that nothing can be done until what blocks changes, or until Again, unless that is zero.
	Waiting bool      `json:"waiting,omitempty"`
	Again   time.Time `json:"again,omitzero"`
}

// MaxBlockers bounds how many blockers travel in a payload; a node has at most some hundred pods, and a person reads
// fewer.
const MaxBlockers = 25

// UncordonInput names a node to be made schedulable again.
type UncordonInput struct {
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
}

// The updates a Drain understands. Each takes a DrainOrder, is refused with the reason when it makes no sense, and
// answers with the DrainStatus it leads to.
const (
	// UpdatePause stops evictions, and is answered when they have stopped; the node stays cordoned and the deadline keeps
	// running.
	UpdatePause = "pause"
	// UpdateResume ends a pause.
	UpdateResume = "resume"
	// UpdateCancel stops evictions, makes the node schedulable again and ends the drain.
	UpdateCancel = "cancel"
	// UpdateForce deletes what is left now, as if the deadline had come, and ends the drain within two minutes.
	UpdateForce = "force"
	// UpdateDeadline sets a new deadline; zero takes it away.
	UpdateDeadline = "deadline"
	// QueryStatus returns the DrainStatus.
	QueryStatus = "status"
)

// DrainOrder is what a person tells a drain.
type DrainOrder struct {
	// Note says why, for those who read the drain later, and By who orders it, as the API server knows them.
	Note string `json:"note,omitempty"`
	By   string `json:"by,omitempty"`
	// Deadline is for UpdateDeadline only.
	Deadline time.Time `json:"deadline,omitzero"`
}

// DrainStatus is what a drain says of itself.
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
