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

// pausedWorld is a cluster of two NodePools with an empty node each, a static pool with a node too many, and a pod that
// waits for a node.
func pausedWorld() world {
	w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}, {NodePool: nodePool("q"), Types: smallCatalogue()}, {NodePool: static(1), Types: smallCatalogue()}}}
	for _, name := range []string{"p", "q"} {
		w.nodes = append(w.nodes, existing(name+"1", "m6i.large", func(n *plan.Node) { n.Pool, n.Created = name, now.Add(-time.Hour) }))
	}
	w.nodes = append(w.nodes, ofStatic("s1"), ofStatic("s2"))
	return w
}

func poolsGoing(w *world, found plan.Disruption) []string {
	var going []string
	for _, command := range found.Commands {
		for _, key := range command.Nodes {
			for _, n := range w.nodes {
				if n.Key() == key && !slices.Contains(going, n.Pool) {
					going = append(going, n.Pool)
				}
			}
		}
	}
	slices.Sort(going)
	return going
}

func TestPausedDisruption(t *testing.T) {
	t.Parallel()
	paused := func(until time.Duration) []karpv1.Pause {
		p := karpv1.Pause{What: karpv1.PauseDisruption, Reason: "peak", By: "alice"}
		if until != 0 {
			p.Until = now.Add(until)
		}
		return []karpv1.Pause{p}
	}
	for _, test := range []struct {
		reason     string
		everywhere []karpv1.Pause
		pool       map[string]string
		going      []string
		next       time.Duration
		why        string
	}{
		{reason: "nothing is paused", going: []string{"p", "q", "static"}},
		{reason: "everything stays, the surplus of static pools too", everywhere: paused(0), why: "disruption is paused in the whole cluster by alice: peak"},
		{reason: "the end of the pause is when to look again", everywhere: paused(time.Hour), next: time.Hour, why: "disruption is paused in the whole cluster until"},
		{reason: "a pause that is over stops nothing", everywhere: paused(-time.Second), going: []string{"p", "q", "static"}},
		{reason: "a pool's pause is its own", pool: map[string]string{karpv1.PauseAnnotationKey: "disruption"}, going: []string{"q", "static"}, why: "disruption is paused for NodePool p"},
		{reason: "an observed pool stays", pool: map[string]string{karpv1.ObserveAnnotationKey: "true"}, going: []string{"q", "static"}, why: "NodePool p is only observed"},
		{reason: "a pause of provisioning removes what is not needed", everywhere: []karpv1.Pause{{What: karpv1.PauseProvisioning}}, going: []string{"p", "q", "static"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			w := pausedWorld()
			w.pools[0].NodePool.Annotations = test.pool
			in := w.input()
			in.Snapshot.Pauses = test.everywhere
			found := plan.Disrupt(in)
			if got := poolsGoing(&w, found); !slices.Equal(got, test.going) {
				t.Errorf("nodes of %v go, want %v", got, test.going)
			}
			if test.next > 0 && !found.NextLook.Equal(now.Add(test.next)) {
				t.Errorf("next look at %s, want %s", found.NextLook, now.Add(test.next))
			}
			said := slices.ContainsFunc(found.Verdicts, func(v plan.Verdict) bool { return v.Cause == plan.CausePaused && strings.Contains(v.Message, test.why) })
			if said != (test.why != "") {
				t.Errorf("verdicts say %q: %v: %+v", test.why, said, found.Verdicts)
			}
			command := plan.Command{Reason: karpv1.DisruptionReasonEmpty, Nodes: []string{w.nodes[0].Key()}}
			if kept := plan.Confirm(in, command); (len(kept) > 0) != (test.why != "") {
				t.Errorf("just before the node goes, it is kept by %+v", kept)
			}
		})
	}
}

