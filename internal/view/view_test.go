package view_test

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/internal/view/viewtest"
	"github.com/tenon-sh/tenon/plan"
)

// reader is what somebody knows who has read a view and then only deltas.
type reader struct {
	nodes   map[string]*view.Node
	pending map[string]*view.Pod
	view    view.Cluster
}

func read(c *view.Cluster) *reader {
	r := &reader{nodes: map[string]*view.Node{}, pending: map[string]*view.Pod{}, view: *c}
	for _, n := range c.Nodes {
		r.nodes[n.Key] = n
	}
	for _, p := range c.Pending {
		r.pending[p.UID] = p
	}
	return r
}

func (r *reader) apply(d view.Delta) {
	for _, key := range d.NodesGone {
		delete(r.nodes, key)
	}
	for _, n := range d.Nodes {
		r.nodes[n.Key] = n
	}
	for _, uid := range d.PendingGone {
		delete(r.pending, uid)
	}
	for _, p := range d.Pending {
		r.pending[p.UID] = p
	}
	set(&r.view.Cost, d.Cost)
	set(&r.view.Totals, d.Totals)
	set(&r.view.Pools, d.Pools)
	set(&r.view.Pauses, d.Pauses)
	set(&r.view.Workflows, d.Workflows)
	set(&r.view.Decisions, d.Decisions)
	set(&r.view.Stale, d.Stale)
	set(&r.view.Trouble, d.Trouble)
	r.view.Generation, r.view.Time = d.Generation, d.Time
}

func set[T any](at, to *T) {
	if to != nil {
		*at = *to
	}
}

func (r *reader) knows() *view.Cluster {
	c := r.view
	c.Nodes, c.Pending = []*view.Node{}, []*view.Pod{}
	for _, n := range r.nodes {
		c.Nodes = append(c.Nodes, n)
	}
	for _, p := range r.pending {
		c.Pending = append(c.Pending, p)
	}
	slices.SortFunc(c.Nodes, func(a, b *view.Node) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(c.Pending, func(a, b *view.Pod) int { return cmp.Compare(a.UID, b.UID) })
	return &c
}

// TestDeltasTellEverything shows that a reader of deltas knows what a Builder without memory makes of the last snapshot.
func TestDeltasTellEverything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		town := viewtest.New(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 12).Draw(t, "nodes"), rapid.IntRange(0, 40).Draw(t, "pods"))
		input := func() view.Input {
			return view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of, Reasons: town.Reasons()}
		}
		builder := view.NewBuilder("blue")
		last := builder.Build(input())
		reader := read(last)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			town.Step(rapid.IntRange(0, 9).Draw(t, "events"))
			now := builder.Build(input())
			delta, _ := view.Since(last, now)
			encoded, err := json.Marshal(delta)
			if err != nil {
				t.Fatal(err)
			}
			var told view.Delta
			if err := json.Unmarshal(encoded, &told); err != nil {
				t.Fatal(err)
			}
			reader.apply(told)
			last = now
		}
		fresh := view.NewBuilder("blue").Build(input())
		fresh.Generation, fresh.Time = last.Generation, last.Time
		got := reader.knows()
		got.Time, got.Cost.History, fresh.Cost.History = last.Time, nil, nil
		if diff := gocmp.Diff(fresh, got); diff != "" {
			t.Errorf("a reader of deltas knows something else (-view +reader):\n%s", diff)
		}
	})
}

// TestBuildRemakesOnlyWhatChanged shows that what has not changed is shared by successive views.
func TestBuildRemakesOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	town := viewtest.New(1, 50, 500)
	builder := view.NewBuilder("blue")
	build := func() *view.Cluster {
		return builder.Build(view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of})
	}
	first := build()
	if again := build(); again != first {
		t.Error("a view of the same snapshot is another one")
	}
	town.Step(0)
	if again := build(); again != first {
		t.Error("the view changes although only time has passed")
	}
	town.Step(1)
	second := build()
	if second.Generation != first.Generation+1 {
		t.Errorf("generation %d after %d", second.Generation, first.Generation)
	}
	delta, changed := view.Since(first, second)
	if many := len(delta.Nodes) + len(delta.NodesGone) + len(delta.Pending) + len(delta.PendingGone); !changed || many == 0 || many > 2 {
		t.Errorf("one event changes %d nodes and pods", many)
	}
}

