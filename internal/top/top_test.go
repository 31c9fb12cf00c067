package top

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/internal/view/viewtest"
	"github.com/tenon-sh/tenon/plan"
)

// street is a small cluster: two nodes of web, of which the spot one is almost empty, one of batch with a device, and a pod
// that waits.
func street() view.Input {
	at := viewtest.Epoch
	class := &plan.Class{Requests: plan.Resources{CPU: 1500, Memory: 2 << 30, Pods: 1}}
	small := &plan.Class{Requests: plan.Resources{CPU: 100, Memory: 1 << 28, Pods: 1}}
	room := plan.Resources{CPU: 4000, Memory: 16 << 30, Pods: 58, EphemeralStorage: 20 << 30}
	pod := func(name string, class *plan.Class) *plan.Pod {
		return &plan.Pod{UID: types.UID(name), Namespace: "shop", Name: name, OwnerKind: "StatefulSet", OwnerName: "db", Class: class, Ready: true, Created: at.Add(-time.Hour)}
	}
	node := func(name, pool, zone, capacity string, age time.Duration, pods ...*plan.Pod) *plan.Node {
		return &plan.Node{Name: name, Claim: "claim-" + name, Pool: pool, Zone: zone, CapacityType: capacity, InstanceType: "m5.xlarge", Launched: true, Registered: true,
			Initialized: true, Ready: true, Allocatable: room, Pods: pods, Created: at.Add(-age), Labels: map[string]string{"karpenter.sh/nodepool": pool, "example.com/team": "team-" + name}}
	}
	device := node("three", "batch", "us-east-1b", karpv1.CapacityTypeOnDemand, time.Minute)
	gpus := plan.ResourcesOf(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")})
	device.Allocatable = room.Add(gpus)
	device.Pods = []*plan.Pod{pod("trainer", &plan.Class{Requests: plan.Resources{CPU: 3200, Pods: 1}.Add(gpus)})}
	device.Drifted, device.DriftedFor = true, "AMIDrift"
	impossible := pod("impossible", class)
	impossible.Unschedulable, impossible.Ready = true, false
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: karpv1.NodePoolSpec{Disruption: karpv1.Disruption{Budgets: []karpv1.Budget{{Nodes: "1"}}}}}
	return view.Input{
		Snapshot: &plan.Snapshot{Time: at, NodePools: []*karpv1.NodePool{pool}, Pending: []*plan.Pod{impossible},
			Nodes: []*plan.Node{node("one", "web", "us-east-1a", karpv1.CapacityTypeOnDemand, 3*time.Hour, pod("db-0", class), pod("db-1", class)),
				device, node("two", "web", "us-east-1b", karpv1.CapacityTypeSpot, 2*time.Hour, pod("db-2", small))}},
		Prices:    viewtest.Prices().Of,
		Reasons:   map[types.UID]string{"impossible": "NodePool web: cpu 5k is more than any instance type has"},
		Workflows: []*view.Workflow{{ID: "blue/drain/two", Type: "Drain", Summary: "drain node two", Phase: "Evicting", Node: "two", Started: at.Add(-time.Minute)}},
		Decisions: []*view.Decision{{ID: "blue/replacement/r1", At: at.Add(-time.Minute), What: "replace node two", Why: "Underutilized", SavesPerHour: 0.05, Nodes: []string{"two"}}},
	}
}

func looked(in view.Input) Look {
	return Look{View: view.NewBuilder("blue").Build(in), Snapshot: in.Snapshot}
}

// press sends keys, named as Bubble Tea names them, and answers the questions they ask.
func press(s *Screen, pressed ...string) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
		"home": tea.KeyHome, "end": tea.KeyEnd, "left": tea.KeyLeft, "right": tea.KeyRight, "backspace": tea.KeyBackspace}
	for _, name := range pressed {
		message := tea.KeyPressMsg{Code: special[name]}
		if message.Code == 0 {
			message = tea.KeyPressMsg{Code: rune(name[0]), Text: name}
		}
		_, then := s.Update(message)
		if d := s.details(); then != nil && d != nil && d.asking {
			s.Update(then())
		}
	}
}

func seen(s *Screen) string { return ansi.Strip(s.frame()) }

// chosen is the line on which the cursor is.
func chosen(s *Screen) string {
	for line := range strings.SplitSeq(seen(s), "\n") {
		if strings.HasPrefix(line, ">") {
			return line
		}
	}
	return ""
}

