package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	watching "github.com/tenon-sh/tenon/internal/page"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/internal/view/viewtest"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// mostScripting is how much of a second the page may take to follow a cluster of 2,000 nodes and 20,000 pods, in which so
	// many things happen every second.
	mostScripting = 50 * time.Millisecond
	happening     = 100
	// axe is what tools/axe.sh downloads.
	axe = "../../bin/axe-4.14.1.min.js"
	// planted is HTML in places where people may write. It must be seen as text.
	planted = `<img src=x onerror="window.planted=1">`
)

// fed is a made-up cluster as a page's source.
type fed struct {
	mu    sync.Mutex
	town  *viewtest.Town
	step  int
	extra func(*view.Input)
}

func (f *fed) Look(context.Context, bool) view.Input {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.town.Step(f.step)
	in := view.Input{Snapshot: f.town.Snapshot(), Prices: viewtest.Prices().Of, Reasons: f.town.Reasons()}
	if f.extra != nil {
		f.extra(&in)
	}
	return in
}

// knowing answers questions as a worker would, with a text at the end of what it says.
type knowing struct{ ending string }

func (k knowing) Pod(context.Context, string, string) (workflows.PodAnswer, error) {
	return workflows.PodAnswer{Verdict: workflows.PodUnplaced, Reasons: []workflows.PodReason{{NodePool: "default", Message: "cpu 5000 is more than any instance type leaves for pods" + k.ending}}}, nil
}

func (k knowing) Node(_ context.Context, name string) (workflows.NodeAnswer, error) {
	return workflows.NodeAnswer{Known: true, Claim: name, Managed: true, Verdicts: []workflows.NodeVerdict{
		{Reason: "Drifted", Cause: "Budget", Message: "it has drifted, but its NodePool's budget allows no more" + k.ending},
		{Reason: "Underutilized", Cause: "Room", Message: "its pods fit on no other node"}}}, nil
}

// story adds what Temporal would tell: workflows under way and decisions, with HTML in them, and a node with HTML in its labels.
func story(in *view.Input) {
	in.Workflows = underWay
	in.Decisions = decided
	labelled := *in.Snapshot.Nodes[0]
	labelled.Labels = map[string]string{"note": planted}
	in.Snapshot.Nodes[0] = &labelled
	in.Snapshot.Pending = append(in.Snapshot.Pending, impossible)
	in.Reasons[impossible.UID] = "NodePool default: cpu 5000 is more than any instance type leaves for pods " + planted
}

// impossible is a pod that no node can be launched for.
var impossible = &plan.Pod{UID: "impossible", Namespace: "shop", Name: "impossible", Unschedulable: true, Created: viewtest.Epoch, Class: &plan.Class{Requests: plan.Resources{CPU: 5_000_000}}}

var (
	underWay = []*view.Workflow{
		{ID: "blue/replacement/7-0", Run: "r1", Type: "Replacement", Summary: "Underutilized: 2 nodes go, 1 come", Phase: "Replacing", NodePool: "web", Node: "ip-10-0-0-7.ec2.internal", Reason: "Underutilized", Started: viewtest.Epoch},
		{ID: "blue/drain/x", Run: "r2", Type: "Drain", Summary: "drain x: ManualDrain " + planted, Phase: "Blocked", NodePool: "batch", Node: "ip-10-0-0-9.ec2.internal", Reason: "ManualDrain", Started: viewtest.Epoch},
	}
	decided = []*view.Decision{
		{ID: "blue/replacement/6-1", Run: "r3", At: viewtest.Epoch, Type: "Replacement", What: "Underutilized: 3 nodes go, 1 come", Why: "one m6g.4xlarge is cheaper " + planted, SavesPerHour: 0.2412, Outcome: "Completed", Ended: viewtest.Epoch.Add(4 * time.Minute)},
		{ID: "blue/launch/12-0", Run: "r4", At: viewtest.Epoch, Type: "Launch", What: "launch 4 for NodePool web", Outcome: "Completed"},
	}
)

