package clustermetrics

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// Mirror is the view of the cluster that metrics are computed from.
type Mirror interface {
	Snapshot() *plan.Snapshot
	Staleness() time.Duration
	Nodes() []*corev1.Node
	Claims() []*karpv1.NodeClaim
	ClaimOfNode(name string) *karpv1.NodeClaim
	NodePools() []*karpv1.NodePool
	NodeClasses() []cloud.NodeClass
	PodsSeen() []cluster.PodSeen
	Promises(pod cluster.PodSeen) bool
	Provisionable() int
}

// State computes the metrics of what is now.
type State struct {
	mirror Mirror
	kind   cloud.Kind
	// pools returns the NodePools with what can be bought for them.
	pools func(ctx context.Context) []plan.Pool
	now   func() time.Time

	labels nodeLabels

	mu sync.Mutex
	// eligible are the nodes that may be disrupted, by reason, as the last evaluation found them.
	eligible map[karpv1.DisruptionReason]int
}

// NewState returns the metrics of a cluster.
func NewState(mirror Mirror, kind cloud.Kind, pools func(ctx context.Context) []plan.Pool) *State {
	return &State{mirror: mirror, kind: kind, pools: pools, now: time.Now}
}
