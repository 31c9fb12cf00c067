package crash_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// answered lets EC2 answer launches with failures, in the bodies of fleets and as errors of the API. The worker dies before
// such a call, and again when the next one is answered, before it can use the answer. Once EC2 is well, exactly what was
// wanted exists.
func answered(w *world.World, g *world.Guard, _ failpoints) {
	for _, failing := range []struct {
		name   string
		faults ec2sim.Faults
		points []string
	}{
		{name: "body", faults: ec2sim.Faults{Fleet: []ec2sim.FleetFault{{Code: "InternalError"}}},
			points: []string{"CreateFleet: EC2 CreateFleet before", "CreateFleet: EC2 CreateFleet after"}},
		{name: "error", faults: ec2sim.Faults{Errors: []ec2sim.ErrorFault{{Action: "CreateFleet", Code: "InternalError"}}},
			points: []string{"CreateFleet: EC2 CreateFleet before", "CreateFleet: EC2 CreateFleet refused"}},
	} {
		w.T.(*testing.T).Run(failing.name, func(t *testing.T) {
			s := newTelling(w.For(t), g, "answered-"+failing.name, 1)
			s.answered(failing.faults, failing.points)
			g.AwaitQuiet(s.World)
		})
	}
}

func (s *telling) answered(faults ec2sim.Faults, points []string) {
	s.T.Helper()
	f := newFailpoints(s.T, points)
	if err := s.Lab.Halt(lab.Worker); err != nil {
		s.T.Fatal(err)
	}
	mortal := startWorker(s.World, f, s.Lab.Cluster()+"-worker")
	defer s.bringBack()
	defer mortal.end()
	mortal.awaitWork(s.World)
	s.Sim(http.MethodPost, "/_sim/calls/reset", nil, nil)
	s.Faults(faults)
	s.pool(s.name, "c5.large", "")
	s.create(crowd, "")
	s.Await("the worker has died on both sides of a launch", maxAwait, func() (bool, string) {
		struck := failpoint.Struck(f.dir, points)
		return len(struck) == len(points), fmt.Sprint(struck)
	})
	s.Heal()
	healed := time.Now()
	s.AwaitRunning(s.namespace, crowd, maxAwait)
	s.grewOnce()
	var launched time.Time
	for _, claim := range s.ownClaims() {
		if condition := claim.Condition(karpv1.ConditionTypeLaunched); condition != nil && condition.LastTransitionTime.After(launched) {
			launched = condition.LastTransitionTime.Time
		}
	}
	s.T.Logf("launched %s after EC2 was well again", launched.Sub(healed).Round(time.Second))
	var calls []ec2sim.Call
	s.Sim(http.MethodGet, "/_sim/calls?action=CreateFleet", nil, &calls)
	sent, again := map[string]int{}, 0
	for _, call := range calls {
		if !strings.HasPrefix(call.ClientToken, "tenon-") { // a dry run
			continue
		}
		if sent[call.ClientToken]++; sent[call.ClientToken] > 1 {
			again++
		}
	}
	if again > 1 {
		s.T.Errorf("tokens were sent again %d times, and one answer was not heard: %v", again, sent)
	}
	s.scaleToZero()
}
