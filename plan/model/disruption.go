package model

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Disruption lists what may be disrupted, and says why everything else may not.
type Disruption struct {
	// Commands can all be carried out at the same time: none needs room that another uses, and together they stay within
	// the budgets.
	Commands []Command
	// Verdicts say what keeps each of the other nodes of NodePools. They are ordered by Node, and within a Node by the
	// order of the reasons.
	Verdicts []Verdict
	// Again says that one evaluation did not decide everything: evaluate again once the commands have begun.
	Again bool
	// NextLook is when time alone may change the answer: the first end of a verdict, or of the wait for the successors of
	// evicted pods; zero if only a change in the cluster can change it.
	NextLook time.Time
	// Weighed are the consolidations that were weighed, one for each NodePool that would have lost nodes.
	Weighed []Weighed
}

// Weighed is what a NodePool's policy found of a consolidation.
type Weighed struct {
	NodePool string
	Policy   karpv1.ConsolidationPolicy
	// Score is what the policy Balanced weighs; the other policies weigh nothing, and have none. It passes if it is high
	// enough for the NodePool's policy.
	Score  *float64
	Passes bool
	// Approved says that every NodePool's policy approves.
	Approved bool
}

// Command is one decision: nodes to disrupt for one reason.
type Command struct {
	Reason karpv1.DisruptionReason
	// Nodes are Keys of Nodes.
	Nodes []string
	// Replacements are the nodes that have to serve before the command's nodes are removed. Without any, the pods fit on
	// existing nodes.
	Replacements []Claim
	// Moves is how many pods will have to move.
	Moves int
	// SavesPerHour is how much less the cluster costs afterwards, per hour in the currency of Zone; negative where it costs
	// more. Zone is that of one of the nodes.
	SavesPerHour float64
	Zone         string
	// Why is one sentence with the grounds for the command.
	Why string
	// Independent means that each node may be removed although another one has to stay. Whys are then the grounds for each.
	Independent bool
	Whys        []string
}

// Cause is the kind of obstacle that keeps a node.
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
	// CauseQuiet says that it is too early: the node is too young or has not been quiet for long enough, or other
	// disruptions come first.
	CauseQuiet Cause = "Quiet"
	// CausePrice says that what would replace the node saves too little.
	CausePrice Cause = "Price"
	// CauseRoom says that there is no other place for the node's pods.
	CauseRoom Cause = "Room"
	// CausePolicy says that the NodePool does not allow disruption for the reason.
	CausePolicy Cause = "Policy"
	// CauseBuffer says that a CapacityBuffer needs the room on the node.
	CauseBuffer Cause = "Buffer"
	// CauseNominated says that pods are expected on the node.
	CauseNominated Cause = "Nominated"
	// CausePaused says that a person has paused disruption, or has the NodePool only observed.
	CausePaused Cause = "Paused"
	// CauseRollout says that the rollout of the node's pool has not come to it, or is stopped.
	CauseRollout Cause = "Rollout"
	// CauseApproval says that a person has to approve first, or has rejected it.
	CauseApproval Cause = "Approval"
	// CauseWindow says that no maintenance window is open for the reason.
	CauseWindow Cause = "Window"
	// CauseNone says that the reason does not apply to the node.
	CauseNone Cause = "None"
)

// Verdict says why a node is not disrupted for one reason.
type Verdict struct {
	// Node is the Key of the Node.
	Node   string
	Reason karpv1.DisruptionReason
	Cause  Cause
	// Message is one sentence for people.
	Message string
	// Until is when the cause ends by itself; zero if something has to change.
	Until time.Time
}

// PlacesPods says whether nodes are disrupted for a reason only once their pods have a place elsewhere, many nodes at the
// same time.
func PlacesPods(reason karpv1.DisruptionReason) bool {
	return reason == karpv1.DisruptionReasonUnderutilized || reason == karpv1.DisruptionReasonDrifted
}
