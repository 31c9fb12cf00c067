package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// The moment of the tests is a Sunday, 12:00 UTC. The first windows are open then, the others open in an hour and never.
const (
	windowOpen   = `[{"schedule": "0 11 * * *", "duration": "2h"}]`
	windowLater  = `[{"schedule": "0 13 * * *", "duration": "1h"}]`
	windowDrift  = `[{"schedule": "0 13 * * *", "duration": "1h", "reasons": ["Drifted", "Overprovisioned"]}]`
	windowRepair = `[{"schedule": "0 13 * * *", "duration": "1h", "reasons": ["Unhealthy", "Interrupted"]}]`
	windowWrong  = `sunday`
)

func windows(t interface{ Fatal(...any) }, text string) karpv1.MaintenanceWindows {
	parsed, err := karpv1.ParseMaintenanceWindows(text)
	if err != nil && text != windowWrong {
		t.Fatal(err)
	}
	return parsed
}

func TestMaintenanceWindows(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		// everywhere and pool are the windows of the cluster and of NodePool p.
		everywhere, pool string
		going            []string
		next             time.Duration
		why              string
	}{
		{reason: "without windows all goes at any time", going: []string{"p", "q", "static"}},
		{reason: "in a window all goes", everywhere: windowOpen, going: []string{"p", "q", "static"}},
		{reason: "outside of it all stays, the surplus of static pools too, until it opens", everywhere: windowLater, next: time.Hour, why: "outside the cluster's maintenance windows for the reason Empty; the next opens at 2026-03-01T13:00:00Z"},
		{reason: "a NodePool's is its own", pool: windowLater, going: []string{"q", "static"}, next: time.Hour, why: "outside the maintenance windows of NodePool p"},
		{reason: "and takes the place of the cluster's", everywhere: windowLater, pool: windowOpen, going: []string{"p"}, next: time.Hour, why: "the cluster's"},
		{reason: "what a window does not name goes", everywhere: windowDrift, going: []string{"p", "q"}},
		{reason: "windows for repair keep nothing else", everywhere: windowRepair, going: []string{"p", "q", "static"}},
		{reason: "what nobody can read keeps its NodePool, and says so", pool: windowWrong, going: []string{"q", "static"}, why: "the maintenance windows of NodePool p cannot be read"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := pausedWorld()
			if test.pool != "" {
				w.pools[0].NodePool.Annotations = map[string]string{karpv1.MaintenanceWindowsAnnotationKey: test.pool}
			}
			in := w.input()
			in.Snapshot.Windows = windows(t, test.everywhere)
			found := plan.Disrupt(in)
			if got := poolsGoing(&w, found); !slices.Equal(got, test.going) {
				t.Errorf("nodes of %v go, want %v", got, test.going)
			}
			if test.next > 0 && !found.NextLook.Equal(now.Add(test.next)) {
				t.Errorf("next look at %s, want %s", found.NextLook, now.Add(test.next))
			}
			said := slices.ContainsFunc(found.Verdicts, func(v plan.Verdict) bool { return v.Cause == plan.CauseWindow && strings.Contains(v.Message, test.why) })
			if test.why != "" && !said {
				t.Errorf("no verdict says %q: %+v", test.why, found.Verdicts)
			}
			command := plan.Command{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{w.nodes[0].Key()}}
			if kept := plan.Confirm(in, command); (len(kept) == 0) != slices.Contains(test.going, "p") {
				t.Errorf("just before the node goes, it is kept by %+v", kept)
			}
		})
	}
}

// A node that has expired and goes by force waits for a window, and the verdict says so.
func TestExpiryWaitsForAWindow(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{intern: in, pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}, nodes: []*plan.Node{existing("n", "m6i.large", expiresAfter(time.Minute), running(in, newPod("web", "1", "1Gi")))}}
	w.pools[0].NodePool.Annotations = map[string]string{karpv1.MaintenanceWindowsAnnotationKey: windowLater}
	input := w.input()
	verdict := verdictsOf(plan.Disrupt(input), "claim-n")[expired]
	if verdict.Cause != plan.CauseWindow || !verdict.Until.Equal(now.Add(time.Hour)) {
		t.Errorf("it stays because of %+v", verdict)
	}
	if would := plan.Observe(input); len(would) != 0 {
		t.Errorf("outside the window, Tenon would %+v", would)
	}
}

// TestNothingGoesOutsideOfAWindow checks with any windows that nothing goes for a reason that waits for one which is not
// open, whoever else has paused what.
func TestNothingGoesOutsideOfAWindow(t *testing.T) {
	t.Parallel()
	all := []string{"", "[]", windowOpen, windowLater, windowDrift, windowRepair, windowWrong,
		`[{"schedule": "0 11 * * *", "duration": "2h", "reasons": ["Empty"]}, {"schedule": "0 13 * * *", "duration": "1h", "reasons": ["Drifted", "Underutilized", "Expired"]}]`}
	rapid.Check(t, func(t *rapid.T) {
		in := new(plan.Interner)
		w := pausedWorld()
		w.intern = in
		for i := range w.pools {
			if rapid.Bool().Draw(t, "own") {
				w.pools[i].NodePool.Annotations = map[string]string{karpv1.MaintenanceWindowsAnnotationKey: rapid.SampledFrom(all[1:]).Draw(t, "pool")}
			}
		}
		for i, change := range []func(*plan.Node){hasDrifted(0), markedExpired, func(*plan.Node) {}} {
			if rapid.Bool().Draw(t, "node") {
				name := string(rune('x' + i))
				w.nodes = append(w.nodes, existing(name, "m6i.xlarge", change, running(in, newPod("pod-"+name, "200m", "256Mi"))))
			}
		}
		input := w.input()
		input.Snapshot.Windows = windows(t, rapid.SampledFrom(all).Draw(t, "everywhere"))
		pools := map[string]*karpv1.NodePool{}
		for _, pool := range w.pools {
			pools[pool.NodePool.Name] = pool.NodePool
		}
		for _, command := range plan.Disrupt(input).Commands {
			for _, key := range command.Nodes {
				at := slices.IndexFunc(w.nodes, func(n *plan.Node) bool { return n.Key() == key })
				if stop := input.Snapshot.Windows.Stop(command.Reason, pools[w.nodes[at].Pool], now); stop != nil {
					t.Fatalf("%s goes for being %s although %s", key, command.Reason, stop)
				}
			}
		}
	})
}