func TestNodeStates(t *testing.T) {
	t.Parallel()
	serving := plan.Node{Name: "n", Claim: "c", Launched: true, Registered: true, Initialized: true, Ready: true}
	for name, row := range map[string]struct {
		reason string
		change func(*plan.Node)
		want   view.NodeState
	}{
		"Serving":     {"nothing is special", func(*plan.Node) {}, view.NodeServing},
		"Launching":   {"there is no instance yet", func(n *plan.Node) { *n = plan.Node{Claim: "c"} }, view.NodeLaunching},
		"Joining":     {"the instance runs, no Node has registered", func(n *plan.Node) { *n = plan.Node{Claim: "c", Launched: true} }, view.NodeJoining},
		"Starting":    {"startup taints are left", func(n *plan.Node) { n.Initialized = false }, view.NodeStarting},
		"NotReady":    {"the kubelet is silent", func(n *plan.Node) { n.Ready = false }, view.NodeNotReady},
		"Cordoned":    {"a person has cordoned it", func(n *plan.Node) { n.Cordoned = true }, view.NodeCordoned},
		"Closed":      {"a disruption says more than its taint", func(n *plan.Node) { n.Cordoned, n.Disrupted, n.Deleting = true, true, true }, view.NodeClosed},
		"Leaving":     {"the claim is deleted", func(n *plan.Node) { n.Deleting = true }, view.NodeLeaving},
		"Terminating": {"the cloud has been told", func(n *plan.Node) { n.Deleting, n.Terminating = true, true }, view.NodeTerminating},
		"Foreign":     {"a node without a claim serves while it is Ready", func(n *plan.Node) { n.Claim, n.Launched = "", false }, view.NodeServing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := serving
			row.change(&node)
			got := view.NewBuilder("blue").Build(view.Input{Snapshot: &plan.Snapshot{Nodes: []*plan.Node{&node}}}).Nodes[0].State
			if got != row.want {
				t.Errorf("%s, want %s: %s", got, row.want, row.reason)
			}
		})
	}
}

func TestWaitingPods(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		pod    plan.Pod
		want   view.PodState
		says   string
	}{
		"Gated":     {"gates come before everything", plan.Pod{Gated: true}, view.PodGated, "it has scheduling gates"},
		"Daemon":    {"no node is launched for it", plan.Pod{Daemon: true, Unschedulable: true}, view.PodDaemon, "it belongs to a DaemonSet: no node is launched for it"},
		"Unjudged":  {"the kube-scheduler comes first", plan.Pod{}, view.PodUnjudged, "the kube-scheduler has not judged it yet"},
		"Promised":  {"a plan has been made", plan.Pod{UID: "promised", Unschedulable: true}, view.PodPromised, "a plan was made for it: it is meant for c"},
		"Unplaced":  {"the planner says why", plan.Pod{UID: "unplaced", Unschedulable: true}, view.PodWaits, "NodePool default: too large"},
		"Unplanned": {"nobody knows yet", plan.Pod{Unschedulable: true}, view.PodWaits, "no plan has looked at it yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := view.Input{Snapshot: &plan.Snapshot{Pending: []*plan.Pod{&row.pod, {UID: "virtual", Virtual: true}}, Nodes: []*plan.Node{{Claim: "c", Promised: []types.UID{"promised"}}}},
				Reasons: map[types.UID]string{"unplaced": "NodePool default: too large"}}
			got := view.NewBuilder("blue").Build(in).Pending
			if len(got) != 1 || got[0].State != row.want || got[0].Reason != row.says {
				t.Errorf("got %+v, want only a pod that is %s, %q: %s", got, row.want, row.says, row.reason)
			}
		})
	}
}

