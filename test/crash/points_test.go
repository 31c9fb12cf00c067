package crash_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tenon-sh/tenon/internal/failpoint"
	"github.com/tenon-sh/tenon/lab"
	"github.com/tenon-sh/tenon/test/world"
)

// effects are the side effects of a claim's life and of a drain, by activity. The worker is killed before and after each of
// them.
var effects = []struct{ effect, what string }{
	{"Plan: POST nodeclaims", "create the first claim of a plan"},
	{"PrepareLaunch: PATCH nodeclaims", "put the finalizer on a claim that was made by hand"},
	{"EC2 CreateLaunchTemplate", "create the launch template of a group"},
	{"EC2 CreateFleet", "launch a group"},
	{"ReleaseClaims: DELETE nodeclaims", "give back a claim that got no instance"},
	{"ReleaseClaims: PATCH nodeclaims", "take the finalizer off a claim that got no instance"},
	{"Join: PATCH nodeclaims", "label the claim with what was launched"},
	{"Join: PATCH nodeclaims/status{providerID}", "record the instance on the claim"},
	{"Join: PATCH nodes{registered}", "register the Node"},
	{"Join: PATCH nodeclaims/status{nodeName}", "say on the claim that its Node is registered"},
	{"Join: PATCH nodes{initialized}", "label the Node initialized"},
	{`Join: PATCH nodeclaims/status{"reason":"Initialized"}`, "say on the claim that its Node is initialized"},
	{"EC2 CreateTags", "name the instance after its Node"},
	{"Evict: PATCH nodes{disrupted}", "cordon a node that is drained"},
	{"Evict: POST pods/eviction", "evict a pod"},
	{"Evict: DELETE pods", "delete a pod that the deadline overrules"},
	{"Uncordon: PATCH nodes", "take a cordon back"},
	{"PATCH nodeclaims{termination-timestamp}", "note a drain's deadline on the claim"},
	{"DeleteClaim: DELETE nodeclaims", "delete the claim of a node that is drained"},
	{"Remove: PATCH nodes{removal-reason}", "taint an empty node"},
	{"Remove: DELETE nodeclaims", "delete the claim of an empty node"},
	{"BeginReplacement: POST nodeclaims", "create what replaces a node"},
	{"BeginReplacement: PATCH nodes", "mark a node that is replaced"},
	{"BeginReplacement: PATCH nodeclaims/status", "say on the claim why its node is replaced"},
	{"Retire: PATCH nodes{removal-reason}", "note on a node why it goes"},
	{"Retire: DELETE nodeclaims", "delete the claim of a node that is replaced"},
	{"UndoReplacement: PATCH nodeclaims/status", "take back what a claim says of its replacement"},
	{"UndoReplacement: PATCH nodes", "take the mark off a node"},
	{"UndoReplacement: PATCH nodeclaims", "note on a claim that its replacement was taken back"},
	{"UndoReplacement: DELETE nodeclaims", "delete the claim of a replacement that was taken back"},
	{"EC2 TerminateInstances", "terminate an instance"},
	{"Terminate: PATCH nodeclaims/status", "say on the claim that its instance is ending"},
	{"Terminate: PATCH nodes", "take the finalizer off the Node"},
	{"Terminate: PATCH nodeclaims", "take the finalizer off the claim"},
}

// acknowledged are the activities that finish without the worker living to report it.
var acknowledged = []string{"Plan", "PrepareLaunch", "CreateFleet", "FindInstances", "ReleaseClaims", "StartNodeClaims", "Join", "Evict", "Uncordon",
	"DeleteClaim", "Evaluate", "Remove", "BeginReplacement", "AwaitReplacements", "Retire", "AwaitMoved", "UndoReplacement", "Terminate", "Sweep"}

// points returns all points at which the worker is killed.
func points() []string {
	var names []string
	for _, e := range effects {
		names = append(names, e.effect+" before", e.effect+" after")
	}
	// The second of several claims: half of a plan exists.
	names = append(names, "Plan: POST nodeclaims#2 after")
	for _, activity := range acknowledged {
		names = append(names, activity+" ack")
	}
	return names
}

// rounds limits how often the stories run; a point that has not struck by then has failed.
const rounds = 2

// walk runs the stories until each point has struck, with the worker dying at one point after the other.
func walk(w *world.World, g *world.Guard, f failpoints) {
	began := time.Now()
	// The laboratory restarts a worker that keeps dying too slowly.
	if err := w.Lab.Halt(lab.Worker); err != nil {
		w.T.Fatal(err)
	}
	mortal := startWorker(w, f, w.Lab.Cluster()+"-worker")
	defer func() {
		mortal.end()
		if err := w.Lab.Resume(w.Context(), lab.Worker); err != nil {
			w.T.Error(err)
		}
	}()
	for round := 1; ; round++ {
		// The instances of some stories are of a pool without capacity, and what EC2 describes is a little old.
		w.Faults(refusing())
		for chapter, told := range stories {
			w.T.(*testing.T).Run(fmt.Sprintf("Round%d/Chapter%d", round, chapter+1), func(t *testing.T) {
				for _, story := range told {
					t.Run(story.name, func(t *testing.T) {
						t.Parallel()
						story.tell(newTelling(w.For(t), g, story.name, round))
					})
				}
			})
			if w.T.Failed() {
				break
			}
		}
		struck := failpoint.Struck(f.dir, points())
		if w.T.Failed() || len(struck) == len(points()) || round == rounds {
			report(w.T, struck, began)
			break
		}
		w.T.Logf("round %d: %d of %d points have struck after %.0fs", round, len(struck), len(points()), time.Since(began).Seconds())
	}
	w.Heal()
	w.AwaitNothing(maxAwait)
	g.AwaitQuiet(w)
	onlyDeletedByDeadline(w)
}

// report logs the table of points, and fails the test for each point that has not struck.
func report(t testing.TB, struck map[string]time.Time, began time.Time) {
	var table strings.Builder
	fmt.Fprintf(&table, "%d of %d points struck:\n", len(struck), len(points()))
	for _, name := range points() {
		at, ok := struck[name]
		if !ok {
			fmt.Fprintf(&table, "  never  %s\n", name)
			t.Errorf("point %q never struck", name)
			continue
		}
		fmt.Fprintf(&table, "%6.1fs  %s\n", at.Sub(began).Seconds(), name)
	}
	t.Log(table.String())
}

// onlyDeletedByDeadline checks that pods were evicted, and deleted outright only in the story whose deadline requires it.
func onlyDeletedByDeadline(w *world.World) {
	w.T.Helper()
	for _, write := range w.Writes() {
		if write.Verb == "delete" && write.Resource == "pods" && !strings.HasPrefix(write.Name, "deadline-") {
			w.T.Errorf("pod %s was deleted without asking its budget", write.Name)
		}
	}
}
