package workflows

// ReplacementOrderInput starts a ReplacementOrder.
type ReplacementOrderInput struct {
	Cluster Cluster `json:"cluster"`
	// Nodes are names of Nodes or NodeClaims, at most MostOrdered.
	Nodes []string `json:"nodes"`
	// By is the person who orders it, as the API server knows them, and Note is why, in their words.
	By   string `json:"by,omitempty"`
	Note string `json:"note,omitempty"`
	// Launch has new nodes launched even for pods that fit on nodes which are there.
	Launch bool `json:"launch,omitempty"`
	// DryRun only asks what would be done.
	DryRun bool `json:"dryRun,omitempty"`
}

// MostOrdered is how many nodes one order may name.
const MostOrdered = 50

// PlannedReplacements is how ordered replacements would be carried out now.
type PlannedReplacements struct {
	// Commands have no ID yet.
	Commands []ReplacementCommand `json:"commands,omitempty"`
	// Kept are the nodes that cannot be replaced now.
	Kept []OrderObjection `json:"kept,omitempty"`
	// Despite says what would have kept a node if no person had ordered it, and what will hold up its drain.
	Despite []OrderObjection `json:"despite,omitempty"`
	// ClusterUID is that of a PlanResult.
	ClusterUID string `json:"clusterUID,omitempty"`
}

// OrderObjection is what speaks against replacing a node.
type OrderObjection struct {
	// Node is the name of the Node, or of the NodeClaim where there is no Node.
	Node string `json:"node"`
	// Cause is that of a NodeVerdict.
	Cause   string `json:"cause"`
	Message string `json:"message"`
}

// ReplacementOrderResult says what an order has begun, or would begin.
type ReplacementOrderResult struct {
	Replacements []OrderedReplacement `json:"replacements,omitempty"`
	Kept         []OrderObjection     `json:"kept,omitempty"`
	Despite      []OrderObjection     `json:"despite,omitempty"`
}

// OrderedReplacement is a Replacement that an order has begun, or would begin.
type OrderedReplacement struct {
	// ID names the Replacement (Cluster.ReplacementID); empty in a dry run.
	ID    string        `json:"id,omitempty"`
	Nodes []RemovedNode `json:"nodes"`
	// Launches says what is launched first, such as "spot m6i.large"; nothing if the pods fit on nodes that are there.
	Launches []string `json:"launches,omitempty"`
	Moves    int      `json:"moves,omitempty"`
	Why      string   `json:"why,omitempty"`
}
