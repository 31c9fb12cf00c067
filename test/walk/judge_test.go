package walk_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

// TestWitness holds that the witness finds in the audit log what it is there for, and nothing else.
func TestWitness(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	create := func(second int, resource string) world.Request {
		return world.Request{Verb: "create", Resource: resource, Name: "n", Code: 201, At: at(second)}
	}
	remove := func(namespace, name string) world.Request {
		return world.Request{Verb: "delete", Resource: "pods", Namespace: namespace, Name: name, Code: 200, At: at(0)}
	}
	refused := create(20, "nodeclaims")
	refused.Code = 409
	seen := &witness{
		hosts: map[string]string{"web/a": "calm", "web/b": "late", "web/d": "opened", "web/e": "opened-before"}, forced: map[string]bool{"late": true},
		opened: map[string]time.Time{"opened": at(-1), "opened-before": at(-20)},
		thefts: []theft{{at(0), at(30)}}, thaws: []time.Time{at(25)},
	}
	ended := at(-2)
	seen.excuse([]ec2sim.Instance{{PrivateDNS: "opened", EndedAt: &ended}, {PrivateDNS: "opened-before", EndedAt: &ended}, {PrivateDNS: "calm", EndedAt: &ended}})
	for _, row := range []struct {
		reason string
		write  world.Request
		want   bool
	}{
		{"nobody has taken the Lease", create(-5, "nodeclaims"), false},
		{"the worker may not have noticed", create(10, "nodeclaims"), false},
		{"it should have", create(15, "nodeclaims"), true},
		{"a pod is evicted", create(15, "pods/eviction"), true},
		{"it was under way while something stood still", create(27, "nodeclaims"), false},
		{"the Lease is asked for", create(15, "leases"), false},
		{"the API server refused it", refused, false},
		{"the Lease is let go", create(31, "nodeclaims"), false},
		{"a pod is deleted of a node that nobody hurries", remove("web", "a"), true},
		{"the node has a deadline", remove("web", "b"), false},
		{"somebody opened the node when its machine was ending", remove("web", "d"), false},
		{"somebody opened the node, and its machine ended all the same", remove("web", "e"), true},
		{"the pod was on no node", remove("web", "c"), false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			wrong := append(seen.unfenced([]world.Request{row.write}), seen.unevicted([]world.Request{row.write})...)
			if (len(wrong) > 0) != row.want {
				t.Errorf("found %q, want something: %t", wrong, row.want)
			}
		})
	}
}