// look serves a page of a cluster and opens it.
func look(t *testing.T, source *fed, asker knowing) (tab, string) {
	t.Helper()
	served, err := watching.New(watching.Options{Cluster: "blue", Source: source, Asker: asker, TemporalUI: "http://temporal.example", Namespace: "tenon"})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- served.Run(running) }()
	server := httptest.NewServer(served.Handler())
	browser, end, err := open(t.Context(), defaultPatience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		end()
		server.CloseClientConnections()
		server.Close()
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	})
	if err := browser.dress("light"); err != nil {
		t.Fatal(err)
	}
	if err := browser.visit(server.URL + "/"); err != nil {
		t.Fatal(err)
	}
	if err := browser.shows([]string{"live", "nodes"}, arrival); err != nil {
		t.Fatal(err)
	}
	return browser, server.URL
}

// dress makes the browser prefer light or dark pages.
func (t tab) dress(scheme string) error {
	_, err := chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	})
	return err
}

// evaluate returns the value of an expression on the page.
func evaluate[T any](t *testing.T, tab tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(tab.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("evaluate %s: %v", expression, err)
	}
	return value
}

// becomes waits until an expression on the page is true.
func becomes(t *testing.T, tab tab, expression string) {
	t.Helper()
	err := tab.await(tab.patience, func(page) bool {
		holds, err := chromedp.Run(tab.ctx, chromedp.Evaluate[bool](expression))
		return err == nil && holds
	})
	if err != nil {
		t.Fatalf("%s does not become true: %v", expression, err)
	}
}

func press(t *testing.T, tab tab, keys string) {
	t.Helper()
	var err error
	if keys != "/" {
		err = chromedp.Do(tab.ctx, chromedp.KeyEvent(keys))
	} else { // the page takes this key, so that the browser writes no character
		_, err = chromedp.Run(tab.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
			return cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: "rawKeyDown", Key: "/"})
		})
	}
	if err != nil {
		t.Fatalf("press %q: %v", keys, err)
	}
}

