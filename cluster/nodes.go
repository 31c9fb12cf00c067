package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// nodes are the Nodes of the cluster, and the handling of their changes.
type nodes struct {
	*shared
	feed      *feed[*machine]
	places    *places
	boundPods *boundPods
	promises  *promises
	claims    *claims
}

// follow subscribes the store to its watch.
func (n *nodes) follow() *nodes {
	n.feed.changed = n.nodeChanged
	return n
}

// Node returns the Node with a name, or nil.
func (n *nodes) Node(name string) *corev1.Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return nodeObject(n.feed.items[name])
}

// NodeByProviderID returns the Node with a provider id, or nil. If there are several it is the first by name.
func (n *nodes) NodeByProviderID(id string) *corev1.Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return nodeObject(n.feed.items[first(n.places.nodesOf[id])])
}

// Nodes returns all Nodes ordered by name.
func (n *nodes) Nodes() []*corev1.Node {
	n.mu.RLock()
	defer n.mu.RUnlock()
	nodes := make([]*corev1.Node, 0, len(n.feed.items))
	for _, name := range slices.Sorted(maps.Keys(n.feed.items)) {
		nodes = append(nodes, n.feed.items[name].node)
	}
	return nodes
}

// ErrClaimDeleted means that the NodeClaim that AwaitNode waits for is being deleted or is gone.
var ErrClaimDeleted = errors.New("the NodeClaim is deleted")

// AwaitNode waits until ok holds for the Node with a provider id and its NodeClaim, either of which may be nil. It
// returns ErrClaimDeleted when the claim is being deleted, or is gone after it was seen.
func (n *nodes) AwaitNode(ctx context.Context, providerID string, ok func(*corev1.Node, *karpv1.NodeClaim) bool) (node *corev1.Node, claim *karpv1.NodeClaim, err error) {
	seen := false
	err = n.Await(ctx, func() (bool, error) {
		node, claim = n.NodeByProviderID(providerID), n.claims.ClaimByProviderID(providerID)
		if claim == nil && seen || claim != nil && claim.DeletionTimestamp != nil {
			return false, ErrClaimDeleted
		}
		seen = claim != nil
		return ok(node, claim), nil
	}, Event{Kind: providerPlace, Name: providerID})
	return node, claim, err
}

// nodeChanged updates the join of Nodes, and forgets what is remembered of a Node that is gone. The lock is held.
func (n *nodes) nodeChanged(old, now *machine, existed, exists bool) {
	name, before, after := "", "", ""
	if existed {
		name, before = old.node.Name, old.node.Spec.ProviderID
	}
	if exists {
		name, after = now.node.Name, now.node.Spec.ProviderID
	} else {
		n.boundPods.nodeGone(name)
		n.promises.retract(name)
	}
	n.places.moveNode(name, before, after)
	n.publish(Event{Kind: NodeChanged, Name: name})
}
