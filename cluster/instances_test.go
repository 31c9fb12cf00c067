package cluster

import "testing"

func TestClaimByInstance(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	server.put("nodeclaims", testClaim("claim-a", "aws:///us-east-1a/i-1"))
	server.put("nodeclaims", testClaim("claim-b", ""))
	m := runMirror(t, server, Options{})
	claimOf := func(instance string) string {
		if claim := m.ClaimByInstance(instance); claim != nil {
			return claim.Name
		}
		return ""
	}
	if got := claimOf("i-1"); got != "claim-a" {
		t.Errorf("i-1 is of claim %q, want claim-a", got)
	}
	if got := claimOf(""); got != "" {
		t.Errorf("no instance is of claim %q: claims without an instance have none in common", got)
	}
	server.put("nodeclaims", testClaim("claim-b", "aws:///us-east-1b/i-2"))
	awaitShape(t, m, "a claim gets its instance", "claim=claim-a node= provider=aws:///us-east-1a/i-1:", "claim=claim-b node= provider=aws:///us-east-1b/i-2:")
	if got := claimOf("i-2"); got != "claim-b" {
		t.Errorf("i-2 is of claim %q, want claim-b", got)
	}
	server.remove("nodeclaims", testClaim("claim-a", "aws:///us-east-1a/i-1"))
	awaitShape(t, m, "a claim is gone", "claim=claim-b node= provider=aws:///us-east-1b/i-2:")
	if got := claimOf("i-1"); got != "" {
		t.Errorf("i-1 is of claim %q, which is gone", got)
	}
}