// TestPage looks at the page in a real browser, with the keyboard alone.
func TestPage(t *testing.T) {
	t.Parallel()
	source := &fed{town: viewtest.New(3, 40, 400), extra: func(in *view.Input) {
		story(in)
		in.Snapshot.Pauses = []karpv1.Pause{{What: karpv1.PauseDisruption, By: "jane", Reason: "peak traffic " + planted}}
	}}
	tab, _ := look(t, source, knowing{" " + planted})

	t.Run("Live", func(t *testing.T) {
		if err := tab.shows([]string{"40 of 40 nodes", "batch", "spot", "disruption is paused in the whole cluster by jane: peak traffic " + planted}, tab.patience); err != nil {
			t.Error(err)
		}
		source.mu.Lock()
		source.step = 5
		source.mu.Unlock()
		before := evaluate[string](t, tab, `document.getElementById("total-pending").textContent`)
		becomes(t, tab, fmt.Sprintf(`document.getElementById("total-pending").textContent !== %q`, before))
		source.mu.Lock()
		source.step = 0
		source.mu.Unlock()
	})
	t.Run("Keyboard", func(t *testing.T) {
		press(t, tab, "/")
		becomes(t, tab, `document.activeElement.id === "filter"`)
		press(t, tab, "pool:web")
		becomes(t, tab, `document.querySelectorAll("#body .row.group:not([hidden])").length === 1`)
		press(t, tab, kb.ArrowDown) // from the filter into the list
		becomes(t, tab, `document.activeElement.id === "grid"`)
		press(t, tab, kb.ArrowLeft)
		becomes(t, tab, `document.querySelector("#body .row.group:not([hidden])").getAttribute("aria-expanded") === "false"`)
		press(t, tab, kb.ArrowRight)
		becomes(t, tab, `document.querySelector("#body .row.group:not([hidden])").getAttribute("aria-expanded") === "true"`)
		press(t, tab, kb.ArrowDown)
		press(t, tab, kb.Enter)
		becomes(t, tab, `!document.getElementById("details").hidden && document.activeElement.id === "details-title"`)
		if err := tab.shows([]string{"its pods fit on no other node", "NodePool", "web", "topology.kubernetes.io/zone="}, tab.patience); err != nil {
			t.Error(err)
		}
		press(t, tab, kb.Escape)
		becomes(t, tab, `document.getElementById("details").hidden && document.activeElement.id === "grid"`)
		press(t, tab, "/")
		evaluate[bool](t, tab, `document.getElementById("filter").select() || true`)
		press(t, tab, kb.Backspace)
		becomes(t, tab, `document.querySelectorAll("#body .row.group:not([hidden])").length > 1`)
	})
	t.Run("Order", func(t *testing.T) {
		prices := `[...document.querySelectorAll("#body .row.nodes:not(.group):not([hidden])")].sort((a, b) => a.getAttribute("aria-rowindex") - b.getAttribute("aria-rowindex")).map(r => parseFloat(r.children[5].textContent)).filter(p => !isNaN(p))`
		evaluate[bool](t, tab, `(() => { const g = document.getElementById("group"); g.value = ""; g.dispatchEvent(new Event("change")); return true })()`)
		for _, direction := range []string{"ascending", "descending"} {
			evaluate[bool](t, tab, `[...document.querySelectorAll("#head button")].find(b => b.textContent.startsWith("Per hour")).click() || true`)
			becomes(t, tab, `document.querySelectorAll('#head [aria-sort="`+direction+`"]').length === 1`)
			sign := map[string]string{"ascending": ">=", "descending": "<="}[direction]
			becomes(t, tab, `(p => p.length > 5 && p.every((x, i) => i === 0 || x `+sign+` p[i-1]))(`+prices+`)`)
		}
		for _, group := range []string{"owner", "zone", "pool"} {
			evaluate[bool](t, tab, `(() => { const g = document.getElementById("group"); g.value = "`+group+`"; g.dispatchEvent(new Event("change")); return true })()`)
			becomes(t, tab, `document.querySelectorAll("#body .row.group:not([hidden])").length > 0`)
		}
	})
	t.Run("Tabs", func(t *testing.T) {
		for name, texts := range map[string][]string{
			"pending":   {"Why it waits", "cpu 5000 is more than any instance type"},
			"workflows": {"Underutilized: 2 nodes go, 1 come", "Blocked", "history"},
			"pools":     {"Underutilized", "Allowed", "batch"},
			"decisions": {"one m6g.4xlarge is cheaper", "$0.241", "Completed", "launch 4 for NodePool web"},
		} {
			evaluate[bool](t, tab, `document.getElementById("tab-`+name+`").click() || true`)
			if err := tab.shows(texts, tab.patience); err != nil {
				t.Errorf("tab %s: %v", name, err)
			}
		}
		evaluate[bool](t, tab, `document.getElementById("tab-workflows").click() || true`)
		becomes(t, tab, `[...document.querySelectorAll("#body a")].some(a => a.href === "http://temporal.example/namespaces/tenon/workflows/blue%2Freplacement%2F7-0/r1" && a.rel.includes("noopener"))`)
	})
	t.Run("NamesAreText", func(t *testing.T) { namesAreText(t, tab) })
	t.Run("Everyone", func(t *testing.T) { everyone(t, tab) })
}

