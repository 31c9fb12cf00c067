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
	// ClusterUID is the UID of the cluster's namespace kube-system, which tells it from another cluster of its name; empty
	// where whoever started this did not know it.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Pending says that a change has been announced which no evaluation has looked at yet.
	Pending bool `json:"pending,omitempty"`
	// NextLook is when a node that must stay for now may be looked at again; zero means only after a change.
	NextLook time.Time `json:"nextLook,omitzero"`
	// Last is the note of the last evaluation, for people.
	Last string `json:"last,omitempty"`
	// Series tells this Disruption from an earlier one that was terminated, so that the ids of replacements never repeat,
	// and Round counts its evaluations.
	Series string `json:"series,omitempty"`
	Round  int    `json:"round,omitempty"`
	// Running are the replacements that have not ended.
	Running []Running `json:"running,omitempty"`
	// Leaving are the nodes that were removed a moment ago.
	Leaving []Leaving `json:"leaving,omitempty"`
	// Held are the nodes that are left alone because a replacement of theirs was taken back.
	Held []Held `json:"held,omitempty"`
	// Unavailable are the offerings that replacements were refused lately, or that the cloud has taken back.
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	// Disrupted are the nodes that began to be disrupted, as long as a rate of disruptions has to know of them.
	Disrupted []Disrupted `json:"disrupted,omitempty"`
	// SeenVersion is the resource version of the newest claim a replacement has created.
	SeenVersion string `json:"seenVersion,omitempty"`
}

// Running is a replacement that has not ended.
type Running struct {
	ID string `json:"id"`
	// Claims are those of the nodes that go, and Pools their NodePools.
	Claims []string `json:"claims"`
	Pools  []string `json:"pools,omitempty"`
	// WaitForReady says that no other node of the pools is to be replaced meanwhile.
	WaitForReady bool `json:"waitForReady,omitempty"`
}

// Leaving is a node that counts as on its way out, however little the mirror shows of it, until a moment.
type Leaving struct {
	Claim string    `json:"claim"`
	Until time.Time `json:"until"`
}

// Disrupted are nodes of a NodePool that began to be disrupted at a moment, also where that was taken back later.
type Disrupted struct {
	NodePool string    `json:"nodePool"`
	Nodes    int       `json:"nodes"`
	At       time.Time `json:"at"`
}

// Held is a node that is left alone until a moment.
type Held struct {
	Claim string    `json:"claim"`
	Until time.Time `json:"until"`
	// Times counts the replacements of it that were taken back, one after the other.
	Times int    `json:"times"`
	Why   string `json:"why,omitempty"`
}

// EvaluateInput asks for one evaluation. The mirror knows the cluster; this is what it may not show yet or cannot know.
type EvaluateInput struct {
	Running     []Running     `json:"running,omitempty"`
	Leaving     []Leaving     `json:"leaving,omitempty"`
	Held        []Held        `json:"held,omitempty"`
	Unavailable []Unavailable `json:"unavailable,omitempty"`
	Disrupted   []Disrupted   `json:"disrupted,omitempty"`
	// SeenVersion is a resource version that the evaluation has to have seen, and ClusterUID the cluster it is of.
	SeenVersion string `json:"seenVersion,omitempty"`
	ClusterUID  string `json:"clusterUID,omitempty"`
}

// Evaluation is what EvaluateActivity returns.
type Evaluation struct {
	// Commands are the removals that are due and within budget, of nodes from which no pod has to move.
	Commands []Removal `json:"commands,omitempty"`
	// Replacements are everything else that is to be done. They have no ID yet.
	Replacements []Replace `json:"replacements,omitempty"`
	// Disrupted are those of the question that a rate still has to know of.
	Disrupted []Disrupted `json:"disrupted,omitempty"`
	// Over are replacements that were said to be running and are not.
	Over     []string  `json:"over,omitempty"`
	NextLook time.Time `json:"nextLook,omitzero"`
	// Again says that there was more to remove than one evaluation returns.
	Again bool `json:"again,omitempty"`
	// Note says in a few lines which nodes go, and why others stay.
	Note string `json:"note,omitempty"`
	// ClusterUID and Anew are those of a PlanResult.
	ClusterUID string `json:"clusterUID,omitempty"`
	Anew       bool   `json:"anew,omitempty"`
}

// Begun are the nodes that began to be disrupted before and, at a moment, by this evaluation.
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

// Removal is a set of nodes that go for one reason.
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
	// Why says it of this node, where several go together each for its own sake.
	Why string `json:"why,omitempty"`
}

// RemovalResult is what became of a Removal.
type RemovalResult struct {
	Removed int `json:"removed"`
	// Kept are the nodes that turned out to be needed, and why.
	Kept []string `json:"kept,omitempty"`
}

// Replace is one decision as it is frozen when it is made: nodes that go, and what has to serve before they do.
type Replace struct {
	// ID names the replacement in this cluster; see Cluster.ReplacementID.
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
	// Independent says that each of the nodes goes for itself: what keeps one keeps no other.
	Independent bool `json:"apart,omitempty"`
	// SmallPodsOnly says that what is launched is for small pods, and takes none before the large ones have found room.
	SmallPodsOnly bool `json:"late,omitempty"`
	// Claims are to be created; without any, the nodes' pods fit on nodes that are there.
	Claims []PlannedClaim `json:"claims,omitempty"`
	// Moves is how many pods will have to move.
	Moves int `json:"moves,omitempty"`
	// SavesPerHour is in US dollars; negative where the cluster costs more afterwards.
	SavesPerHour float64 `json:"savesPerHour,omitempty"`
	Why          string  `json:"why,omitempty"`
	// WaitForReady says that the moved pods are to be Ready before the replacement counts as over.
	WaitForReady bool `json:"waitForReady,omitempty"`
}

// pools are the NodePools of the nodes, each once.
func (r *Replace) pools() []string {
	var pools []string
	for _, node := range r.Nodes {
		if !slices.Contains(pools, node.NodePool) {
			pools = append(pools, node.NodePool)
		}
	}
	return pools
}

// claimNames are the NodeClaims of the nodes.
func (r *Replace) claimNames() []string {
	names := make([]string, 0, len(r.Nodes))
	for _, node := range r.Nodes {
		names = append(names, node.Claim.Name)
	}
	return names
}

// claimPools are the NodePools of the claims, in their order.
func (r *Replace) claimPools() []string {
	pools := make([]string, 0, len(r.Claims))
	for i := range r.Claims {
		pools = append(pools, r.Claims[i].NodePool)
	}
	return pools
}
