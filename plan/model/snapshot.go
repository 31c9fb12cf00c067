package model

import (
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Snapshot is one cluster at one moment. It is immutable, as is everything it points to: whoever builds the next one
// copies what changed and shares the rest.
type Snapshot struct {
	// Time is when the snapshot was taken. It is the only clock the planner knows.
	Time time.Time
	// Pending are the pods that are bound to no node and not terminal.
	Pending []*Pod
	// Nodes are all Nodes and NodeClaims, a claim and its Node being one. Their bound pods hang on them.
	Nodes []*Node
	// NodePools are all NodePools.
	NodePools []*karpv1.NodePool
	// DaemonSets are all DaemonSets.
	DaemonSets []*DaemonSet
	// DisruptionBudgets are all PodDisruptionBudgets.
	DisruptionBudgets []*DisruptionBudget
	// Namespaces are the labels of all namespaces, by name. Affinity between pods selects namespaces by them.
	Namespaces map[string]map[string]string
	// Storage are the volumes, and what can be made of them.
	Storage Storage
}