// namesAreText shows that HTML which people have planted is seen as text everywhere, and that the page runs no script that is
// not one of its files, not even one that gets into the document.
func namesAreText(t *testing.T, tab tab) {
	for _, name := range []string{"workflows", "decisions"} {
		evaluate[bool](t, tab, `document.getElementById("tab-`+name+`").click() || true`)
		if err := tab.shows([]string{planted}, tab.patience); err != nil {
			t.Errorf("tab %s: %v", name, err)
		}
	}
	evaluate[bool](t, tab, `document.getElementById("tab-pending").click() || true`)
	becomes(t, tab, `[...document.querySelectorAll("#body .row.pending:not([hidden])")].some(r => r.children[2].textContent === "Waits")`)
	evaluate[bool](t, tab, `[...document.querySelectorAll("#body .row.pending:not([hidden])")].find(r => r.children[2].textContent === "Waits").click() || true`)
	if err := tab.shows([]string{"no node can be provisioned for it", "leaves for pods " + planted}, tab.patience); err != nil {
		t.Errorf("reasons of a pod: %v", err)
	}
	evaluate[bool](t, tab, `document.getElementById("tab-nodes").click() || true`)
	becomes(t, tab, `!!document.querySelector("#body .row.nodes:not(.group):not([hidden])")`)
	evaluate[bool](t, tab, `(() => { const g = document.getElementById("group"); g.value = ""; g.dispatchEvent(new Event("change")); document.getElementById("grid").focus(); return true })()`)
	press(t, tab, kb.Home)
	becomes(t, tab, `document.getElementById("grid").getAttribute("aria-activedescendant") === "row-0"`)
	for range 40 { // one of the nodes carries the label
		press(t, tab, kb.Enter)
		becomes(t, tab, `document.getElementById("details-body").textContent.includes("Labels")`)
		if evaluate[bool](t, tab, `document.getElementById("details-body").textContent.includes("note=<img")`) {
			break
		}
		press(t, tab, kb.Escape)
		press(t, tab, kb.ArrowDown)
	}
	if err := tab.shows([]string{"note=" + planted, "allows no more " + planted}, tab.patience); err != nil {
		t.Errorf("labels and reasons of a node: %v", err)
	}
	evaluate[bool](t, tab, `(() => {
		try { document.body.setAttribute("onclick", "window.planted = 1"); document.body.click(); } catch {}
		try { const s = document.createElement("script"); s.textContent = "window.planted = 1"; document.body.append(s); } catch {}
		try { document.createElement("div").innerHTML = "<img src=x onerror='window.planted=1'>"; } catch {}
		return true })()`)
	if evaluate[bool](t, tab, `document.images.length > 0 || "planted" in window`) {
		t.Error("planted HTML was not taken for text, or a planted script ran")
	}
	press(t, tab, kb.Escape)
}

