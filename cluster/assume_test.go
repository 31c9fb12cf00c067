package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"
)

const (
	claimInFlight = "claim=c node= provider=:"
	claimLaunched = "claim=c node= provider=aws:///c:"
)

func TestAssumedClaimCountsUntilTheWatchPassesIt(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	m := runMirror(t, server, Options{})
	server.set(func() { server.held["nodeclaims"] = true })

	created := testClaim("c", "")
	version := server.put("nodeclaims", created)
	m.Assume(created)
	awaitShape(t, m, "a created claim counts at once", claimInFlight)
	patched := testClaim("c", "aws:///c")
	patchedVersion := server.put("nodeclaims", patched)
	m.Assume(patched)
	m.Assume(created)
	awaitShape(t, m, "the newest assumption counts, whatever the order", claimLaunched)
	if m.claims.feed.pulse.reached(version) {
		t.Fatal("the held watch has delivered")
	}
	brief, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.AwaitClaims(brief, version); !errors.Is(err, context.Canceled) {
		t.Errorf("AwaitClaims before the watch has passed = %v, want %v", err, context.Canceled)
	}

	server.set(func() { server.held["nodeclaims"] = false })
	if err := m.AwaitClaims(within(t), patchedVersion); err != nil {
		t.Fatal(err)
	}
	awaitShape(t, m, "the watch's own word", claimLaunched)
	m.mu.RLock()
	left := len(m.assumed)
	m.mu.RUnlock()
	if left != 0 {
		t.Errorf("%d assumptions are left after the watch has passed them", left)
	}

	server.remove("nodeclaims", patched)
	if err := m.AwaitClaims(within(t), patched.ResourceVersion); err != nil {
		t.Fatal(err)
	}
	m.Assume(created)
	awaitShape(t, m, "a claim that the watch has already seen deleted is not brought back")
	if err := m.AwaitClaims(within(t), server.bookmark("nodeclaims")); err != nil {
		t.Errorf("a bookmark says that everything up to it has been seen: %v", err)
	}
}

func TestAssumedClaimThatIsDeletedBeforeItIsSeen(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	m := runMirror(t, server, Options{})
	server.set(func() { server.held["nodeclaims"] = true })
	claim := testClaim("c", "")
	server.put("nodeclaims", claim)
	m.Assume(claim)
	server.remove("nodeclaims", claim.DeepCopy())
	awaitShape(t, m, "the watch has said nothing yet", claimInFlight)
	server.set(func() { server.held["nodeclaims"] = false })
	awaitShape(t, m, "its creation and deletion arrive together")

	server.set(func() { server.held["nodeclaims"] = true })
	again := testClaim("c", "")
	server.put("nodeclaims", again)
	m.Assume(again)
	m.Forget("c")
	awaitShape(t, m, "a forgotten assumption does not count")
}

func TestAssumptionEndsByTime(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m := runMirror(t, server, Options{Clock: clock, AssumeFor: time.Minute, Log: zap.NewNop()})
	claim := testClaim("c", "")
	claim.ResourceVersion = "not-a-number"
	m.Assume(claim)
	awaitShape(t, m, "versions that cannot be compared are assumed as well", claimInFlight)
	clock.Step(61 * time.Second)
	awaitShape(t, m, "but not for ever")
}