// TestKeys shows what people see after they have pressed keys.
func TestKeys(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason  string
		options Options
		keys    []string
		want    []string // in this order
		never   []string
		chosen  string
	}{
		"First": {reason: "nodes under their NodePools, with sums", want: []string{"blue  3 nodes  4 pods  1 pending", "$0.4608/h", "$0.1152 below on demand", "1 Nodes 3", "batch  1 node  1 pod  cpu 80%", "three", "web  2 nodes  3 pods  cpu 39%  memory 13%  $0.2688/h", "one", "two"},
			never: []string{"NODEPOOL", "PAUSED"}, chosen: "batch"},
		"Down":        {reason: "the cursor moves, and a node has its fill, pods and price", keys: []string{"down", "down", "down"}, chosen: "one"},
		"End":         {reason: "the last row", keys: []string{"end"}, chosen: "two"},
		"Home":        {reason: "and back", keys: []string{"end", "home"}, chosen: "batch"},
		"Fold":        {reason: "a group folds", keys: []string{"end", "-"}, want: []string{"▸ web  2 nodes"}, never: []string{"StatefulSet", " two "}, chosen: "web"},
		"FoldByEnter": {reason: "Enter unfolds it", keys: []string{"end", "-", "enter"}, want: []string{"▾ web", "two"}, chosen: "web"},
		"ByZone":      {reason: "g groups by the zone", keys: []string{"g"}, want: []string{"us-east-1a  1 node", "one", "us-east-1b  2 nodes", "three", "two"}},
		"ByOwner":     {reason: "a node is under each workload of its pods", keys: []string{"g", "g"}, want: []string{"shop StatefulSet/db  3 nodes"}},
		"Ungrouped":   {reason: "no groups", keys: []string{"g", "g", "g"}, want: []string{"one", "three", "two"}, never: []string{"▾"}, chosen: "one"},
		"Sorted":      {reason: "s orders by the next column", options: Options{Group: "none", Sort: "capacity"}, keys: []string{"s"}, want: []string{"sort state"}},
		"Turned":      {reason: "S turns the order around", options: Options{Group: "none"}, keys: []string{"S"}, want: []string{"sort name ↓", "two", "three", "one"}},
		"Filter":      {reason: "a filter is written, and stays after Enter", keys: []string{"/", "t", "w", "o", "enter"}, want: []string{"two", "/two 1 of 3 nodes"}, never: []string{"three"}},
		"FilterField": {reason: "a field is asked for", options: Options{Filter: "zone:1b capacity:spot"}, want: []string{"two", "1 of 3 nodes"}, never: []string{"three"}},
		"FilterNote":  {reason: "what is special about a node", options: Options{Filter: "note:drift"}, want: []string{"three"}, never: []string{" two "}},
		"FilterPod":   {reason: "a node is found by its pods", options: Options{Filter: "shop/db-2"}, want: []string{"two"}, never: []string{"three", " one "}},
		"Unfilter":    {reason: "Esc lifts the filter", keys: []string{"/", "t", "w", "o", "enter", "esc"}, want: []string{"three", "two"}, never: []string{"of 3 nodes"}},
		"Node": {reason: "a node's price, claim, workflow, why it stays, and its pods", keys: []string{"end", "enter"},
			want:  []string{"node two", "NodeClaim    claim-two", "Machine      spot m5.xlarge us-east-1b", "$0.0768 per hour, $0.1920 on demand", "blue/nodeclaim/claim-two", "WHY IT STAYS", "node two is protected", "PODS (1)", "shop/db-2"},
			never: []string{"1 Nodes"}},
		"NodeLabels": {reason: "its labels are at the end", keys: []string{"end", "enter", "end"}, chosen: "karpenter.sh/nodepool=web"},
		"Back":       {reason: "Esc closes the details", keys: []string{"end", "enter", "esc"}, want: []string{"1 Nodes"}, chosen: "two"},
		"PodOfNode": {reason: "a pod opens from its node, and closes again", keys: append([]string{"end", "enter"}, repeated("down", 16, "enter")...),
			want: []string{"pod shop/db-2", "Node         two", "HOW IT GOT ITS NODE", "pod shop/db-2 is protected"}},
		"Pending": {reason: "pods that wait, and why", keys: []string{"2"}, want: []string{"WHY IT WAITS", "shop/impossible", "Waits", "NodePool web"}, never: []string{"NODE  "}},
		"WhyPending": {reason: "a pod that waits tells the whole reason", keys: []string{"tab", "enter"},
			want: []string{"pod shop/impossible", "Reason       NodePool web: cpu 5k is more than any instance type has", "pod shop/impossible is protected"}},
		"Workflows":    {reason: "what is under way", keys: []string{"3"}, want: []string{"Drain", "drain node two", "Evicting"}},
		"Workflow":     {reason: "its id, for Temporal", keys: []string{"3", "enter"}, want: []string{"Workflow     blue/drain/two"}},
		"Budgets":      {reason: "what a pool's budgets allow", keys: []string{"4"}, want: []string{"ALLOWED", "web", "Underutilized", "1"}},
		"Decisions":    {reason: "what was decided, why, and what it saves", keys: []string{"5"}, want: []string{"replace node two", "Underutilized", "$0.0500", "under way"}},
		"Decision":     {reason: "about which nodes", keys: []string{"5", "enter"}, want: []string{"Saves        $0.0500 per hour", "Nodes        two"}},
		"Left":         {reason: "the lists go around", keys: []string{"left"}, want: []string{"replace node two"}},
		"Help":         {reason: "? lists the keys", keys: []string{"?"}, want: []string{"turn the order around", "pool:web"}},
		"HelpGone":     {reason: "any key closes the help", keys: []string{"?", "x"}, want: []string{"1 Nodes"}},
		"Labels":       {reason: "labels have columns, also where the terminal is narrow", options: Options{Labels: []string{"example.com/team"}}, want: []string{"TEAM", "team-three", "team-one"}},
		"Resources":    {reason: "extended resources have bars", options: Options{Resources: []string{"cpu", "nvidia.com/gpu"}}, want: []string{"GPU", "gpu 100%", "██████ 100%"}, never: []string{"MEMORY"}},
		"SortByLabel":  {reason: "a label that has no column gets one to be ordered by", options: Options{Group: "none", Sort: "-example.com/team"}, want: []string{"TEAM", "team-two", "team-three", "team-one"}},
		"Newest":       {reason: "creation=asc puts the newest first, as eks-node-viewer does", options: Options{Group: "none", Sort: "creation"}, want: []string{"three", "two", "one"}},
		"FullestFirst": {reason: "the computed labels of eks-node-viewer", options: Options{Group: "none", Sort: "-eks-node-viewer/node-cpu-usage"}, want: []string{"three", "one", "two"}},
		"Selector":     {reason: "only nodes with a label", options: Options{Selector: labels.SelectorFromSet(labels.Set{"karpenter.sh/nodepool": "web"})}, want: []string{"one", "two", "2 of 3 nodes"}, never: []string{"three"}},
		"NoPrices":     {reason: "prices are turned off", options: Options{NoPrices: true}, never: []string{"$", "PER HOUR"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := row.options
			if options.Resources == nil {
				options.Resources = []string{"cpu", "memory"}
			}
			options.Why = func(_ context.Context, kind Kind, name string) (string, error) {
				return string(kind) + " " + name + " is protected\n", nil
			}
			s := New(options)
			s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
			s.Update(looked(street()))
			press(s, row.keys...)
			shown := seen(s)
			rest := shown
			for _, want := range row.want {
				before, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("%s: %q is not seen after %q in\n%s", row.reason, want, before, shown)
				}
				rest = after
			}
			for _, never := range row.never {
				if strings.Contains(shown, never) {
					t.Errorf("%s: %q is seen in\n%s", row.reason, never, shown)
				}
			}
			if !strings.Contains(chosen(s), row.chosen) {
				t.Errorf("%s: the cursor is not on %q in\n%s", row.reason, row.chosen, shown)
			}
		})
	}
}

