package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// details is what people have opened.
type details struct {
	kind Kind
	// key is the row's, without its group.
	key   string
	title string
	at    position
	// told is what `tenon why` says; asking says that the answer is not there yet.
	told   string
	asking bool
}

// Kind is what details are about.
type Kind string

// The kinds of details. `tenon why` knows the first two.
const (
	KindNode     Kind = "node"
	KindPod      Kind = "pod"
	KindWorkflow Kind = "workflow"
	KindDecision Kind = "decision"
)

// fact is a line of details with a name.
type fact struct{ name, value string }

// facts lists facts that have a value.
func facts(all ...fact) []row {
	var rows []row
	for _, f := range all {
		if f.value != "" {
			rows = append(rows, line(fitted(f.name, 12, false)+" "+oneLine(f.value)))
		}
	}
	return rows
}

func heading(text string) []row { return []row{line(""), line(text)} }

func line(text string) row { return row{item: &item{line: text}} }

// rows returns the lines of details, as the last look shows them.
func (d *details) rows(look *Look, options Options, width int) []row {
	var rows []row
	switch d.kind {
	case KindNode:
		rows = d.nodeLines(look, options)
	case KindPod:
		rows = append(d.podLines(look), d.answer("WHY IT WAITS, OR HOW IT GOT ITS NODE")...)
	case KindWorkflow:
		rows = workflowLines(look, d.key)
	case KindDecision:
		rows = decisionLines(look, d.key)
	}
	var broken []row
	for _, r := range rows {
		if r.pod != nil || width <= 0 || ansi.StringWidth(r.line) < width {
			broken = append(broken, r)
			continue
		}
		for part := range strings.SplitSeq(ansi.Wrap(r.line, width-1, ""), "\n") {
			broken = append(broken, line(part))
		}
	}
	for i := range broken {
		broken[i].key = fmt.Sprint(i)
		if broken[i].pod != nil {
			broken[i].key = broken[i].pod.UID
		}
		broken[i].now = look.Snapshot.Time
	}
	return broken
}

// answer lists what `tenon why` says.
func (d *details) answer(head string) []row {
	rows := heading(head)
	switch {
	case d.asking:
		rows = append(rows, line("  asking a worker ..."))
	case d.told == "":
		return nil
	}
	for said := range strings.SplitSeq(strings.TrimRight(d.told, "\n"), "\n") {
		if !d.asking {
			rows = append(rows, line("  "+oneLine(strings.ReplaceAll(said, "\t", "  "))))
		}
	}
	return rows
}

func (d *details) nodeLines(look *Look, options Options) []row {
	at := slices.IndexFunc(look.View.Nodes, func(n *view.Node) bool { return n.Key == d.key })
	from := slices.IndexFunc(look.Snapshot.Nodes, func(n *plan.Node) bool { return n.Key() == d.key })
	if at < 0 || from < 0 {
		return []row{line("The node is gone. What happened to it: tenon history node " + d.title)}
	}
	seen := view.DetailsOf(look.Snapshot.Nodes[from], look.View.Nodes[at])
	n, now := seen.Node, look.Snapshot.Time
	cost := ""
	if !options.NoPrices {
		cost = price(n) + " per hour"
		if n.OnDemand > n.PerHour {
			cost += ", " + money(look.View.Cost.Currency, n.OnDemand) + " on demand"
		}
		if n.PerHour == 0 {
			cost = "not known" + because(look.Unpriced)
		}
	}
	life, replacement := "", ""
	if n.Claim != "" {
		life = workflows.Cluster(look.View.Name).NodeClaimID(n.Claim)
	}
	if n.Replacement != "" {
		replacement = workflows.Cluster(look.View.Name).ReplacementID(n.Replacement)
	}
	state := string(n.State)
	if n.Note != "" {
		state += ": " + n.Note
	}
	lifetime := age(n.Created, now)
	if !seen.Expires.IsZero() {
		lifetime += ", expires " + clock(seen.Expires, now)
	}
	machine := strings.Join(slices.DeleteFunc([]string{n.CapacityType, n.InstanceType, n.Zone, n.Arch, seen.ProviderID}, func(s string) bool { return s == "" }), " ")
	rows := facts(fact{"Node", n.Name}, fact{"NodeClaim", n.Claim}, fact{"NodePool", n.Pool}, fact{"Machine", machine}, fact{"State", state}, fact{"Price", cost},
		fact{"Age", lifetime}, fact{"Workflow", life}, fact{"Replacement", replacement})
	for _, name := range resourcesOf(n, options.Resources) {
		share, _ := part(n.Requested.Of(name), n.Allocatable.Of(name))
		rows = append(rows, facts(fact{name, fmt.Sprintf("%s of %s  %s", amount(name, n.Requested.Of(name)), amount(name, n.Allocatable.Of(name)), percent(share))})...)
	}
	rows = append(rows, d.answer("WHY IT STAYS, OR GOES")...)
	rows = append(rows, heading(fmt.Sprintf("PODS (%d)", len(n.Pods)))...)
	for i := range n.Pods {
		rows = append(rows, row{item: &item{pod: &n.Pods[i]}})
	}
	if len(seen.Taints) > 0 {
		rows = append(rows, heading("TAINTS")...)
		for _, taint := range seen.Taints {
			rows = append(rows, line("  "+oneLine(taint)))
		}
	}
	rows = append(rows, heading("LABELS")...)
	for _, name := range slices.Sorted(maps.Keys(seen.Labels)) {
		rows = append(rows, line("  "+name+"="+oneLine(seen.Labels[name])))
	}
	return rows
}

