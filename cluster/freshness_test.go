package cluster

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
)

// eventually polls until a condition holds that no event announces.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx := within(t)
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func TestFreshness(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0))
	m, err := NewMirror(server.config(), Options{Kind: nodeclass.Kind(), Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	if age := m.Staleness(); age != math.MaxInt64 {
		t.Errorf("before Run the mirror claims to be %s old", age)
	}
	m = runMirror(t, server, Options{Clock: clock, Log: zap.NewNop()})

	for range 720 { // an hour in which nothing happens
		clock.Step(5 * time.Second)
		eventually(t, "a heartbeat makes an idle mirror fresh", func() bool { return m.Staleness() == 0 })
	}

	server.endWatches()
	eventually(t, "watches that ended in order are back", func() bool {
		clock.Step(time.Second)
		return m.Fresh(5*time.Second) == nil
	})

	server.set(func() { server.down = true })
	for range 7 {
		clock.Step(5 * time.Second)
	}
	var stale *StaleError
	if err := m.Fresh(30 * time.Second); !errors.As(err, &stale) || stale.Age <= 30*time.Second {
		t.Errorf("35 s without an API server: Fresh(30s) = %v, want a StaleError", err)
	}
	server.set(func() { server.down = false })
	eventually(t, "the mirror recovers by itself", func() bool {
		clock.Step(time.Second)
		return m.Fresh(10*time.Second) == nil
	})

	server.set(func() { server.refused["pods"] = true })
	eventually(t, "one resource that cannot be watched makes the whole stale", func() bool {
		clock.Step(time.Second)
		err := m.Fresh(30 * time.Second)
		return err != nil && strings.Contains(err.Error(), "pods")
	})
}

func TestMirrorCatchesUpAfterTheGap(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	kept, gone := testPod("kept", ""), testPod("gone", "")
	server.put("pods", kept)
	server.put("pods", gone)
	m := runMirror(t, server, Options{Log: zap.NewNop()})
	awaitShape(t, m, "the first list", "pending gone", "pending kept")

	server.set(func() { server.refused["pods"] = true })
	server.remove("pods", gone)
	server.put("pods", testPod("new", ""))
	server.compact()
	server.set(func() { server.refused["pods"] = false })
	awaitShape(t, m, "history is gone: the list replaces what was known", "pending kept", "pending new")
}
