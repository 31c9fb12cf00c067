package workflows

import "time"

// SignalEnding carries an Ending to a NodeClaim workflow: its claim or node is going away.
const SignalEnding = "ending"

// SignalDrainFinished carries the DrainResult of a drain that was started by hand before the claim ended.
const SignalDrainFinished = "drain-finished"

// The phases of a claim's life, as the search attribute Phase shows them.
const (
	PhaseJoining     = "Joining"
	PhaseServing     = "Serving"
	PhaseDraining    = "Draining"
	PhaseTerminating = "Terminating"
)

// NodeClaimInput starts a NodeClaim workflow, and carries its state from run to run.
type NodeClaimInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string   `json:"clusterUID,omitempty"`
	Claim      ClaimRef `json:"claim"`
	NodePool   string   `json:"nodePool,omitempty"`
	Group      string   `json:"group,omitempty"`
	Instance   Instance `json:"instance"`
	// Joined is what is known of the node once it has registered.
	Joined JoinResult `json:"joined,omitzero"`
	// Ending says why and by when the node is removed; its Reason is empty while the node is wanted.
	Ending Ending `json:"ending,omitzero"`
	// DrainTells says that only the node's Drain shows in search attributes that the node is drained, and why. Lives started
	// before this field existed show it themselves too. It is in the input, rather than a version marker in the history,
	// because the marker would add two events to every life.
	DrainTells bool `json:"drainTells,omitempty"`
}

// Ending says why a claim's life ends.
type Ending struct {
	// Reason is one of the Reason constants. The first one counts.
	Reason string `json:"reason"`
	// Deadline is when the drain must be over; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Deleting says that the NodeClaim object is being deleted already.
	Deleting bool `json:"deleting,omitempty"`
	// Lost says that the instance is gone, so that nothing is left to drain.
	Lost bool `json:"lost,omitempty"`
	// Forced says that Deadline also applies to a drain that has already begun with a later deadline, or none: what runs on
	// the node is lost anyway.
	Forced bool `json:"forced,omitempty"`
	// Postponed is DeleteClaim's answer that the claim is not deleted now: it has expired and its NodePool wants it replaced
	// first, or a person has paused what ends it, as Why then says. Again is when to ask again; zero if only somebody else
	// can end it.
	Postponed bool      `json:"postponed,omitempty"`
	Again     time.Time `json:"again,omitzero"`
	Why       string    `json:"why,omitempty"`
}

// JoinInput asks for a claim's node to be brought up.
type JoinInput struct {
	Claim    ClaimRef `json:"claim"`
	Instance Instance `json:"instance"`
}

// JoinResult says how far a claim's node has come.
type JoinResult struct {
	// Node and NodeUID are set once the node has registered.
	Node    string `json:"node,omitempty"`
	NodeUID string `json:"nodeUID,omitempty"`
	// Initialized says that the node serves pods.
	Initialized bool `json:"initialized,omitempty"`
	// ExpireAt is when the claim expires; zero means never.
	ExpireAt time.Time `json:"expireAt,omitzero"`
	// Failed is the reason for which the claim has to end, empty while there is none.
	Failed string `json:"failed,omitempty"`
	// HooksDue says that the NodePool has hooks that run now that the node serves pods.
	HooksDue bool `json:"hooksDue,omitempty"`
}

// TerminateInput asks to terminate an instance and then to remove its Node and NodeClaim objects.
type TerminateInput struct {
	Claim    ClaimRef `json:"claim"`
	Instance string   `json:"instance"`
	Node     string   `json:"node,omitempty"`
	NodeUID  string   `json:"nodeUID,omitempty"`
	Reason   string   `json:"reason"`
	// Outcome is how the drain ended, for the claim's conditions.
	Outcome DrainOutcome `json:"outcome,omitempty"`
	// Lost says that the node was not drained because its instance was reported gone.
	Lost bool `json:"lost,omitempty"`
	// DrainsAgain says that the life drains its node once more if Terminate fails with FailureNotDrained. In builds from
	// before this field the life would end there, and the sweep would start it anew.
	DrainsAgain bool `json:"drainsAgain,omitempty"`
}

// NodeClaimResult is what a NodeClaim workflow returns: the one recorded reason for which its node was removed.
type NodeClaimResult struct {
	Reason string       `json:"reason"`
	Node   string       `json:"node,omitempty"`
	Drain  DrainOutcome `json:"drain,omitempty"`
}

// DeleteClaimInput names the NodeClaim to delete and why.
type DeleteClaimInput struct {
	Claim  string `json:"claim"`
	UID    string `json:"uid"`
	Reason string `json:"reason"`
	// Deadline is when the node must be drained, if that is sooner than the claim itself says.
	Deadline time.Time `json:"deadline,omitzero"`
	// Pausable says that the life asks again if a pause postpones its end. Without it, which is how builds from before this
	// field ask, only Expires may be postponed.
	Pausable bool `json:"pausable,omitempty"`
	// Expires says that the claim is to be deleted only because it has expired, which its NodePool may postpone.
	Expires bool `json:"expires,omitempty"`
}
