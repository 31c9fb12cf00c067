package cluster

import "k8s.io/client-go/tools/cache"

// Feed gives a mirror an object of a resource as its watch would.
func Feed(m *Mirror, resource string, object any) error {
	stores := map[string]cache.ReflectorStore{"pods": m.pods.feed, "nodes": m.nodes.feed, "nodeclaims": m.claims.feed}
	if store, ok := stores[resource]; ok {
		return store.Update(object)
	}
	return storeOf(m, resource).Update(object)
}
