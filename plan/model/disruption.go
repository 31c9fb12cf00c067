package model

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Disruption is what may be taken away, and why the rest may not.
type Disruption struct {
	// Commands can be carried out at once, all of them: none needs room that another uses, and together they keep within
	// the budgets.
	Commands []Command
	// Verdicts say, for every other node of a NodePool, what keeps it. They are ordered by Node, and those of one Node in
	// the order of the reasons.
	Verdicts []Verdict
	// Again says that there is more to decide than one evaluation does: ask again when the commands have been begun.
	Again bool
	// NextLook is when a node that is too young or too recently used, and nothing else, becomes a candidate; zero if
	// only a change in the cluster can make one.
	NextLook time.Time
}

// Command is one decision: nodes to take away for one reason.
type Command struct {
	Reason karpv1.DisruptionReason
	// Nodes are Keys of Nodes.
	Nodes []string
	// Replacements are what has to serve before the nodes go. Without any, the nodes' pods fit on nodes that are there.
	Replacements []Claim
	// Moves is how many pods will have to move.
	Moves int
	// SavesPerHour is how much less the cluster costs afterwards, in US dollars per hour; negative where it costs more.
	SavesPerHour float64
	// Why says in one sentence what speaks for it.
	Why string
}

// Cause is the kind of thing that keeps a node.
type Cause string

// The causes.
const (
	// CauseLeaving says that the node is going away already.
	CauseLeaving Cause = "Leaving"
	// CauseNode says that something about the node itself keeps it: it is not initialized, or asks not to be disrupted.
	CauseNode Cause = "Node"
	// CausePod says that a pod on the node keeps it.
	CausePod Cause = "Pod"
	// CausePDB says that a PodDisruptionBudget allows no eviction of a pod on the node.
	CausePDB Cause = "PDB"
	// CauseBudget says that the NodePool's budgets are spent.
	CauseBudget Cause = "Budget"
	// CauseQuiet says that the node has not been quiet, or there, for long enough.
	CauseQuiet Cause = "Quiet"
	// CausePrice says that what would replace the node saves too little.
	CausePrice Cause = "Price"
	// CauseRoom says that the node's pods would find no other place.
	CauseRoom Cause = "Room"
	// CausePolicy says that the NodePool does not want nodes to go for the reason.
	CausePolicy Cause = "Policy"
	// CauseBuffer says that a CapacityBuffer needs the room on the node.
	CauseBuffer Cause = "Buffer"
	// CauseNominated says that pods are expected on the node.
	CauseNominated Cause = "Nominated"
	// CauseNone says that the reason does not apply to the node.
	CauseNone Cause = "None"
)

// Verdict is why a node stays, as far as one reason goes.
type Verdict struct {
	// Node is the Key of the Node.
	Node   string
	Reason karpv1.DisruptionReason
	Cause  Cause
	// Message is one sentence for people.
	Message string
	// Until is when it ends by itself; zero where something has to change.
	Until time.Time
}

// PlacesPods says that nodes go for a reason only once their pods have a place elsewhere, many of them at the same time.
func PlacesPods(reason karpv1.DisruptionReason) bool {
	return reason == karpv1.DisruptionReasonUnderutilized || reason == karpv1.DisruptionReasonDrifted
}
