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
	// freshEnough is how old the mirror may be for a node to be called unneeded.
	freshEnough = 30 * time.Second
	// staleAgain is how soon it is asked again where it is older.
	staleAgain = 10 * time.Second
)

// Mirror is the live view of the cluster that the edges watch.
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
	ClaimByInstance(id string) *karpv1.NodeClaim
	PodsOnNode(name string) []*cluster.Pod
	Promised(key string) []*cluster.Pod
	// Overdue are the claims whose nodes serve later than is usual in their NodePool.
	Overdue() []*karpv1.NodeClaim
}