func TestOwnersAreWorkloads(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		pod    plan.Pod
		want   string
	}{
		"Deployment":  {"its ReplicaSet carries the hash of the pod's label", plan.Pod{OwnerKind: "ReplicaSet", OwnerName: "web-5d9c7b", Labels: &plan.Labels{Set: map[string]string{"pod-template-hash": "5d9c7b"}}}, "Deployment/web"},
		"ReplicaSet":  {"a bare ReplicaSet may have a dash in its name", plan.Pod{OwnerKind: "ReplicaSet", OwnerName: "web-1"}, "ReplicaSet/web-1"},
		"StatefulSet": {"others are named as they are", plan.Pod{OwnerKind: "StatefulSet", OwnerName: "db"}, "StatefulSet/db"},
		"Bare":        {"nobody owns it", plan.Pod{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := view.NewBuilder("blue").Build(view.Input{Snapshot: &plan.Snapshot{Pending: []*plan.Pod{&row.pod}}}).Pending[0].Owner
			if got != row.want {
				t.Errorf("got %q, want %q: %s", got, row.want, row.reason)
			}
		})
	}
}

// TestCost shows what the cluster costs, what it would cost on demand, and what decisions have saved.
func TestCost(t *testing.T) {
	t.Parallel()
	spot := &plan.Node{Name: "a", InstanceType: "m5.xlarge", Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeSpot}
	onDemand := &plan.Node{Name: "b", InstanceType: "m5.xlarge", Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeOnDemand}
	foreign := &plan.Node{Name: "c"}
	at := viewtest.Epoch
	prices := view.NewPriceList([]*cloud.InstanceType{{Name: "m5.xlarge", Offerings: []cloud.Offering{
		{Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeOnDemand, Price: 0.5}, {Zone: "us-east-1a", CapacityType: karpv1.CapacityTypeSpot, Price: 0.25}}}})
	got := view.NewBuilder("blue").Build(view.Input{Snapshot: &plan.Snapshot{Time: at, Nodes: []*plan.Node{spot, onDemand, foreign}}, Prices: prices.Of,
		Decisions: []*view.Decision{{At: at, SavesPerHour: 2, Outcome: view.OutcomeCompleted}, {At: at.Add(-time.Hour), SavesPerHour: 4}}}).Cost
	want := view.Cost{Currency: "USD", PerHour: 0.75, OnDemand: 1, Unpriced: 1, Saved: 2, SavedSince: at.Add(-time.Hour),
		History: []view.Sample{{At: at, PerHour: 0.75}}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("cost (-want +got):\n%s", diff)
	}
}

// TestNothingIsRememberedWithoutPrices shows that a cluster whose prices are not known yet does not count as one that cost nothing.
func TestNothingIsRememberedWithoutPrices(t *testing.T) {
	t.Parallel()
	town, builder := viewtest.New(1, 3, 9), view.NewBuilder("blue")
	if history := builder.Build(view.Input{Snapshot: town.Snapshot()}).Cost.History; len(history) != 0 {
		t.Errorf("without prices, %v is remembered", history)
	}
	if history := builder.Build(view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of}).Cost.History; len(history) != 1 || history[0].PerHour <= 0 {
		t.Errorf("with the first prices, %v is remembered", history)
	}
}

func TestLedgerKeepsADay(t *testing.T) {
	t.Parallel()
	var ledger view.Ledger
	var samples []view.Sample
	for i := range 3000 {
		samples = ledger.Add(viewtest.Epoch.Add(time.Duration(i)*time.Minute), float64(i))
	}
	if first, last := samples[0], samples[len(samples)-1]; last.At.Sub(first.At) > 24*time.Hour || last.At.Sub(first.At) < 23*time.Hour {
		t.Errorf("the ledger has %d samples from %s to %s", len(samples), first.At, last.At)
	}
}

// TestBudgets shows what is left of a pool's budgets.
func TestBudgets(t *testing.T) {
	t.Parallel()
	pool := &karpv1.NodePool{}
	pool.Name = "default"
	pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "2"}, {Nodes: "0", Reasons: []karpv1.DisruptionReason{karpv1.DisruptionReasonDrifted}}}
	node := func(name string, deleting bool) *plan.Node {
		return &plan.Node{Name: name, Claim: name, Pool: "default", Initialized: true, Ready: true, Deleting: deleting}
	}
	got := view.NewBuilder("blue").Build(view.Input{Snapshot: &plan.Snapshot{NodePools: []*karpv1.NodePool{pool}, Nodes: []*plan.Node{node("a", true), node("b", false), node("c", false)}}}).Pools[0]
	if got.Nodes != 3 || got.Disrupting != 1 {
		t.Errorf("%d of %d nodes are being disrupted, want 1 of 3", got.Disrupting, got.Nodes)
	}
	left := map[string]int{}
	for _, budget := range got.Budgets {
		left[budget.Reason] = budget.Left
	}
	if left["Drifted"] != 0 || left["Underutilized"] != 1 {
		t.Errorf("left of the budgets: %v, want 0 for Drifted and 1 for Underutilized", left)
	}
}