// everyone lets axe-core judge the page's names, roles and contrasts, in light and dark.
func everyone(t *testing.T, tab tab) {
	source, err := os.ReadFile(filepath.FromSlash(axe))
	if err != nil {
		t.Fatalf("the judge is missing: run tools/axe.sh (%v)", err)
	}
	evaluate[bool](t, tab, string(source)+"; true")
	judge := func() []string {
		found, err := chromedp.Run(tab.ctx, chromedp.Evaluate[[]string](`axe.run(document, { resultTypes: ["violations"] }).
			then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.target + ": " + n.failureSummary)))`, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("axe-core: %v", err)
		}
		return found
	}
	evaluate[bool](t, tab, `document.getElementById("filter").parentElement.firstChild.remove() || true`)
	evaluate[bool](t, tab, `document.getElementById("filter").removeAttribute("placeholder") || true`)
	if found := judge(); len(found) == 0 {
		t.Error("the judge does not see that a field has no name")
	}
	if err := chromedp.Do(tab.ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	becomes(t, tab, `document.getElementById("connection").textContent === "live"`)
	evaluate[bool](t, tab, string(source)+"; true")
	for _, scheme := range []string{"light", "dark"} {
		if err := tab.dress(scheme); err != nil {
			t.Fatal(err)
		}
		becomes(t, tab, `document.documentElement.dataset.theme === "`+scheme+`"`)
		tabs := []string{"nodes", "pending", "workflows", "pools", "decisions"}
		if scheme == "dark" {
			tabs = []string{"nodes", "workflows"} // the others have the same colours
		}
		for _, name := range tabs {
			evaluate[bool](t, tab, `document.getElementById("tab-`+name+`").click() || true`)
			becomes(t, tab, `!!document.querySelector("#body .row:not([hidden])")`)
			if name == "nodes" {
				becomes(t, tab, `!!document.querySelector("#body .row.nodes:not(.group):not([hidden])")`)
				evaluate[bool](t, tab, `document.querySelector("#body .row.nodes:not(.group):not([hidden])").click() || true`)
				becomes(t, tab, `document.getElementById("details-body").textContent.includes("Labels")`)
			}
			for _, found := range judge() {
				t.Errorf("%s, %s: %s", scheme, name, found)
			}
		}
		press(t, tab, kb.Escape)
	}
}

// TestPagePictures takes the pictures of docs/page.md if TENON_PAGE_PICTURES names a directory, and else into a scratch one.
func TestPagePictures(t *testing.T) {
	t.Parallel()
	directory := os.Getenv("TENON_PAGE_PICTURES")
	if directory == "" {
		directory = t.TempDir()
	}
	tab, address := look(t, &fed{town: viewtest.New(8, 40, 800)}, knowing{})
	if err := chromedp.Do(tab.ctx, chromedp.EmulateViewport(1240, 560)); err != nil { // small pictures
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		if err := tab.dress(scheme); err != nil {
			t.Fatal(err)
		}
		if err := tab.visit(address + "/?" + scheme + "#tab=nodes&group=pool&sort=-cpu"); err != nil {
			t.Fatal(err)
		}
		becomes(t, tab, `document.documentElement.dataset.theme === "`+scheme+`" && document.getElementById("connection").textContent === "live"`)
		becomes(t, tab, `!!document.querySelector("#body .row.nodes:not(.group):not([hidden])")`)
		if scheme == "dark" {
			evaluate[bool](t, tab, `document.querySelector("#body .row.nodes:not(.group):not([hidden])").click() || true`)
			becomes(t, tab, `document.getElementById("details-body").textContent.includes("Labels")`)
		}
		file := filepath.Join(directory, "page-"+scheme+".png")
		if err := tab.save(file); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(file); err != nil || info.Size() < 10_000 || info.Size() > 400_000 {
			t.Errorf("the picture %s is not as large as one: %v, %v", file, info, err)
		}
	}
}

// TestPageScripting measures how much the page computes while it follows a cluster of 2,000 nodes and 20,000 pods: the
// browser's own ScriptDuration, in processor time. TENON_PAGE_WINDOW makes the measurement longer.
func TestPageScripting(t *testing.T) {
	t.Parallel()
	window := 6 * time.Second
	if text := os.Getenv("TENON_PAGE_WINDOW"); text != "" {
		var err error
		if window, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	source := &fed{town: viewtest.New(5, 2000, 20000), step: happening}
	tab, _ := look(t, source, knowing{})
	if err := tab.shows([]string{"of 20", "nodes"}, arrival); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(tab.ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
	}); err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"pool", "owner"} {
		evaluate[bool](t, tab, `(() => { const g = document.getElementById("group"); g.value = "`+group+`"; g.dispatchEvent(new Event("change")); return true })()`)
		becomes(t, tab, `document.querySelectorAll("#body .row.group:not([hidden])").length > 0`)
		before, seen := metrics(t, tab), source.looks()
		time.Sleep(window) // the measurement itself
		after := metrics(t, tab)
		spent := func(name string) time.Duration {
			return time.Duration((after[name] - before[name]) / window.Seconds() * float64(time.Second)).Round(100 * time.Microsecond)
		}
		t.Logf("grouped by %s: scripting %s, layout %s, style %s, all tasks %s per second", group, spent("ScriptDuration"), spent("LayoutDuration"), spent("RecalcStyleDuration"), spent("TaskDuration"))
		if looks := source.looks() - seen; looks < int(window.Seconds())/2 {
			t.Errorf("the cluster was looked at only %d times in %s: the page had too little to do", looks, window)
		}
		if spent("ScriptDuration") > mostScripting || spent("ScriptDuration") <= 0 {
			t.Errorf("grouped by %s the page computes %s per second, want more than nothing and at most %s", group, spent("ScriptDuration"), mostScripting)
		}
	}
}

// looks is how often the cluster was looked at.
func (f *fed) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int(f.town.Snapshot().Time.Sub(viewtest.Epoch) / time.Second)
}

// metrics are the browser's measurements of the page's process so far, in seconds.
func metrics(t *testing.T, tab tab) map[string]float64 {
	t.Helper()
	found, err := chromedp.Run(tab.ctx, func(ctx context.Context, target *chromedp.Target) (performance.GetMetricsResult, error) {
		return cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
	})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, metric := range found.Metrics {
		values[metric.Name] = metric.Value
	}
	return values
}
