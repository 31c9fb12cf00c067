package workflows

import "time"

// PhaseWaiting is the phase of an Approval while nobody has decided, as the search attribute Phase shows it. PhaseDecided is
// the phase from then on.
const (
	PhaseWaiting = "Waiting"
	PhaseDecided = "Decided"
)

// What people and the starter tell an Approval.
const (
	// UpdateDecide is the order of a person who is known: it carries an ApprovalDecision and returns an ApprovalResult.
	UpdateDecide = "decide"
	// SignalApprove and SignalReject decide without saying who: Temporal does not know who sends a signal. They carry nothing,
	// a text, or {"note": "..."}.
	SignalApprove = "approve"
	SignalReject  = "reject"
	// SignalWithdraw carries a text: why the decision no longer holds.
	SignalWithdraw = "withdraw"
)

// Proposal is a decision that a person has to approve before anything is done.
type Proposal struct {
	// ID names the approval in this cluster; see Cluster.ApprovalID. It is the same whenever the same is proposed.
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
	// For is the drift that the decision is about (NodeClaim.DriftHash).
	For string `json:"for,omitempty"`
	// Does says in one sentence what will be done. Moves is how many pods will have to move.
	Does  string `json:"does,omitempty"`
	Moves int    `json:"moves,omitempty"`
	// SavesPerHour is in the currency of Zone; negative where the cluster costs more afterwards.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
	Zone         string  `json:"zone,omitempty"`
}

// ApprovalInput starts an Approval.
type ApprovalInput struct {
	Cluster    Cluster `json:"cluster"`
	ClusterUID string  `json:"clusterUID,omitempty"`
	Proposal
	// Expires is how many seconds the approval waits for a person. What was approved has as long to begin.
	Expires int64 `json:"expires"`
}

// ApprovalDecision is a person's decision.
type ApprovalDecision struct {
	Approve bool `json:"approve"`
	// By is the user name by which the API server knows the person, Note why they decided so.
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
	// For is how many seconds a rejected decision is not proposed again; zero means RejectedFor.
	For int64 `json:"for,omitempty"`
}

// RejectedFor is how long a rejected decision is not proposed again, unless the person says otherwise.
const RejectedFor = 24 * time.Hour

// The outcomes of an Approval.
const (
	ApprovalApproved = "Approved"
	ApprovalRejected = "Rejected"
	ApprovalExpired  = "Expired"
	// ApprovalOutdated means that the decision no longer held, whether or not somebody approved it.
	ApprovalOutdated = "Outdated"
)

// ApprovalResult is what has become of an Approval.
type ApprovalResult struct {
	Outcome string `json:"outcome"`
	By      string `json:"by,omitempty"`
	// Why is the person's note, or what made the decision outdated.
	Why string `json:"why,omitempty"`
}

// AskApprovalInput asks to mark the nodes of a proposal as waiting, and to tell people.
type AskApprovalInput struct {
	Proposal
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Reminder says how often people were told before.
	Reminder int `json:"reminder,omitempty"`
}

// SettleApprovalInput asks to write down what has become of a proposal, and to tell people. An approval is checked once more
// against the present state of the cluster.
type SettleApprovalInput struct {
	Proposal
	ApprovalResult
	At time.Time `json:"at"`
	// Until is when what was approved must have begun, or when what was rejected may be proposed again.
	Until time.Time `json:"until,omitzero"`
}

// ApprovalChecked says why a proposal no longer holds; empty if it holds.
type ApprovalChecked struct {
	Outdated string `json:"outdated,omitempty"`
}
