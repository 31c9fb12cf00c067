package activities

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

// Mirror is the live view of the cluster that activities plan over and wait on. Objects are shared and read-only.
type Mirror interface {
	// Snapshot returns the cluster as planning sees it.
	Snapshot() *plan.Snapshot
	// Fresh returns an error when the view may be older than most.
	Fresh(most time.Duration) error
	// Assume shows claims that were just created, before the watch delivers them.
	Assume(claims ...*karpv1.NodeClaim)
	// Promise remembers the pending pods that were planned for a claim until they are bound. Planned does so for the pods
	// that a plan places on existing nodes and claims.
	Promise(claim string, pods []types.UID, until time.Time)
	Planned(packed plan.Plan, until time.Time)
	// Grown returns how many nodes came up for the pending pods; before holds the numbers that are known already.
	Grown(before map[types.UID]int) map[types.UID]int
	// AwaitClaims returns once the view of NodeClaims is at least as new as a resource version.
	AwaitClaims(ctx context.Context, resourceVersion string) error
	// QuietPods returns once no further pending pod has arrived for idle, or after most.
	QuietPods(ctx context.Context, idle, most time.Duration) error
	// AwaitNode returns once the condition holds for the Node of a machine and its claim, either of which may be nil,
	// and cluster.ErrClaimDeleted once the claim is being removed.
	AwaitNode(ctx context.Context, providerID string, ok func(*corev1.Node, *karpv1.NodeClaim) bool) (*corev1.Node, *karpv1.NodeClaim, error)
	NodeByProviderID(id string) *corev1.Node
	// Await returns nil once done returns true, or done's error. It calls done at once and after each of the events.
	Await(ctx context.Context, done func() (bool, error), on ...cluster.Event) error
	Claim(name string) *karpv1.NodeClaim
	ClaimByProviderID(id string) *karpv1.NodeClaim
	// Claims and Nodes return all of them, ordered by name.
	Claims() []*karpv1.NodeClaim
	Node(name string) *corev1.Node
	Nodes() []*corev1.Node
	// Attached returns the persistent volumes that are attached to a node.
	Attached(node string) []string
	// UnpublishedDriver returns the first of some drivers that has not published its devices on a node; empty if all have.
	UnpublishedDriver(node string, drivers []string) string
	// PodsOnNode returns the pods bound to a node that have not terminated.
	PodsOnNode(name string) []*cluster.Pod
	// PodsOwnedBy returns the pods of a controller that have not terminated.
	PodsOwnedBy(namespace, kind, name string) []*cluster.Pod
	NodePools() []*karpv1.NodePool
	NodePool(name string) *karpv1.NodePool
	// Pauses returns what people have paused in the whole cluster.
	Pauses() []karpv1.Pause
	NodeClass(name string) cloud.NodeClass
	NodeClasses() []cloud.NodeClass
	NodeOverlays() []*karpv1alpha1.NodeOverlay
}
