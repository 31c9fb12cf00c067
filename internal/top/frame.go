package top

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/tenon-sh/tenon/internal/view"
)

// margin is the column in which the cursor is marked.
const margin = 1

// View implements tea.Model.
func (s *Screen) View() tea.View {
	v := tea.NewView(s.frame())
	v.AltScreen = true
	v.WindowTitle = "tenon top"
	if s.filtering {
		if v.Cursor = s.input.Cursor(); v.Cursor != nil {
			v.Cursor.Y = s.height - 1
		}
	}
	return v
}

// frame draws the whole screen.
func (s *Screen) frame() string {
	if s.look == nil {
		text := "reading the cluster and what Temporal has recorded ...  q quits\n"
		for line := range strings.SplitSeq(string(s.waiting), "\n") {
			text += "\n" + fitted(oneLine(line), s.width, false)
		}
		return text
	}
	if s.helped {
		return s.styles.strong.Render("Keys") + "\n\n" + s.help.FullHelpView(s.keys.FullHelp()) + "\n\n" + helpText
	}
	lines := s.head()
	room := s.room()
	here := s.here()
	until := min(len(s.rows), here.top+room)
	visible := s.rows[min(here.top, until):until]
	lines = append(lines, s.titles())
	fits := s.fits()
	for i := range visible {
		lines = append(lines, s.drawn(&visible[i], fits, here.top+i == here.cursor))
	}
	for range room - len(visible) {
		lines = append(lines, "")
	}
	return strings.Join(append(lines, s.foot()), "\n")
}

const helpText = `1 to 5 choose a list. Enter opens a node, a pod, a workflow or a decision, and folds a group.
A filter has words, and fields: pool:web zone:us-east-1a state:Closed type:m6g owner:web note:drifted
Bars show what pods request of what can be allocated. Any key closes this.`

// head are the lines above the titles of the columns.
func (s *Screen) head() []string {
	lines := summary(s.look, s.options)
	for i := range lines {
		lines[i] = fitted(lines[i], s.width, false)
	}
	lines[0] = s.styles.strong.Render(lines[0])
	for _, warning := range warnings(s.look, s.options) {
		lines = append(lines, s.styles.tones[bad].Render(fitted(warning, s.width, false)))
	}
	if d := s.details(); d != nil {
		return append(lines, s.styles.chosen.Render(fitted(fmt.Sprintf(" %s %s ", d.kind, d.title), s.width, false)))
	}
	return append(lines, s.tabs())
}

// tabs names the lists, and says how the one that is shown is arranged.
func (s *Screen) tabs() string {
	var names strings.Builder
	used := 0
	for i, l := range s.lists {
		name := fmt.Sprintf(" %d %s ", i+1, l.title)
		if count := countOf(l.name, s.look.View); count > 0 {
			name = fmt.Sprintf(" %d %s %d ", i+1, l.title, count)
		}
		used += len(name)
		if i == s.at {
			name = s.styles.chosen.Render(name)
		}
		names.WriteString(name)
	}
	how := []string{"sort " + strings.TrimPrefix(s.here().sort, "-")}
	if strings.HasPrefix(s.here().sort, "-") {
		how[0] += " ↓"
	}
	if s.lists[s.at].name == "nodes" && s.group != "none" {
		how = append([]string{"by " + s.group + ", " + how[0]}, how...)
	}
	for _, said := range how {
		if room := s.width - used; ansi.StringWidth(said) < room {
			names.WriteString(s.styles.faint.Render(fitted(said, room, true)))
			break
		}
	}
	return ansi.Truncate(names.String(), s.width, "")
}

func countOf(list string, c *view.Cluster) int {
	switch list {
	case "nodes":
		return len(c.Nodes)
	case "pending":
		return len(c.Pending)
	case "workflows":
		return len(c.Workflows)
	case "decisions":
		return len(c.Decisions)
	}
	return 0
}

// summary are the lines with what is counted over the cluster, and what it costs.
func summary(look *Look, options Options) []string {
	c := look.View
	counts := fmt.Sprintf("%s  %s", oneLine(c.Name), counted(c.Totals.Nodes, "node"))
	for _, more := range []struct {
		count int
		what  string
	}{{c.Totals.Coming, "coming"}, {c.Totals.Leaving, "leaving"}} {
		if more.count > 0 {
			counts += fmt.Sprintf(" (%d %s)", more.count, more.what)
		}
	}
	counts += fmt.Sprintf("  %s  %d pending  cpu %s  memory %s", counted(c.Totals.Pods, "pod"), c.Totals.Pending, percent(c.Totals.Fill.CPU), percent(c.Totals.Fill.Memory))
	if options.NoPrices {
		return []string{counts}
	}
	cost := money(c.Cost.Currency, c.Cost.PerHour) + "/h"
	if below := c.Cost.OnDemand - c.Cost.PerHour; below > 0 {
		cost += "  " + money(c.Cost.Currency, below) + " below on demand"
	}
	if len(c.Cost.History) > 1 {
		cost += fmt.Sprintf("  was %s at %s", money(c.Cost.Currency, c.Cost.History[0].PerHour), clock(c.Cost.History[0].At, look.Snapshot.Time))
	}
	if c.Cost.Saved != 0 {
		cost += fmt.Sprintf("  saved %s since %s", money(c.Cost.Currency, c.Cost.Saved), clock(c.Cost.SavedSince, look.Snapshot.Time))
	}
	if c.Cost.Unpriced > 0 {
		cost += fmt.Sprintf("  %d without a price", c.Cost.Unpriced)
	}
	return []string{counts, cost}
}

