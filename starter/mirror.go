package starter

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// freshEnough is the maximum age of the mirror for a decision about nodes.
	freshEnough = 30 * time.Second
	// staleAgain is the delay before the next look when the mirror is older.
	staleAgain = 10 * time.Second
)

// Mirror is the mirror of the cluster that the edges watch.
type Mirror interface {
	WaitSynced(ctx context.Context) error
	Fresh(most time.Duration) error
	Snapshot() *plan.Snapshot
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
	Claim(name string) *karpv1.NodeClaim
	Claims() []*karpv1.NodeClaim
	ClaimOfNode(name string) *karpv1.NodeClaim
	Node(name string) *corev1.Node
	Nodes() []*corev1.Node
	Buffers() []cluster.Buffer
	// Pauses returns what people have paused in the whole cluster, NodePool the one with a name or nil.
	Pauses() []karpv1.Pause
	// Windows returns the maintenance windows of the whole cluster.
	Windows() karpv1.MaintenanceWindows
	NodePool(name string) *karpv1.NodePool
	ClaimByInstance(id string) *karpv1.NodeClaim
	PodsOnNode(name string) []*cluster.Pod
	Promised(key string) []*cluster.Pod
	// Overdue returns the claims whose nodes take longer to serve than is usual in their NodePool.
	Overdue() []*karpv1.NodeClaim
}
