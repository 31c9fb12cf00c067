// Package crash_test kills processes. The worker dies at every side effect of a claim's life, of a drain and of a
// replacement: before it, after it, and before Temporal hears of it. The whole laboratory loses power in the middle of a
// scale-out. Workers stay dead for a while, or die beside one that lives. All the while and afterwards, an independent
// observer checks whether a machine was launched twice or forgotten, a pod lost, or a disruption budget broken.
package crash_test

import (
	"os"
	"testing"

	"github.com/tenon-sh/tenon/test/world"
)

// TestCrash is the one test of this package: its parts share a laboratory and run one after the other.
func TestCrash(t *testing.T) {
	f := newFailpoints(t, points())
	w := world.Start(t, world.Options{Worker: []string{sweeping}, WorkerEnv: f.env})
	g := w.Guard()
	defer g.End(t)
	for _, part := range []struct {
		name string
		run  func(*world.World, *world.Guard, failpoints)
	}{
		{"Points", walk},
		{"Answered", answered},
		{"Opened", opened},
		{"PowerCut", powerCut},
		{"Absence", absence},
		{"TwoWorkers", twoWorkers},
	} {
		t.Run(part.name, func(t *testing.T) {
			// A power cut changes the World itself, so no part has a copy of its own.
			outer := w.T
			w.T = t
			defer func() { w.T = outer }()
			part.run(w, g, f)
		})
	}
}

func TestMain(m *testing.M) { os.Exit(world.Main(m, 16)) }
