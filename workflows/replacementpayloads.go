package workflows

import (
	"time"

	"github.com/tenon-sh/tenon/cloud"
)

// The signals by which a Replacement tells Disruption how far it is. Both are facts that may be repeated or lost: a
// Replacement that Disruption has not heard of for long is asked for.
const (
	// SignalReplacementBegun carries a Begun: what the replacement does shows in the cluster from now on.
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
	// ClusterUID is what it is in a LaunchInput.
	ClusterUID string `json:"clusterUID,omitempty"`
	Replace
}

// BeginResult is what BeginReplacementActivity has made.
type BeginResult struct {
	Groups []LaunchGroup `json:"groups,omitempty"`
	// SeenVersion is the resource version of the newest claim. Whoever decides next must have seen it.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// AwaitReplacementsInput asks to wait for claims until they serve.
type AwaitReplacementsInput struct {
	ID          string     `json:"id"`
	Claims      []ClaimRef `json:"claims"`
	SeenVersion string     `json:"seenVersion,omitempty"`
	Until       time.Time  `json:"until"`
}

// Awaited is how far the claims of a replacement have come; all of them serve where both are empty.
type Awaited struct {
	// Lost are claims that are gone or on their way out.
	Lost []string `json:"lost,omitempty"`
	// Late are claims that do not serve in time, and what they lack.
	Late []string `json:"late,omitempty"`
}

// PodOwner is a controller, and how many of its pods there were.
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

// MovedPods says what is still missing when the waiting ends; empty where all are Ready.
type MovedPods struct {
	Missing string `json:"missing,omitempty"`
}

// UndoInput asks to take a replacement back.
type UndoInput struct {
	ID    string        `json:"id"`
	Nodes []RemovedNode `json:"nodes"`
	// Pools are the NodePools of the claims that were to be created, in their order.
	Pools []string `json:"pools,omitempty"`
	Why   string   `json:"why"`
}

// Undone is what was taken back.
type Undone struct {
	// Nodes serve on, Claims are deleted, and Kept are replacements that serve already and so stay until they are not
	// needed.
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
	// Undone is why nothing came of it; empty where the nodes go. Changed says that this is because the cluster was another
	// by the time it was to begin.
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
	// Undone is why it was taken back; empty where it was not.
	Undone string `json:"undone,omitempty"`
	// TakenBack is what that meant.
	TakenBack Undone `json:"takenBack,omitzero"`
}

// RetireInput asks to let the nodes of a replacement go.
type RetireInput struct {
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Why    string        `json:"why,omitempty"`
	Nodes  []RemovedNode `json:"nodes"`
	// Independent lets those go that may, whatever keeps the others.
	Independent bool `json:"apart,omitempty"`
	// Claims are the replacements.
	Claims []ClaimRef `json:"claims,omitempty"`
	// Owners asks whose pods will move.
	Owners bool `json:"owners,omitempty"`
	// Open has the replacements take any pods from now on, even if the nodes may not go yet; KeepTainted has them take none,
	// even if the nodes go.
	Open        bool `json:"open,omitempty"`
	KeepTainted bool `json:"closed,omitempty"`
}

// RetireResult says which nodes go. Either none is blocked, or none was let go, unless each goes for itself.
type RetireResult struct {
	// Retired are the claims that are deleted now, Gone those that somebody else had deleted or terminated.
	Retired []string `json:"retired,omitempty"`
	Gone    []string `json:"gone,omitempty"`
	// Left are the nodes that are kept, where others go without them.
	Left []RemovedNode `json:"left,omitempty"`
	// Blocked says what keeps nodes, ForGood that it is not worth waiting for, and NoRoom that it is a lack of room.
	Blocked []string `json:"blocked,omitempty"`
	ForGood bool     `json:"forGood,omitempty"`
	NoRoom  bool     `json:"crowded,omitempty"`
	// Owners are those of the pods that move.
	Owners []PodOwner `json:"owners,omitempty"`
}