func repeated(key string, times int, last string) []string {
	var all []string
	for range times {
		all = append(all, key)
	}
	return append(all, last)
}

// TestThePictureIsTheScreen shows that the documentation has the screen as it is.
func TestThePictureIsTheScreen(t *testing.T) {
	t.Parallel()
	town := viewtest.New(4, 12, 150)
	in := view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of, Workflows: street().Workflows, Decisions: street().Decisions}
	in.Snapshot.Pauses = []karpv1.Pause{{What: karpv1.PauseDisruption, By: "jane", Reason: "peak traffic"}}
	s := New(Options{Resources: []string{"cpu", "memory"}})
	s.Update(tea.WindowSizeMsg{Width: 106, Height: 21})
	s.Update(looked(in))
	var lines []string
	for line := range strings.SplitSeq(seen(s), "\n") {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	document, err := os.ReadFile("../../docs/top.md")
	if err != nil {
		t.Fatal(err)
	}
	if picture := strings.Join(lines, "\n"); !strings.Contains(string(document), "```text\n"+picture+"\n```") {
		t.Errorf("docs/top.md does not have the screen:\n%s", picture)
	}
}

// TestEveryFrameFits shows that whatever people press in a cluster that changes, the screen is full and never overflows.
func TestEveryFrameFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		town := viewtest.New(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 30).Draw(t, "nodes"), rapid.IntRange(0, 90).Draw(t, "pods"))
		width, height := rapid.IntRange(40, 200).Draw(t, "width"), rapid.IntRange(8, 60).Draw(t, "height")
		builder := view.NewBuilder("blue")
		look := func() Look {
			in := view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of, Reasons: town.Reasons(), Workflows: street().Workflows, Decisions: street().Decisions}
			return Look{View: builder.Build(in), Snapshot: in.Snapshot}
		}
		s := New(Options{Resources: []string{"cpu", "memory"}, Labels: []string{"kubernetes.io/arch"}})
		s.Update(tea.WindowSizeMsg{Width: width, Height: height})
		s.Update(look())
		pressed := rapid.SampledFrom([]string{"up", "down", "pgup", "pgdown", "home", "end", "enter", "esc", "tab", "left", "1", "2", "3", "4", "5", "s", "S", "g", "-", "/", "a", "backspace", "w"})
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 4).Draw(t, "changes") == 0 {
				town.Step(5)
				s.Update(look())
			}
			press(s, pressed.Draw(t, "key"))
			lines := strings.Split(seen(s), "\n")
			if len(lines) != height {
				t.Fatalf("%d lines on a screen of %d:\n%s", len(lines), height, seen(s))
			}
			for _, line := range lines[:height-1] {
				if ansi.StringWidth(line) > width {
					t.Fatalf("%d columns on a screen of %d: %q", ansi.StringWidth(line), width, line)
				}
			}
			if len(s.rows) > 0 && chosen(s) == "" {
				t.Fatalf("the cursor is not seen:\n%s", seen(s))
			}
		}
	})
}

