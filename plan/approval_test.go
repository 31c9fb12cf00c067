package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// marked puts what people have been asked or have decided onto a node.
func marked(state karpv1.ApprovalState, reason karpv1.DisruptionReason, drift string, lasts time.Duration) func(*plan.Node) {
	return func(n *plan.Node) {
		n.Approvals = append(n.Approvals, karpv1.Approval{ID: "a-" + n.Name, State: state, Reason: reason, For: drift, Claims: []string{n.Key()}, Since: now.Add(-time.Hour),
			Until: now.Add(lasts), By: "alice", Note: "because"})
	}
}

// hashed gives a node a drift.
func hashed(drift string) func(*plan.Node) {
	return func(n *plan.Node) {
		hasDrifted(10)(n)
		n.DriftHash = drift
	}
}

// TestApproval checks what a pool with one node does that needs approval: whether the node goes, what people are asked, and
// what they need not decide any more.
func TestApproval(t *testing.T) {
	t.Parallel()
	const granted, waiting, rejected = karpv1.ApprovalGranted, karpv1.ApprovalWaiting, karpv1.ApprovalRejected
	for name, test := range map[string]struct {
		reason, approval string
		node             []func(*plan.Node)
		pods             bool
		change           func(*karpv1.NodePool)
		goes             karpv1.DisruptionReason
		proposes         string
		says, outdated   string
	}{
		"Unasked":      {reason: "without the annotation an empty node goes", goes: empty},
		"OtherReason":  {reason: "only what is named needs approval", approval: "drift", goes: empty},
		"Empty":        {reason: "an empty node waits, and people are asked", approval: "empty", proposes: "Empty remove claim-n", says: "its NodePool wants approval"},
		"Waits":        {reason: "people are asked once", approval: "empty", node: []func(*plan.Node){marked(waiting, empty, "", time.Hour)}, says: "it waits for approval since 2026-03-01T11:00:00Z; tenon approve n"},
		"Expired":      {reason: "an approval that has expired may be proposed again", approval: "empty", node: []func(*plan.Node){marked(waiting, empty, "", 0)}, proposes: "Empty remove claim-n", says: "its NodePool wants approval"},
		"Approved":     {reason: "an approved node goes, and the command says by whom", approval: "empty", node: []func(*plan.Node){marked(granted, empty, "", time.Hour)}, goes: empty},
		"ApprovedLong": {reason: "an approval does not hold for ever", approval: "empty", node: []func(*plan.Node){marked(granted, empty, "", 0)}, proposes: "Empty remove claim-n"},
		"Rejected":     {reason: "a rejected decision is not proposed", approval: "empty", node: []func(*plan.Node){marked(rejected, empty, "", time.Hour)}, says: "alice rejected it until 2026-03-01T13:00:00Z: because"},
		"RejectedLong": {reason: "but again after a while", approval: "empty", node: []func(*plan.Node){marked(rejected, empty, "", 0)}, proposes: "Empty remove claim-n"},
		"Drift":        {reason: "a drifted node waits", approval: "drift", pods: true, node: []func(*plan.Node){hashed("x")}, proposes: "Drifted remove claim-n, after launching"},
		"DriftOther":   {reason: "a rejection is about one drift", approval: "drift", pods: true, node: []func(*plan.Node){hashed("y"), marked(rejected, drifted, "x", time.Hour)}, proposes: "Drifted remove claim-n"},
		"DriftSame":    {reason: "and holds for that", approval: "drift", pods: true, node: []func(*plan.Node){hashed("x"), marked(rejected, drifted, "x", time.Hour)}, says: "alice rejected it"},
		"DriftMoves":   {reason: "who is asked about a drift that is another one by now need not decide", approval: "drift", pods: true, node: []func(*plan.Node){hashed("y"), marked(waiting, drifted, "x", time.Hour)}, outdated: "no longer has the drift"},
		"NoMoreEmpty":  {reason: "a node that is used again stays", approval: "empty", pods: true, node: []func(*plan.Node){marked(waiting, empty, "", time.Hour)}, outdated: "it runs pod"},
		"NotNeeded":    {reason: "nobody need decide when the annotation is gone", node: []func(*plan.Node){marked(waiting, empty, "", time.Hour)}, goes: empty, outdated: "approval is not needed any more"},
		"Leaving":      {reason: "nor when the node goes anyway", approval: "empty", node: []func(*plan.Node){marked(waiting, empty, "", time.Hour), func(n *plan.Node) { n.Deleting = true }}, outdated: "is gone or is being removed"},
		"Otherwise":    {reason: "nor when it goes for something that needs none", approval: "drift", node: []func(*plan.Node){hashed("x"), marked(waiting, drifted, "x", time.Hour)}, goes: empty, outdated: "to go for being empty instead"},
		"Budget":       {reason: "budgets keep nobody from being asked", approval: "empty", change: func(p *karpv1.NodePool) { p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}} }, proposes: "Empty remove claim-n"},
		"BudgetLater":  {reason: "they hold for what is approved", approval: "empty", node: []func(*plan.Node){marked(granted, empty, "", time.Hour)}, change: func(p *karpv1.NodePool) { p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "0"}} }, says: "budgets allow 0 of 1"},
		"Paused":       {reason: "nobody is asked during a pause, and who was asked may still decide", approval: "empty", node: []func(*plan.Node){marked(waiting, empty, "", time.Hour)}, change: func(p *karpv1.NodePool) { p.Annotations[karpv1.PauseAnnotationKey] = "disruption" }, says: "disruption is paused"},
		"Misspelt":     {reason: "a misspelt word keeps the node", approval: "idle", says: `"idle" must be drift, underutilized, empty, expired or all`},
		"Protected":    {reason: "nobody is asked about a node that may not go", approval: "empty", node: []func(*plan.Node){func(n *plan.Node) { n.DoNotDisrupt = true }}, says: "it is annotated karpenter.sh/do-not-disrupt"},
		"Busy":         {reason: "a node that may not go for a while is still to be approved", approval: "empty", node: []func(*plan.Node){marked(waiting, empty, "", time.Hour), func(n *plan.Node) { n.DoNotDisrupt = true }}, says: "it is annotated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{pools: []plan.Pool{{NodePool: nodePool("p", consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0)), Types: smallCatalogue()}}}
			w.pools[0].NodePool.Annotations = map[string]string{karpv1.ApprovalAnnotationKey: test.approval}
			if test.change != nil {
				test.change(w.pools[0].NodePool)
			}
			n := existing("n", "m6i.large", test.node...)
			if test.pods {
				running(new(plan.Interner), newPod("big", "1800m", "1Gi"))(n)
			}
			w.nodes = []*plan.Node{n}
			in := w.input()
			decided := plan.Disrupt(in)
			goes := karpv1.DisruptionReason("")
			if len(decided.Commands) > 0 {
				goes = decided.Commands[0].Reason
			}
			if goes != test.goes {
				t.Errorf("%s: it goes for %q, want %q", test.reason, goes, test.goes)
			}
			if by := name == "Approved"; by != (goes != "" && strings.HasSuffix(decided.Commands[0].Why, "; approved by alice")) {
				t.Errorf("%s: %v", test.reason, decided.Commands)
			}
			if !slices.ContainsFunc(decided.Verdicts, func(v plan.Verdict) bool { return strings.Contains(v.Message, test.says) }) && test.says != "" {
				t.Errorf("%s: %v does not say %q", test.reason, decided.Verdicts, test.says)
			}
			found, proposed := plan.Propose(in, decided), ""
			for _, p := range found.Proposals {
				proposed = string(p.Reason) + " " + p.Does
			}
			if !strings.HasPrefix(proposed, test.proposes) || (proposed == "") != (test.proposes == "") {
				t.Errorf("%s: proposed is %q, want %q", test.reason, proposed, test.proposes)
			}
			if got := found.Outdated["a-n"]; !strings.Contains(got, test.outdated) || (got == "") != (test.outdated == "") {
				t.Errorf("%s: outdated because %q, want %q", test.reason, got, test.outdated)
			}
		})
	}
}

