package workflows

import "slices"

// Replace is one decision as it is frozen when it is made: nodes that go, and what has to serve before they do.
type Replace struct {
	// ID names the replacement in this cluster; see Cluster.ReplacementID.
	ID     string        `json:"id"`
	Reason string        `json:"reason"`
	Nodes  []RemovedNode `json:"nodes"`
	// Apart says that each of the nodes goes for itself: what keeps one keeps no other.
	Apart bool `json:"apart,omitempty"`
	// Late says that what is launched is for small pods, and takes none before the large ones have found room.
	Late bool `json:"late,omitempty"`
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