func TestPausedProvisioning(t *testing.T) {
	t.Parallel()
	w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}, {NodePool: static(3), Types: smallCatalogue()}}, pods: manyPods(1, "web", "1", "1Gi")}
	in := w.input()
	if claims, _ := plan.Static(in); len(claims) != 3 || len(plan.Pack(in).Claims) != 1 {
		t.Fatal("the scene needs no nodes")
	}
	in.Snapshot.Pauses = []karpv1.Pause{{What: karpv1.PauseProvisioning, Reason: "quota", By: "bob"}}
	claims, refused := plan.Static(in)
	packed := plan.Pack(in)
	const why = "provisioning is paused in the whole cluster by bob: quota"
	if len(claims)+len(packed.Claims) > 0 || len(refused) != 1 || refused[0].Message != why {
		t.Errorf("launches %d and %d, refused %v", len(claims), len(packed.Claims), refused)
	}
	if len(packed.Unplaced) != 1 || packed.Unplaced[0].Reasons[0].Message != why {
		t.Errorf("the pod is told %+v", packed.Unplaced)
	}
	if short := plan.Shortages(in.Snapshot); len(short) != 1 || short[0].Nodes != 0 {
		t.Errorf("shortages %+v would wake Provisioning for nothing", short)
	}
}

// TestObserve checks that an observed pool gets nothing done, and is told what would be.
func TestObserve(t *testing.T) {
	t.Parallel()
	w := pausedWorld()
	w.pods = manyPods(1, "web", "100", "1Gi")
	w.pools[0].NodePool.Annotations = map[string]string{karpv1.ObserveAnnotationKey: "true"}
	in := w.input()
	found := plan.Observe(in)
	if text := plan.Describe(found["p"]); text != "would carry out removals, 1: Empty: claim-p1 (no pods have to move)" {
		t.Errorf("of p it says %q", text)
	}
	if got := poolsGoing(&w, plan.Disrupt(in)); slices.Contains(got, "p") {
		t.Errorf("nodes of %v go", got)
	}
	if text := plan.Describe(plan.Observation{Launches: []string{"a", "b", "c", "d", "e", "f"}, SavesPerHour: 1.5}); text != "would launch 6: a; b; c; d; e; and 1 more. would save $1.5000 an hour" {
		t.Errorf("many launches are described as %q", text)
	}
	if w.pools[0].NodePool.Annotations[karpv1.ObserveAnnotationKey] != "true" {
		t.Error("the NodePool of the mirror was changed")
	}
}

// TestPausedThingsNeverHappen checks at any moment and with any pauses that nothing is decided for what is paused.
func TestPausedThingsNeverHappen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := pausedWorld()
		w.pods = manyPods(2, "web", "1", "1Gi")
		draw := func(label string) []karpv1.Pause {
			var all []karpv1.Pause
			for range rapid.IntRange(0, 3).Draw(t, label) {
				pause := karpv1.Pause{What: rapid.SampledFrom(karpv1.PauseScopes()).Draw(t, "scope")}
				if rapid.Bool().Draw(t, "ends") {
					pause.Until = now.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "until")) * time.Second)
				}
				all = append(all, pause)
			}
			return all
		}
		for i := range w.pools {
			w.pools[i].NodePool.Annotations = map[string]string{karpv1.PauseAnnotationKey: karpv1.FormatPauses(draw("pool"))}
			if rapid.IntRange(0, 4).Draw(t, "observed") == 0 {
				w.pools[i].NodePool.Annotations[karpv1.ObserveAnnotationKey] = "true"
			}
		}
		in := w.input()
		in.Snapshot.Pauses = draw("cluster")
		stopped := func(scope karpv1.PauseScope, name string) *karpv1.Stop {
			at := slices.IndexFunc(w.pools, func(p plan.Pool) bool { return p.NodePool.Name == name })
			return karpv1.StopOf(scope, in.Snapshot.Pauses, w.pools[at].NodePool, now)
		}
		for _, name := range poolsGoing(&w, plan.Disrupt(in)) {
			if stop := stopped(karpv1.PauseDisruption, name); stop != nil {
				t.Fatalf("nodes of %s go although %s", name, stop)
			}
		}
		static, _ := plan.Static(in)
		for _, claim := range append(static, plan.Pack(in).Claims...) {
			if stop := stopped(karpv1.PauseProvisioning, claim.NodePool); stop != nil {
				t.Fatalf("a node of %s is launched although %s", claim.NodePool, stop)
			}
		}
	})
}