// TestNothingGoesUnapproved draws clusters in which people want to approve some reasons, were asked about some nodes and have
// decided about others. What needs approval goes only where it was given; nobody is asked twice, or about what needs none; and
// once everything proposed is approved, just that goes.
func TestNothingGoesUnapproved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := settledWorld(t, drawing{replicas: 8, settled: true, unlimited: true})
		reasons := []karpv1.DisruptionReason{drifted, underutilized, empty, plan.DisruptionReasonExpired}
		pools := map[string]*karpv1.NodePool{}
		for _, pool := range w.pools {
			pools[pool.NodePool.Name] = pool.NodePool
			pool.NodePool.Annotations = map[string]string{karpv1.ApprovalAnnotationKey: rapid.SampledFrom([]string{"", "drift", "underutilized,empty", "all", "expired", "al"}).Draw(t, "needs")}
		}
		for _, n := range w.nodes {
			if rapid.Bool().Draw(t, "drifts") {
				n.Drifted, n.DriftedFor, n.DriftedAt, n.DriftHash = true, "NodePoolDrifted", now.Add(-time.Hour), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "drift")
			}
			if rapid.Bool().Draw(t, "asked") {
				state := rapid.SampledFrom([]karpv1.ApprovalState{karpv1.ApprovalWaiting, karpv1.ApprovalGranted, karpv1.ApprovalRejected}).Draw(t, "state")
				marked(state, rapid.SampledFrom(reasons).Draw(t, "for"), "x", rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "lasts"))(n)
			}
		}
		in := w.input()
		nodes := map[string]*plan.Node{}
		for _, n := range in.Snapshot.Nodes {
			nodes[n.Key()] = n
		}
		holds := func(n *plan.Node, reason karpv1.DisruptionReason, state karpv1.ApprovalState) bool {
			return slices.ContainsFunc(n.Approvals, func(a karpv1.Approval) bool {
				return a.Reason == reason && a.State == state && now.Before(a.Until) && (reason != drifted || a.For == n.DriftHash)
			})
		}
		decided := plan.Disrupt(in)
		for _, command := range decided.Commands {
			for _, key := range command.Nodes {
				if n := nodes[key]; pools[n.Pool].NeedsApproval(command.Reason) && !holds(n, command.Reason, karpv1.ApprovalGranted) {
					t.Fatalf("%s goes for %s unapproved: %v of %q", key, command.Reason, n.Approvals, pools[n.Pool].Annotations)
				}
			}
		}
		found, ids, asked := plan.Propose(in, decided), map[string]bool{}, map[string]karpv1.DisruptionReason{}
		for _, p := range found.Proposals {
			lacks := false
			for _, key := range p.Nodes {
				n := nodes[key]
				lacks = lacks || pools[n.Pool].NeedsApproval(p.Reason) && !holds(n, p.Reason, karpv1.ApprovalGranted)
				for _, reason := range reasons {
					if slices.ContainsFunc(n.Approvals, func(a karpv1.Approval) bool { return a.State == karpv1.ApprovalWaiting && now.Before(a.Until) }) {
						t.Fatalf("people are asked about %s, and are asked already (%s)", key, reason)
					}
				}
				if pools[n.Pool].NeedsApproval(p.Reason) && holds(n, p.Reason, karpv1.ApprovalRejected) {
					t.Fatalf("people are asked about %s, which they have rejected", key)
				}
				if asked[key] != "" {
					t.Fatalf("people are asked twice about %s", key)
				}
				asked[key] = p.Reason
			}
			if !lacks || ids[p.ID] {
				t.Fatalf("people are asked %v, which needs no approval, or twice", p)
			}
			ids[p.ID] = true
		}
	})
}

