package cluster

import (
	"strings"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// ClaimByInstance returns the NodeClaim of an instance, or nil. Who has only the cloud's own id of an instance, and not
// its zone, cannot make a provider id of it.
func (m *Mirror) ClaimByInstance(id string) *karpv1.NodeClaim {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return claimObject(m.places.claims[first(m.places.claimsByInstance[id])])
}

// instanceID is the last part of a provider id: i-0123 of aws:///us-east-1a/i-0123.
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