// warnings say what is paused, and what is missing or old.
func warnings(look *Look, options Options) []string {
	var all []string
	for _, pause := range look.View.Pauses {
		all = append(all, "PAUSED "+pause.Words())
	}
	all = append(all, look.View.Stale, look.View.Trouble)
	if !options.NoPrices {
		all = append(all, look.Unpriced)
	}
	var said []string
	for _, warning := range all {
		if warning != "" {
			said = append(said, oneLine(warning))
		}
	}
	return said
}

// room is how many rows can be drawn.
func (s *Screen) room() int {
	if s.look == nil {
		return 1
	}
	return max(1, s.height-len(s.head())-2)
}

// fits are the columns of the list that is shown; details have none.
func (s *Screen) fits() []fit {
	if s.details() != nil {
		return nil
	}
	columns := s.lists[s.at].columns
	if c := s.lists[s.at].column(s.sorted()); c != nil && columnNamed(columns, c.name) == nil {
		columns = append(columns[:len(columns):len(columns)], *c)
	}
	columns = slices.Clone(columns)
	if sorted := columnNamed(columns, s.sorted()); sorted != nil {
		sorted.rank = 0 // a terminal may be narrow, but people see by what they have ordered
	}
	if s.lists[s.at].name == "nodes" && (s.group == "pool" || s.group == "zone") {
		// The group says it already.
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.name == s.group })
	}
	return layout(columns, nil, s.width-margin)
}

// sorted is the name of the column by which the list is ordered.
func (s *Screen) sorted() string {
	name := strings.TrimPrefix(s.here().sort, "-")
	if c := s.lists[s.at].column(name); c != nil {
		return c.name
	}
	return name
}

// titles are the titles of the columns.
func (s *Screen) titles() string {
	if s.details() != nil {
		return ""
	}
	return s.styles.faint.Render(fitted(strings.Repeat(" ", margin)+titlesOf(s.fits()), s.width, false))
}

func titlesOf(fits []fit) string {
	cells := make([]string, 0, len(fits))
	for _, f := range fits {
		cells = append(cells, fitted(f.title, f.room, f.right))
	}
	return strings.Join(cells, " ")
}

// drawn draws a row.
func (s *Screen) drawn(r *row, fits []fit, chosen bool) string {
	mark := " "
	if chosen {
		mark = ">"
	}
	var text string
	styled := false
	switch {
	case r.group != nil:
		text = groupLine(r, s.options)
	case s.details() != nil && r.pod != nil:
		text = podLine(r.pod, r.now, s.width-margin)
	case s.details() != nil:
		text = r.line
	default:
		text, styled = s.cells(r, fits, !chosen), !chosen
	}
	if styled {
		return ansi.Truncate(mark+text, s.width, "")
	}
	text = fitted(mark+text, s.width, false)
	switch {
	case chosen:
		return s.styles.chosen.Render(text)
	case r.group != nil:
		return s.styles.strong.Render(text)
	}
	return text
}

func (s *Screen) cells(r *row, fits []fit, toned bool) string {
	cells := make([]string, 0, len(fits))
	for _, f := range fits {
		cell := oneLine(f.cell(r))
		if f.name == "name" && r.node != nil && ansi.StringWidth(cell) > f.room {
			cell, _, _ = strings.Cut(cell, ".") // of ip-10-0-1-2.ec2.internal, the part that differs; details have the whole name
		}
		cell = fitted(cell, f.room, f.right)
		if toned && f.tone != nil {
			cell = s.styles.tones[f.tone(r)].Render(cell)
		}
		cells = append(cells, cell)
	}
	return strings.Join(cells, " ")
}

func groupLine(r *row, options Options) string {
	mark := "▾"
	if r.group.folded {
		mark = "▸"
	}
	return fmt.Sprintf("%s %s  %s  %s", mark, oneLine(r.group.name), counted(len(r.group.nodes), "node"), sumsOf(r.group.nodes, options.Resources).words(options, r.currency))
}

// foot is the last line: the filter that is being written, or the keys.
func (s *Screen) foot() string {
	if s.filtering {
		return s.input.View()
	}
	found := ""
	if s.details() == nil && (s.filter != "" || s.options.Selector != nil && s.at == 0) {
		found = s.found() + "  "
	}
	keys := s.help
	keys.SetWidth(max(1, s.width-len(found)))
	return found + keys.ShortHelpView(s.keys.ShortHelp())
}

// found says how much of the list a filter and a selector let through.
func (s *Screen) found() string {
	seen := map[string]bool{}
	var nodes []*view.Node
	for i := range s.rows {
		r := &s.rows[i]
		switch {
		case r.group != nil:
			for _, n := range r.group.nodes {
				if !seen[n.Key] {
					seen[n.Key] = true
					nodes = append(nodes, n)
				}
			}
		case r.node != nil && !seen[r.node.Key]:
			seen[r.node.Key] = true
			nodes = append(nodes, r.node)
		}
	}
	text := "/" + oneLine(s.filter) + " "
	if s.filter == "" {
		text = ""
	}
	if s.lists[s.at].name != "nodes" {
		return text + fmt.Sprintf("%d of %d", len(s.rows), countOf(s.lists[s.at].name, s.look.View))
	}
	return text + fmt.Sprintf("%d of %d nodes  %s", len(nodes), len(s.look.View.Nodes), sumsOf(nodes, s.options.Resources).words(s.options, s.look.View.Cost.Currency))
}
