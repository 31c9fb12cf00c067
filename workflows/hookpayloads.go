package workflows

import "time"

// The points of a node's life at which hooks run, as the annotation of a NodePool names them.
const (
	AfterReady  = "AfterReady"
	BeforeDrain = "BeforeDrain"
)

// HookInput asks for the hooks of a NodePool that run at one point of a node's life.
type HookInput struct {
	// When is AfterReady or BeforeDrain.
	When     string `json:"when"`
	Node     string `json:"node"`
	NodeUID  string `json:"nodeUID"`
	Claim    string `json:"claim"`
	NodePool string `json:"nodePool"`
	// Reason and Deadline are those of the drain.
	Reason   string    `json:"reason,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Done are the names of hooks that need not run again, and Known is the digest of what the workflow already shows.
	Done  []string `json:"done,omitempty"`
	Known string   `json:"known,omitempty"`
}

// HookResult says how far the hooks have come.
type HookResult struct {
	// Finished says that nothing keeps the node from being drained, or from serving.
	Finished bool `json:"finished,omitempty"`
	// Failed is the name of a hook that has failed, and without which the node must not serve; empty if there is none.
	Failed string `json:"failed,omitempty"`
	// Done is HookInput.Done with those that have succeeded, or whose failure does not matter.
	Done []string `json:"done,omitempty"`
	// Blockers are the hooks that keep the node from being drained. Again is when to try them again.
	Blockers []Blocker `json:"blockers,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Again    time.Time `json:"again,omitzero"`
}

// HookProgress is how far the hooks of a drain have come.
type HookProgress struct {
	// Due says that the NodePool has hooks that run before the first pod is evicted, and Over that they have run, or that
	// nobody waits for them any more.
	Due  bool     `json:"due,omitempty"`
	Over bool     `json:"over,omitempty"`
	Done []string `json:"done,omitempty"`
}
