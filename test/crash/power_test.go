package crash_test

import (
	"strings"
	"time"

	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/test/world"
)

// The pods of a scale-out and the nodes they fill, three pods to a node.
const (
	crowd      = 15
	crowdNodes = 5
)

// cuts are the moments of a scale-out at which every process of the laboratory dies at once.
var cuts = []struct {
	moment string
	// faults keep the moment from passing at once.
	faults ec2sim.Faults
	// come reports whether the moment has come.
	come func(*telling) bool
}{
	{moment: "planned", faults: slow("CreateLaunchTemplate"), come: func(s *telling) bool {
		return len(s.ownClaims()) == crowdNodes
	}},
	{moment: "launched", faults: slow("CreateFleet"), come: func(s *telling) bool {
		return len(s.ownInstances()) > 0
	}},
	{moment: "registering", faults: ec2sim.Faults{}, come: func(s *telling) bool {
		return len(s.ownNodes()) > 0
	}},
}

// slow delays the answers to an action.
func slow(action string) ec2sim.Faults {
	return ec2sim.Faults{Slow: []ec2sim.ReplyFault{{Action: action, Delay: ec2sim.Duration(5 * time.Second)}}}
}

// powerCut kills everything in the middle of a scale-out and restarts it from what is left on disk.
func powerCut(w *world.World, g *world.Guard, _ failpoints) {
	for i, cut := range cuts {
		s := newTelling(w, g, "powercut-"+cut.moment, i)
		s.pool(s.name, "c5.large", "")
		s.Faults(cut.faults)
		s.create(crowd, "")
		s.Await(cut.moment, maxAwait, func() (bool, string) { return cut.come(s), "" })
		s.T.Logf("power cut with %d claims, %d instances and %d nodes", len(s.ownClaims()), len(s.ownInstances()), len(s.ownNodes()))
		s.CrashAndResume()
		s.Heal()
		s.AwaitRunning(s.namespace, crowd, maxAwait)
		s.grewOnce()
		s.scaleToZero()
		g.AwaitQuiet(w)
	}
}

// grewOnce checks that no more claims were ever made than the scale-out needs.
func (s *telling) grewOnce() {
	s.T.Helper()
	ever := 0
	for _, claim := range s.guard.Ever() {
		if strings.HasPrefix(claim, s.name+"-") {
			ever++
		}
	}
	if ever != crowdNodes {
		s.T.Errorf("%d claims were made for %d pods, want %d", ever, crowd, crowdNodes)
	}
}