// TestProposedIsWhatGoes draws clusters in which everything needs approval: nothing is decided, what is proposed holds while
// people are asked, and is what goes once they have approved it.
func TestProposedIsWhatGoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := settledWorld(t, drawing{replicas: 8, settled: true, unlimited: true})
		for _, pool := range w.pools {
			pool.NodePool.Annotations = map[string]string{karpv1.ApprovalAnnotationKey: "all"}
		}
		for _, n := range w.nodes {
			if rapid.Bool().Draw(t, "drifts") {
				n.Drifted, n.DriftedFor, n.DriftedAt, n.DriftHash = true, "NodePoolDrifted", now.Add(-time.Hour), "x"
			}
		}
		in := w.input()
		if decided := plan.Disrupt(in); slices.ContainsFunc(decided.Commands, func(c plan.Command) bool { return c.Reason != plan.DisruptionReasonOverprovisioned }) {
			t.Fatalf("decided without approval: %v", decided.Commands)
		}
		found := plan.Propose(in, plan.Disrupt(in))
		mark := func(state karpv1.ApprovalState) []string {
			var all []string
			for _, p := range found.Proposals {
				for _, key := range p.Nodes {
					at := slices.IndexFunc(w.nodes, func(n *plan.Node) bool { return n.Key() == key })
					w.nodes[at].Approvals = []karpv1.Approval{{ID: p.ID, State: state, Reason: p.Reason, For: p.For, Claims: p.Nodes, Since: now, Until: now.Add(time.Hour)}}
					all = append(all, fmt.Sprint(key, " ", p.Reason))
				}
			}
			slices.Sort(all)
			return all
		}
		mark(karpv1.ApprovalWaiting)
		in = w.input()
		if again := plan.Propose(in, plan.Disrupt(in)); len(again.Proposals) > 0 || len(again.Outdated) > 0 {
			t.Fatalf("while people are asked, %v is proposed, and outdated is %v", again.Proposals, again.Outdated)
		}
		want := mark(karpv1.ApprovalGranted)
		var got []string
		for _, command := range plan.Disrupt(w.input()).Commands {
			for _, key := range command.Nodes {
				if command.Reason != plan.DisruptionReasonOverprovisioned {
					got = append(got, fmt.Sprint(key, " ", command.Reason))
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("%v go, and %v was approved", got, want)
		}
	})
}