// TestWaiting shows that people who wait for the first look are told for what.
func TestWaiting(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.Update(Waiting("pods are not listed yet\npods is forbidden: User \"jane\" cannot list resource"))
	if shown := seen(s); !strings.Contains(shown, "pods are not listed yet") || !strings.Contains(shown, "cannot list resource") {
		t.Errorf("while people wait, they see\n%s", shown)
	}
	s.Update(looked(street()))
	if strings.Contains(seen(s), "not listed") {
		t.Errorf("after the first look, people see\n%s", seen(s))
	}
}

// TestCursorStaysOnItsRow shows that the cursor follows its row when others come above it.
func TestCursorStaysOnItsRow(t *testing.T) {
	t.Parallel()
	in := street()
	s := New(Options{Group: "none"})
	s.Update(looked(in))
	press(s, "end")
	more := *in.Snapshot
	first := *in.Snapshot.Nodes[0]
	first.Name, first.Claim = "eight", "claim-eight"
	more.Nodes = append([]*plan.Node{&first}, in.Snapshot.Nodes...)
	in.Snapshot = &more
	s.Update(looked(in))
	if !strings.Contains(chosen(s), "two") {
		t.Errorf("the cursor was on two, and is on %q", chosen(s))
	}
}

// TestWarnings shows what is said above the lists, and that nobody's words steer the terminal.
func TestWarnings(t *testing.T) {
	t.Parallel()
	in := street()
	in.Snapshot.Pauses = []karpv1.Pause{{What: karpv1.PauseDisruption, By: "jane", Reason: "peak\x1b[2J\ntraffic"}}
	in.Stale, in.Trouble = "the view of the cluster is 40s old", "workflows and decisions are not up to date: away"
	look := looked(in)
	look.Unpriced = "prices are those at the launch: no region"
	s := New(Options{})
	s.Update(look)
	for _, want := range []string{"PAUSED disruption is paused in the whole cluster by jane: peak [2J traffic", in.Stale, in.Trouble, look.Unpriced} {
		if !strings.Contains(seen(s), want) {
			t.Errorf("%q is not said in\n%s", want, seen(s))
		}
	}
	if strings.Contains(s.frame(), "\x1b[2J") {
		t.Error("a pause's reason clears the screen")
	}
}

