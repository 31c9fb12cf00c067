package workflows

import (
	"slices"
	"time"
)

// SignalEvaluate tells Disruption that something has changed which may make a node unneeded.
const SignalEvaluate = "evaluate"

// DisruptionInput is the durable state of Disruption, carried from run to run.
type DisruptionInput struct {
	Cluster Cluster `json:"cluster"`
	// ClusterUID is the UID of the cluster's namespace kube-system, which distinguishes the cluster from another of the same
	// name. It is empty if it was unknown when the workflow was started.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Pending says that a change has been announced which no evaluation has looked at yet.
	Pending bool `json:"pending,omitempty"`
	// NextLook is when a node that has to stay for now may be evaluated again; zero means only after a change.
	NextLook time.Time `json:"nextLook,omitzero"`
	// Last is the note of the last evaluation, for people.
	Last string `json:"last,omitempty"`
	// Series distinguishes this Disruption from an earlier one that was terminated, so that the ids of replacements never
	// repeat. Round counts its evaluations that decided on replacements.
	Series string `json:"series,omitempty"`
	Round  int    `json:"round,omitempty"`
	// Running are the replacements that have not ended.
	Running []Running `json:"running,omitempty"`
	// Leaving are the nodes that were removed a moment ago.
	Leaving []Leaving `json:"leaving,omitempty"`
	// Held are the nodes that are left alone because a replacement of them was undone.
	Held []Held `json:"held,omitempty"`
	// Unavailable are the offerings that were recently refused to replacements, or that the cloud has taken back.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Disrupted are the nodes whose disruption has begun, kept for as long as a disruption rate needs them.
	Disrupted []Disrupted `json:"disrupted,omitempty"`
	// SeenVersion is the resource version of the newest claim a replacement has created.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Running is a replacement that has not ended.
type Running struct {
	ID string `json:"id"`
	// Claims are the NodeClaims of the nodes to be removed, and Pools their NodePools.
	Claims []string `json:"claims"`
	Pools  []string `json:"pools,omitempty"`
	// WaitForReady says that no other node of the pools is to be replaced meanwhile.
	WaitForReady bool `json:"waitForReady,omitempty"`
}

// Leaving is a node that counts as leaving until a given time, whatever the mirror shows.
type Leaving struct {
	Claim string    `json:"claim"`
	Until time.Time `json:"until"`
}

// Disrupted counts nodes of a NodePool whose disruption began at one moment, including disruptions that were undone later.
type Disrupted struct {
	NodePool string    `json:"nodePool"`
	Nodes    int       `json:"nodes"`
	At       time.Time `json:"at"`
}

// Held is a node that is left alone until a given time.
type Held struct {
	Claim string    `json:"claim"`
	Until time.Time `json:"until"`
	// Times counts the replacements of the node that were undone in a row.
	Times int    `json:"times"`
	Why   string `json:"why,omitempty"`
}

// EvaluateInput asks for one evaluation. It carries what the mirror may not show yet or cannot know.
type EvaluateInput struct {
	Running     []Running     `json:"running,omitempty"`
	Leaving     []Leaving     `json:"leaving,omitempty"`
	Held        []Held        `json:"held,omitempty"`
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	Disrupted   []Disrupted   `json:"disrupted,omitempty"`
	// SeenVersion is a resource version that the evaluation must have seen, and ClusterUID is the cluster it belongs to.
	SeenVersion string `json:"seenVersion,omitempty"`
	ClusterUID  string `json:"clusterUID,omitempty"`
}

// Evaluation is what EvaluateActivity returns.
type Evaluation struct {
	// Commands are the removals that are due and within budget, of nodes whose removal moves no pods.
	Commands []Removal `json:"commands,omitempty"`
	// Replacements are all other decisions. They have no ID yet.
	Replacements []ReplacementCommand `json:"replacements,omitempty"`
	// Disrupted are the entries of EvaluateInput.Disrupted that a disruption rate still needs.
	Disrupted []Disrupted `json:"disrupted,omitempty"`
	// Over are the ids of replacements that were listed as running but are not.
	Over     []string  `json:"over,omitempty"`
	NextLook time.Time `json:"nextLook,omitzero"`
	// Again says that there was more to remove than one evaluation returns.
	Again bool `json:"again,omitempty"`
	// Note says in a few lines which nodes are removed, and why others stay.
	Note string `json:"note,omitempty"`
	// ClusterUID and Anew are those of a PlanResult.
	ClusterUID string `json:"clusterUID,omitempty"`
	Anew       bool   `json:"anew,omitempty"`
}

// Begun returns e.Disrupted plus the nodes whose disruption this evaluation begins, at the given time.
func (e Evaluation) Begun(now time.Time) []Disrupted {
	disrupted := slices.Clone(e.Disrupted)
	begin := func(nodes []RemovedNode) {
		for _, node := range nodes {
			at := slices.IndexFunc(disrupted, func(d Disrupted) bool { return d.NodePool == node.NodePool && d.At.Equal(now) })
			if at < 0 {
				at, disrupted = len(disrupted), append(disrupted, Disrupted{NodePool: node.NodePool, At: now})
			}
			disrupted[at].Nodes++
		}
	}
	for _, command := range e.Commands {
		begin(command.Nodes)
	}
	for _, command := range e.Replacements {
		begin(command.Nodes)
	}
	return disrupted
}

// Removal is a set of nodes that are removed for one reason.
type Removal struct {
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
}

// RemovedNode is one node of a Removal.
type RemovedNode struct {
	Node    string   `json:"node"`
	NodeUID string   `json:"nodeUID"`
	Claim   ClaimRef `json:"claim"`
	// NodePool is the claim's.
	NodePool string `json:"nodePool,omitempty"`
	// Why is the explanation for this node, if several nodes are removed together but each for its own reason.
	Why string `json:"why,omitempty"`
}

// RemovalResult is the outcome of a Removal.
type RemovalResult struct {
	Removed int `json:"removed"`
	// Kept are the nodes that turned out to be needed, and why.
	Kept []string `json:"kept,omitempty"`
}

// ReplacementCommand is one decision, frozen when it is made: the nodes to remove, and what has to serve before that.
type ReplacementCommand struct {
	// ID names the replacement in this cluster; see Cluster.ReplacementID.
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
	// Independent says that each node is removed independently: what blocks one does not block the others.
	Independent bool `json:"apart,omitempty"`
	// SmallPodsOnly says that the launched nodes are for small pods, and take none before the large ones have found room.
	SmallPodsOnly bool `json:"late,omitempty"`
	// Claims are the claims to create. Without any, the nodes' pods fit on existing nodes.
	Claims []PlannedClaim `json:"claims,omitempty"`
	// Moves is how many pods will have to move.
	Moves int `json:"moves,omitempty"`
	// SavesPerHour is in the currency of Zone, the zone of one of the nodes; negative where the cluster costs more
	// afterwards.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
	Zone         string  `json:"zone,omitempty"`
	Why          string  `json:"why,omitempty"`
	// WaitForReady says that the moved pods must be Ready before the replacement counts as over.
	WaitForReady bool `json:"waitForReady,omitempty"`
}

// pools are the NodePools of the nodes, each once.
func (r *ReplacementCommand) pools() []string {
	var pools []string
	for _, node := range r.Nodes {
		if !slices.Contains(pools, node.NodePool) {
			pools = append(pools, node.NodePool)
		}
	}
	return pools
}

// claimNames are the NodeClaims of the nodes.
func (r *ReplacementCommand) claimNames() []string {
	names := make([]string, 0, len(r.Nodes))
	for _, node := range r.Nodes {
		names = append(names, node.Claim.Name)
	}
	return names
}

// claimPools are the NodePools of the claims, in their order.
func (r *ReplacementCommand) claimPools() []string {
	pools := make([]string, 0, len(r.Claims))
	for i := range r.Claims {
		pools = append(pools, r.Claims[i].NodePool)
	}
	return pools
}
