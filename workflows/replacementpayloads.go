package workflows

import (
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// The signals by which a Replacement reports its progress to Disruption. Both report facts and may be repeated or lost: each
// evaluation checks which replacements still run.
const (
	// SignalReplacementBegun carries a Begun: from now on the cluster shows what the replacement does.
	SignalReplacementBegun = "replacement-begun"
	// SignalReplacementEnded carries an Ended.
	SignalReplacementEnded = "replacement-ended"
)

// The phases of a replacement, as the search attribute Phase shows them.
const (
	PhaseReplacing = "Replacing"
	PhaseUndone    = "Undone"
)

// ReplacementInput starts a Replacement.
type ReplacementInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID has the same meaning as in LaunchInput.
	ClusterUID string `json:"clusterUID,omitempty"`
	ReplacementCommand
}

// BeginResult is what BeginReplacementActivity returns.
type BeginResult struct {
	Groups []LaunchGroup `json:"groups,omitempty"`
	// SeenVersion is the resource version of the newest claim. The next evaluation must have seen it.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// AwaitReplacementsInput asks to wait until claims serve.
type AwaitReplacementsInput struct {
	ID          string     `json:"id"`
	Claims      []ClaimRef `json:"claims"`
	SeenVersion string     `json:"seenVersion,omitempty"`
	Until       time.Time  `json:"until"`
}

// Awaited says how far the claims of a replacement are. If both fields are empty, all of them serve.
type Awaited struct {
	// Lost are claims that are gone or being deleted.
	Lost []string `json:"lost,omitempty"`
	// Late are claims that did not serve in time, with what they lack.
	Late []string `json:"late,omitempty"`
}

// PodOwner is a controller with the number of its pods.
type PodOwner struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Pods      int    `json:"pods"`
}

// AwaitMovedInput asks to wait until moved pods are Ready elsewhere.
type AwaitMovedInput struct {
	Owners []PodOwner `json:"owners"`
	// Nodes are where the pods ran.
	Nodes []string  `json:"nodes"`
	Until time.Time `json:"until"`
}

// MovedPods says what is still missing when the wait ends; empty if all pods are Ready.
type MovedPods struct {
	Missing string `json:"missing,omitempty"`
}

// UndoInput asks to undo a replacement.
type UndoInput struct {
	ID    string        `json:"id"`
	Nodes []RemovedNode `json:"nodes"`
	// Pools are the NodePools of the claims that were to be created, in their order.
	Pools []string `json:"pools,omitempty"`
	Why   string   `json:"why"`
}

// Undone is the result of undoing a replacement.
type Undone struct {
	// Nodes are the nodes that keep serving, Claims are those that were deleted, and Kept are replacements that stay until
	// they are not needed.
	Nodes  []string `json:"nodes,omitempty"`
	Claims []string `json:"claims,omitempty"`
	Kept   []string `json:"kept,omitempty"`
}

// Begun is what SignalReplacementBegun carries.
type Begun struct {
	ID          string `json:"id"`
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Ended is what SignalReplacementEnded carries.
type Ended struct {
	ID string `json:"id"`
	// Undone is why the replacement was undone; empty if the nodes are removed. Changed says that this is because the
	// cluster had changed by the time the replacement was to begin.
	Undone  string `json:"undone,omitempty"`
	Changed bool   `json:"changed,omitempty"`
	// Refused are offerings that had no capacity.
	Refused []cloud.OfferingKey `json:"refused,omitempty"`
}

// ReplacementResult is what a Replacement returns.
type ReplacementResult struct {
	// Retired are the claims that were deleted, Gone those that somebody else ended meanwhile.
	Retired []string `json:"retired,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Launched are the claims that replace them.
	Launched []string `json:"launched,omitempty"`
	// Undone is why the replacement was undone; empty if it was not.
	Undone string `json:"undone,omitempty"`
	// TakenBack is what undoing it did.
	TakenBack Undone `json:"takenBack,omitzero"`
}

// RetireInput asks to remove the nodes of a replacement.
type RetireInput struct {
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Why    string        `json:"why,omitempty"`
	Nodes  []RemovedNode `json:"nodes"`
	// Independent removes the nodes that may be removed, whatever blocks the others.
	Independent bool `json:"apart,omitempty"`
	// Claims are the replacements.
	Claims []ClaimRef `json:"claims,omitempty"`
	// Owners asks for the owners of the pods that will move.
	Owners bool `json:"owners,omitempty"`
	// Open lets the replacements take any pods from now on, even if the nodes may not be removed yet. KeepTainted lets them
	// take none, even if the nodes are removed.
	Open        bool `json:"open,omitempty"`
	KeepTainted bool `json:"closed,omitempty"`
}

// RetireResult says which nodes are removed. Unless the nodes are independent, either none is blocked or none was removed.
type RetireResult struct {
	// Retired are the claims that are deleted now, Gone those that somebody else had deleted or terminated.
	Retired []string `json:"retired,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Left are the nodes that are kept while others are removed.
	Left []RemovedNode `json:"left,omitempty"`
	// Blocked says what keeps nodes, ForGood that waiting will not help, and NoRoom that the cause is a lack of room.
	Blocked []string `json:"blocked,omitempty"`
	ForGood bool     `json:"forGood,omitempty"`
	NoRoom  bool     `json:"crowded,omitempty"`
	// Owners are the owners of the pods that move.
	Owners []PodOwner `json:"owners,omitempty"`
}
