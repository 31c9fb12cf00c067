package worker

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// TestAnObservingWorkerNeverActs checks that the fence stays closed for a worker that only observes, even while its own
// deployment holds the Lease.
func TestAnObservingWorkerNeverActs(t *testing.T) {
	t.Parallel()
	f, err := newFence(func(time.Duration) error { return nil }, prometheus.NewRegistry(), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	f.see(holderPrefix+"other", time.Now())
	if err := f.closed(); err != nil {
		t.Fatalf("the fence is closed although Tenon holds the Lease: %v", err)
	}
	f.observes = true
	if err := f.closed(); !errors.Is(err, errObserves) {
		t.Errorf("a worker that only observes may act: %v", err)
	}
	if err := (fencedCloud{fence: f}).pass(); !errors.Is(err, errObserves) {
		t.Errorf("a worker that only observes may launch: %v", err)
	}
}
