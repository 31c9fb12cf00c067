package cluster

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// Claim returns the NodeClaim of a name, assumed ones included, or nil.
func (m *Mirror) Claim(name string) *karpv1.NodeClaim {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return claimObject(m.places.claims[name])
}

// ClaimByProviderID returns the NodeClaim whose status names a provider id, or nil.
func (m *Mirror) ClaimByProviderID(id string) *karpv1.NodeClaim {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return claimObject(m.places.claims[first(m.places.claimsOf[id])])
}

// ClaimOfNode returns the NodeClaim a Node comes from, or nil.
func (m *Mirror) ClaimOfNode(name string) *karpv1.NodeClaim {
	m.mu.RLock()
	defer m.mu.RUnlock()
	node, ok := m.nodes.items[name]
	if !ok {
		return nil
	}
	return claimObject(m.places.claimOf(node))
}

func claimObject(claim *promised) *karpv1.NodeClaim {
	if claim == nil {
		return nil
	}
	return claim.claim
}

// Claims returns all NodeClaims ordered by name, assumed ones included.
func (m *Mirror) Claims() []*karpv1.NodeClaim {
	m.mu.RLock()
	defer m.mu.RUnlock()
	claims := make([]*karpv1.NodeClaim, 0, len(m.places.claims))
	for _, name := range slices.Sorted(maps.Keys(m.places.claims)) {
		claims = append(claims, m.places.claims[name].claim)
	}
	return claims
}

// Node returns the Node of a name, or nil.
func (m *Mirror) Node(name string) *corev1.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return nodeObject(m.nodes.items[name])
}

// NodeByProviderID returns the Node with a provider id, or nil. If there are several it is the first by name.
func (m *Mirror) NodeByProviderID(id string) *corev1.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return nodeObject(m.nodes.items[first(m.places.nodesOf[id])])
}

func nodeObject(node *machine) *corev1.Node {
	if node == nil {
		return nil
	}
	return node.node
}

// Nodes returns all Nodes ordered by name.
func (m *Mirror) Nodes() []*corev1.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	nodes := make([]*corev1.Node, 0, len(m.nodes.items))
	for _, name := range slices.Sorted(maps.Keys(m.nodes.items)) {
		nodes = append(nodes, m.nodes.items[name].node)
	}
	return nodes
}

// Attached returns the persistent volumes attached to a node, ordered by name.
func (m *Mirror) Attached(node string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Values(m.storage.attached[node]))
}

// NodePool returns the NodePool of a name, or nil.
func (m *Mirror) NodePool(name string) *karpv1.NodePool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.pools.items[name]
}

// NodePools returns all NodePools ordered by name.
func (m *Mirror) NodePools() []*karpv1.NodePool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return sorted(m.pools.items)
}

// NodeClass returns the EC2NodeClass of a name, or nil.
func (m *Mirror) NodeClass(name string) *awsv1.EC2NodeClass {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.classes.items[name]
}

// NodeClasses returns all EC2NodeClasses ordered by name.
func (m *Mirror) NodeClasses() []*awsv1.EC2NodeClass {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return sorted(m.classes.items)
}

// Pod returns a pod that has not ended, or nil.
func (m *Mirror) Pod(namespace, name string) *Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.pods.items[namespace+"/"+name]
}

// PodsOnNode returns the pods bound to a node that have not ended, ordered by UID.
func (m *Mirror) PodsOnNode(name string) []*Pod {
	m.mu.RLock()
	defer m.mu.RUnlock()
	here := m.places.residents[name]
	if here == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(here.pods), func(a, b *Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
}

// Provisionable counts the pods that wait for a node that does not exist.
func (m *Mirror) Provisionable() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	count := 0
	for _, pod := range m.waiting.pods {
		if pod.Provisionable() {
			count++
		}
	}
	return count
}

func (m *Mirror) poolChanged(old, now *karpv1.NodePool, existed, exists bool) {
	edited := !existed || !exists || old.UID != now.UID || old.Generation != now.Generation ||
		old.IsTrue(karpv1.ConditionTypeReady) != now.IsTrue(karpv1.ConditionTypeReady)
	if !exists {
		now = old
	}
	m.changed()
	m.events.publish(Event{Kind: PoolChanged, Name: now.Name})
	if edited {
		m.events.publish(Event{Kind: PoolEdited, Name: now.Name})
	}
}

func (m *Mirror) classChanged(old, now *awsv1.EC2NodeClass, _, exists bool) {
	if !exists {
		now = old
	}
	m.events.publish(Event{Kind: ClassChanged, Name: now.Name})
}