// BenchmarkBuild measures a view of 2,000 nodes with 20,000 pods: the first one, and the next one after a second in which a
// hundred things happened.
func BenchmarkBuild(b *testing.B) {
	prices := viewtest.Prices()
	b.Run("first", func(b *testing.B) {
		town := viewtest.New(1, 2000, 20000)
		for b.Loop() {
			view.NewBuilder("blue").Build(view.Input{Snapshot: town.Snapshot(), Prices: prices.Of})
		}
	})
	b.Run("next", func(b *testing.B) {
		town := viewtest.New(1, 2000, 20000)
		builder := view.NewBuilder("blue")
		last := builder.Build(view.Input{Snapshot: town.Snapshot(), Prices: prices.Of})
		for b.Loop() {
			b.StopTimer()
			town.Step(100)
			in := view.Input{Snapshot: town.Snapshot(), Prices: prices.Of, Reasons: town.Reasons()}
			b.StartTimer()
			now := builder.Build(in)
			delta, _ := view.Since(last, now)
			if _, err := json.Marshal(delta); err != nil {
				b.Fatal(err)
			}
			last = now
		}
	})
}

// TestPausesAreSeen shows that a view says what people have stopped, also when the last pause is over.
func TestPausesAreSeen(t *testing.T) {
	t.Parallel()
	at := viewtest.Epoch
	pool := &karpv1.NodePool{}
	pool.Name = "gpu"
	pool.Annotations = map[string]string{karpv1.PauseAnnotationKey: "provisioning", karpv1.ObserveAnnotationKey: "true"}
	pauses := []karpv1.Pause{{What: karpv1.PauseDisruption, By: "jane", Reason: "peak traffic", Until: at.Add(time.Hour)}, {What: karpv1.PauseInterruption, Until: at}}
	builder := view.NewBuilder("blue")
	first := builder.Build(view.Input{Snapshot: &plan.Snapshot{Time: at, Pauses: pauses, NodePools: []*karpv1.NodePool{pool}}})
	var said []string
	for _, pause := range first.Pauses {
		said = append(said, pause.Words())
	}
	want := []string{"disruption is paused in the whole cluster by jane until 2026-11-20T09:00:00Z: peak traffic", "provisioning is paused for NodePool gpu: written by hand",
		"everything is only observed for NodePool gpu"}
	if diff := gocmp.Diff(want, said); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	second := builder.Build(view.Input{Snapshot: &plan.Snapshot{Time: at.Add(time.Hour)}})
	if delta, _ := view.Since(first, second); delta.Pauses == nil || len(*delta.Pauses) != 0 {
		t.Errorf("the end of all pauses is told as %v", delta.Pauses)
	}
}

// TestNodesThatWaitForApproval checks that a node says so, and which approval it waits for.
func TestNodesThatWaitForApproval(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct {
		reason, id, note string
		approvals        []karpv1.Approval
	}{
		{reason: "nobody is asked"},
		{reason: "people are asked", approvals: []karpv1.Approval{{ID: "a1", State: karpv1.ApprovalWaiting, Reason: "Drifted", Since: since}}, id: "a1",
			note: "waits for approval (Drifted) since 2026-01-02T03:04:05Z: tenon approve a1"},
		{reason: "they have decided", approvals: []karpv1.Approval{{ID: "a1", State: karpv1.ApprovalGranted, Reason: "Drifted", Since: since}}},
	} {
		seen := view.NewBuilder("blue").Build(view.Input{Snapshot: &plan.Snapshot{Time: since, Nodes: []*plan.Node{{Claim: "a", Pool: "p", Approvals: test.approvals}}}})
		if node := seen.Nodes[0]; node.Approval != test.id || node.Note != test.note {
			t.Errorf("%s: approval %q, note %q", test.reason, node.Approval, node.Note)
		}
	}
}