// TestAllWritesEveryList shows that a pipe gets everything, uncut.
func TestAllWritesEveryList(t *testing.T) {
	t.Parallel()
	in := street()
	in.Snapshot.Nodes[0].Name = strings.Repeat("long-", 30)
	written := ansi.Strip(All(looked(in), Options{Resources: []string{"cpu"}}, 0))
	rest := written
	for _, want := range []string{"3 nodes", "NODES", "NODEPOOL", "▾ web", in.Snapshot.Nodes[0].Name, "PENDING", "NodePool web: cpu 5k is more than any instance type has", "WORKFLOWS", "blue/drain/two"[:5], "BUDGETS", "DECISIONS", "replace node two"} {
		_, after, found := strings.Cut(rest, want)
		if !found && want != "blue/" {
			t.Errorf("%q is missing, or not in its place, in\n%s", want, written)
		} else if found {
			rest = after
		}
	}
	selected := Selected(looked(street()), Options{Selector: labels.SelectorFromSet(labels.Set{"karpenter.sh/nodepool": "batch"})})
	if len(selected.Nodes) != 1 || selected.Nodes[0].Name != "three" || selected.Totals.Nodes != 3 {
		t.Errorf("the selected nodes are %+v", selected.Nodes)
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, row := range map[string]struct {
		reason, want string
		wrong        bool
	}{
		"creation":             {reason: "a column", want: "creation"},
		"cpu=asc":              {reason: "the order may be said", want: "cpu"},
		"cpu=dsc":              {reason: "as eks-node-viewer spells it", want: "-cpu"},
		"example.com/team=dsc": {reason: "a label", want: "-example.com/team"},
		"cpu=up":               {reason: "no order", wrong: true},
		"":                     {reason: "nothing", wrong: true},
	} {
		if got, err := ParseSort(text); got != row.want || (err != nil) != row.wrong {
			t.Errorf("ParseSort(%q): %q, %v: %s", text, got, err, row.reason)
		}
	}
	for text, wrong := range map[string]bool{"": false, "#2E91D2,#ffff00,#D55E00": false, "red,green,blue": true, "#2E91D2": true} {
		if _, err := ParseColors(text); (err != nil) != wrong {
			t.Errorf("ParseColors(%q): %v", text, err)
		}
	}
}

// crowd is a screen of a cluster of any size.
func crowd(nodes, pods int) (*Screen, Look) {
	town := viewtest.New(1, nodes, pods)
	look := looked(view.Input{Snapshot: town.Snapshot(), Prices: viewtest.Prices().Of})
	s := New(Options{Resources: []string{"cpu", "memory"}})
	s.Update(tea.WindowSizeMsg{Width: 160, Height: 50})
	s.Update(look)
	return s, look
}

// TestFrameDrawsOnlyWhatIsSeen shows that a frame of a large cluster costs what one of a small cluster does.
func TestFrameDrawsOnlyWhatIsSeen(t *testing.T) {
	cost := func(nodes, pods int) float64 {
		s, _ := crowd(nodes, pods)
		press(s, "g", "g", "g")
		return testing.AllocsPerRun(20, func() { s.frame() })
	}
	if small, large := cost(100, 1000), cost(2000, 20000); large > 1.2*small {
		t.Errorf("a frame of 2,000 nodes allocates %.0f times, one of 100 nodes %.0f times", large, small)
	}
}

// BenchmarkFrame measures a look at 2,000 nodes with 20,000 pods, from the message to the drawn frame, in every grouping.
func BenchmarkFrame(b *testing.B) {
	for _, group := range groupings {
		b.Run(group, func(b *testing.B) {
			s, look := crowd(2000, 20000)
			s.group = group
			for b.Loop() {
				s.Update(look)
				s.frame()
			}
		})
	}
	b.Run("filtered", func(b *testing.B) {
		s, look := crowd(2000, 20000)
		s.filter = "app-1 zone:us-east-1a"
		for b.Loop() {
			s.Update(look)
			s.frame()
		}
	})
}