// resourcesOf are the resources that details name: those of the list, and all that the node has.
func resourcesOf(n *view.Node, listed []string) []string {
	names := []string{"cpu", "memory", "pods"}
	for _, other := range n.Allocatable.Others {
		names = append(names, other.Name)
	}
	for _, name := range listed {
		if !slices.Contains(names, name) && n.Allocatable.Of(name) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// podLine is a pod in the details of its node.
func podLine(p *view.Pod, now time.Time, width int) string {
	name := max(24, width-58)
	return "  " + fitted(oneLine(p.Key()), name, false) + " " + fitted(oneLine(p.Owner), 22, false) + " " + fitted(string(p.State), 11, false) + " " +
		fitted(amount("cpu", p.CPU), 6, true) + " " + fitted(amount("memory", p.Memory), 7, true) + " " + fitted(age(p.Created, now), 5, true)
}

func (d *details) podLines(look *Look) []row {
	now := look.Snapshot.Time
	lines := func(p *view.Pod, node string) []row {
		return facts(fact{"Pod", p.Key()}, fact{"Owner", p.Owner}, fact{"State", string(p.State)}, fact{"Node", cmp.Or(node, p.Node)}, fact{"CPU", amount("cpu", p.CPU)},
			fact{"Memory", amount("memory", p.Memory)}, fact{"Age", age(p.Created, now)}, fact{"Reason", p.Reason})
	}
	for _, p := range look.View.Pending {
		if p.UID == d.key {
			return lines(p, "")
		}
	}
	for _, n := range look.View.Nodes {
		for i := range n.Pods {
			if n.Pods[i].UID == d.key {
				return lines(&n.Pods[i], title(n))
			}
		}
	}
	return []row{line("The pod is gone. What happened to it: tenon history pod " + d.title)}
}

func workflowLines(look *Look, key string) []row {
	for _, w := range look.View.Workflows {
		if w.ID+w.Run == key {
			return facts(fact{"Workflow", w.ID}, fact{"Run", w.Run}, fact{"Type", w.Type}, fact{"Does", w.Summary}, fact{"Phase", w.Phase}, fact{"NodePool", w.NodePool},
				fact{"Node", w.Node}, fact{"NodeClaim", w.NodeClaim}, fact{"Reason", w.Reason}, fact{"Since", clock(w.Started, look.Snapshot.Time)})
		}
	}
	return []row{line("The workflow has ended. It may be among the decisions.")}
}

func decisionLines(look *Look, key string) []row {
	for _, d := range look.View.Decisions {
		if d.ID+d.Run != key {
			continue
		}
		saves, ended := "", ""
		if d.SavesPerHour != 0 {
			saves = money(look.View.Cost.Currency, d.SavesPerHour) + " per hour"
		}
		if !d.Ended.IsZero() {
			ended = clock(d.Ended, look.Snapshot.Time)
		}
		return facts(fact{"What", d.What}, fact{"Why", d.Why}, fact{"When", clock(d.At, look.Snapshot.Time)}, fact{"Saves", saves}, fact{"Outcome", cmp.Or(d.Outcome, "under way")},
			fact{"Ended", ended}, fact{"Nodes", strings.Join(d.Nodes, " ")}, fact{"Workflow", d.ID}, fact{"Run", d.Run})
	}
	return []row{line("The decision is no longer among the last ones.")}
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}
