package crash_test

import (
	"syscall"
	"time"

	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// awayFor is how long no worker runs: longer than the thirty seconds after which Karpenter regards an instance without a
// claim as orphaned, and than any heartbeat timeout.
const awayFor = 35 * time.Second

// absence kills the only worker with claims in flight. Meanwhile pods are created, a claim is deleted, and machines boot.
func absence(w *world.World, g *world.Guard, _ failpoints) {
	s := newTelling(w, g, "absence", 1)
	s.pool(s.name, "c5.large", "")
	s.create(crowd-3, "")
	s.Await("launched", maxAwait, func() (bool, string) { return len(s.ownInstances()) > 0, "" })
	s.killForGood()
	doomed := s.ownClaims()[0].Name
	s.deleteClaim(doomed)
	s.Apply(s.deployment(crowd, ""))
	time.Sleep(awayFor)
	s.bringBack()
	s.AwaitRunning(s.namespace, crowd, maxAwait)
	s.Await("claim "+doomed+" gone", maxAwait, func() (bool, string) { return s.claim(doomed) == nil, "" })
	s.scaleToZero()
	g.AwaitQuiet(w)
}

// twoWorkers runs a second worker beside the laboratory's. One dies during a scale-out; the other, which holds the Lease,
// dies during a drain under a disruption budget.
func twoWorkers(w *world.World, g *world.Guard, f failpoints) {
	s := newTelling(w, g, "two", 1)
	s.pool(s.name, "c5.large", "")
	second := startWorker(w, f, "second")
	second.awaitWork(w)
	s.create(crowd, "")
	s.Await("launched", maxAwait, func() (bool, string) { return len(s.ownInstances()) > 0, "" })
	second.end()
	s.AwaitRunning(s.namespace, crowd, maxAwait)
	s.grewOnce()

	second = startWorker(w, f, "second")
	defer second.end()
	second.awaitWork(w)
	release := g.Budget(w, s.namespace, crowd-1)
	node := s.node()
	s.tenon("drain", node)
	s.Await("node "+node+" cordoned", maxAwait, func() (bool, string) { return s.cordoned(node), "" })
	s.killForGood()
	s.awaitNoNode(node)
	s.AwaitRunning(s.namespace, crowd, maxAwait)
	release()
	s.scaleToZero()
	s.bringBack()
	g.AwaitQuiet(w)
}

// killForGood kills the laboratory's worker and keeps it from being restarted.
func (s *telling) killForGood() {
	s.T.Helper()
	if err := s.Lab.Kill(lab.Worker, syscall.SIGKILL); err != nil {
		s.T.Fatal(err)
	}
	if err := s.Lab.Halt(lab.Worker); err != nil {
		s.T.Fatal(err)
	}
}

func (s *telling) bringBack() {
	s.T.Helper()
	if err := s.Lab.Resume(s.Context(), lab.Worker); err != nil {
		s.T.Fatal(err)
	}
}
