package worker

import "testing"

func TestResourceOfAPath(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, group, version, resource, subresource string
		named                                       bool
	}{
		{path: "/api/v1/nodes", version: "v1", resource: "nodes"},
		{path: "/api/v1/namespaces/{name}", version: "v1", resource: "namespaces", named: true},
		{path: "/api/v1/namespaces/{namespace}/pods/{name}/eviction", version: "v1", resource: "pods", subresource: "eviction", named: true},
		{path: "/apis/karpenter.sh/v1/nodeclaims/{name}", group: "karpenter.sh", version: "v1", resource: "nodeclaims", named: true},
		{path: "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases", group: "coordination.k8s.io", version: "v1", resource: "leases"},
		{path: "/readyz"},
		{path: "/apis"},
	} {
		group, version, resource, subresource, named := resourceOf(test.path)
		if group != test.group || version != test.version || resource != test.resource || subresource != test.subresource || named != test.named {
			t.Errorf("%s: %q %q %q %q %t", test.path, group, version, resource, subresource, named)
		}
	}
}
