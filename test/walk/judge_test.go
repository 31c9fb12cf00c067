package walk_test

import (
	"testing"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

// TestWitness checks that the witness finds violations in the audit log, and nothing else.
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
		{reason: "nobody has taken the Lease", write: create(-5, "nodeclaims"), want: false},
		{reason: "the worker may not have noticed", write: create(10, "nodeclaims"), want: false},
		{reason: "it should have", write: create(15, "nodeclaims"), want: true},
		{reason: "a pod is evicted", write: create(15, "pods/eviction"), want: true},
		{reason: "it was under way while something stood still", write: create(27, "nodeclaims"), want: false},
		{reason: "the Lease is asked for", write: create(15, "leases"), want: false},
		{reason: "the API server refused it", write: refused, want: false},
		{reason: "the Lease is let go", write: create(31, "nodeclaims"), want: false},
		{reason: "a pod is deleted of a node that nobody hurries", write: remove("web", "a"), want: true},
		{reason: "the node has a deadline", write: remove("web", "b"), want: false},
		{reason: "somebody opened the node when its machine was ending", write: remove("web", "d"), want: false},
		{reason: "somebody opened the node, and its machine ended all the same", write: remove("web", "e"), want: true},
		{reason: "the pod was on no node", write: remove("web", "c"), want: false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			wrong := append(seen.unfenced([]world.Request{row.write}), seen.unevicted([]world.Request{row.write})...)
			if (len(wrong) > 0) != row.want {
				t.Errorf("found %q, want something: %t", wrong, row.want)
			}
		})
	}
}
