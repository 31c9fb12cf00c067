// Package view makes of a snapshot of the cluster what people look at: nodes with their pods and fill, what they cost, pods
// that wait and why, the budgets of NodePools, pauses, workflows under way and the last decisions. The page, `tenon top`, `tenon get` and
// their JSON output show this one model, so they never disagree.
//
// It is pure: it reads no clock but Snapshot.Time and does no I/O. A Builder remembers its last result. The mirror shares the
// nodes of its snapshots until they change, so the Builder compares pointers and makes anew only what has changed. Since
// compares two results in the same way, and returns what a reader of the older one has to be told.
//
// Everything a Builder returns is shared and must not be modified.
//
// Reading order: amounts, pod, price, node, pool, pause, ledger, view, delta, builder.
package view

import "time"

// Cluster is everything people look at. Lists are ordered: nodes by key, pods by UID, pools by name, workflows and decisions
// from the newest.
type Cluster struct {
	Name string `json:"name"`
	// Time is when the snapshot was taken. Generation counts the views of one Builder that differ.
	Time       time.Time `json:"time"`
	Generation uint64    `json:"generation"`
	// Stale says why the view may be old; empty if it is not.
	Stale  string `json:"stale,omitempty"`
	Cost   Cost   `json:"cost"`
	Totals Totals `json:"totals"`
	Pools  []Pool `json:"pools"`
	// Pauses are what people have stopped, in the whole cluster first, then by NodePool.
	Pauses    []Pause     `json:"pauses"`
	Nodes     []*Node     `json:"nodes"`
	Pending   []*Pod      `json:"pending"`
	Workflows []*Workflow `json:"workflows"`
	Decisions []*Decision `json:"decisions"`
	// Trouble says why workflows and decisions are missing or old, such as that Temporal does not answer.
	Trouble string `json:"trouble,omitempty"`
}

// Totals count what a view holds.
type Totals struct {
	Nodes   int `json:"nodes"`
	Pods    int `json:"pods"`
	Pending int `json:"pending"`
	// Leaving counts the nodes that are closed or go away, and Coming the claims that do not serve yet.
	Leaving int `json:"leaving"`
	Coming  int `json:"coming"`
	// Fill is how full all nodes together are.
	Fill Fill `json:"fill"`
}

// Workflow is one that runs.
type Workflow struct {
	ID   string `json:"id"`
	Run  string `json:"run"`
	Type string `json:"type"`
	// Summary is what it was started for. Phase, NodePool, Node, NodeClaim and Reason are its search attributes.
	Summary   string    `json:"summary,omitempty"`
	Phase     string    `json:"phase,omitempty"`
	NodePool  string    `json:"nodePool,omitempty"`
	Node      string    `json:"node,omitempty"`
	NodeClaim string    `json:"nodeClaim,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Started   time.Time `json:"started"`
}

// Decision is what was decided about nodes, and why.
type Decision struct {
	ID   string    `json:"id"`
	Run  string    `json:"run"`
	At   time.Time `json:"at"`
	Type string    `json:"type"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
	// SavesPerHour is in the currency of Cost; negative if the cluster costs more afterwards, zero if that is not known.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
	// Outcome is how the workflow ended, such as Completed; empty while it runs.
	Outcome string `json:"outcome,omitempty"`
	// Ended is when it ended; zero while it runs.
	Ended time.Time `json:"ended,omitzero"`
	// Nodes are the nodes it is about, at most a few.
	Nodes []string `json:"nodes,omitempty"`
}
