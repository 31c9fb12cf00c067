package top

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

// list is one of the lists between which people switch.
type list struct {
	name, title string
	columns     []column
	// sort is the column by which the list is ordered at first; a leading dash turns the order around.
	sort string
	rows func(*Look) []row
	// fields are what a filter can ask for beside the columns.
	fields map[string]func(*row) string
}

// lists returns all lists, the nodes first.
func lists(options Options) []*list {
	known := map[*view.Node]*item{}
	return []*list{
		{name: "nodes", title: "Nodes", columns: nodeColumns(options), sort: "name",
			rows: func(look *Look) (rows []row) {
				rows, known = nodeRows(look, options, known)
				return rows
			},
			fields: map[string]func(*row) string{
				"pool": func(r *row) string { return r.node.Pool }, "zone": func(r *row) string { return r.node.Zone },
				"owner": func(r *row) string { return strings.Join(r.owners(), " ") }, "note": func(r *row) string { return r.node.Note },
				"claim": func(r *row) string { return r.node.Claim },
			}},
		{name: "pending", title: "Pending", columns: podColumns(), sort: "-" + byAge,
			rows: func(look *Look) []row {
				return rowsOf(look.View.Pending, func(p *view.Pod) row { return row{place{key: p.UID}, &item{pod: p}} })
			}},
		{name: "workflows", title: "Workflows", columns: workflowColumns(), sort: byAge,
			rows: func(look *Look) []row {
				return rowsOf(look.View.Workflows, func(w *view.Workflow) row { return row{place{key: w.ID + w.Run}, &item{workflow: w}} })
			}},
		{name: "budgets", title: "Budgets", columns: budgetColumns(), sort: "pool", rows: budgetRows},
		{name: "decisions", title: "Decisions", columns: decisionColumns(), sort: "-at",
			rows: func(look *Look) []row {
				return rowsOf(look.View.Decisions, func(d *view.Decision) row { return row{place{key: d.ID + d.Run}, &item{decision: d}} })
			}},
	}
}

func rowsOf[T any](items []T, wrap func(T) row) []row {
	rows := make([]row, 0, len(items))
	for _, item := range items {
		rows = append(rows, wrap(item))
	}
	return rows
}

// nodeRows returns the nodes that the selector selects, and their items. known are those of the last look.
func nodeRows(look *Look, options Options, known map[*view.Node]*item) ([]row, map[*view.Node]*item) {
	from := make(map[string]*plan.Node, len(look.Snapshot.Nodes))
	for _, node := range look.Snapshot.Nodes {
		from[node.Key()] = node
	}
	rows, items := make([]row, 0, len(look.View.Nodes)), make(map[*view.Node]*item, len(look.View.Nodes))
	for _, node := range look.View.Nodes {
		if !options.selects(from[node.Key]) {
			continue
		}
		one := known[node]
		if one == nil {
			one = &item{node: node}
		}
		one.from, items[node] = from[node.Key], one
		rows = append(rows, row{place{key: node.Key}, one})
	}
	return rows, items
}

func budgetRows(look *Look) []row {
	var rows []row
	for _, pool := range look.View.Pools {
		for _, b := range pool.Budgets {
			rows = append(rows, row{place{key: pool.Name + " " + b.Reason}, &item{budget: &budget{pool, b}}})
		}
	}
	return rows
}

// column returns the column of a name. Of nodes, every other name is that of a label.
func (l *list) column(name string) *column {
	if shown := viewerNames[name]; shown != "" {
		name = shown
	}
	if found := columnNamed(l.columns, name); found != nil || l.name != "nodes" {
		return found
	}
	var c column
	switch name {
	case "cpu", "memory", "ephemeral-storage":
		c = usage(name)
	case podsUsage:
		c = usage("pods")
	default:
		c = labelled(name)
	}
	return &c
}

// found returns the rows that a filter lets through, in order. sort is a column's name, after a dash for the other order.
func (l *list) found(look *Look, filter, sort string) []row {
	matches := l.matcher(filter)
	rows := l.rows(look)
	kept := rows[:0]
	for i := range rows {
		rows[i].now, rows[i].currency = look.Snapshot.Time, look.View.Cost.Currency
		if matches(&rows[i]) {
			kept = append(kept, rows[i])
		}
	}
	name, down := strings.CutPrefix(sort, "-")
	if c := l.column(name); c != nil && c.by != nil {
		slices.SortFunc(kept, func(a, b row) int {
			if down {
				return cmp.Or(c.by(&b, &a), cmp.Compare(a.key, b.key))
			}
			return cmp.Or(c.by(&a, &b), cmp.Compare(a.key, b.key))
		})
	}
	return kept
}

// matcher returns whether a row matches all words of a filter. A word such as pool:web asks for a field.
func (l *list) matcher(filter string) func(*row) bool {
	var tests []func(*row) bool
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		name, value, asks := strings.Cut(word, ":")
		field := l.fields[name]
		if c := columnNamed(l.columns, name); field == nil && c != nil {
			field = c.cell
		}
		if asks && field != nil {
			tests = append(tests, func(r *row) bool { return strings.Contains(strings.ToLower(field(r)), value) })
		} else {
			tests = append(tests, func(r *row) bool { return strings.Contains(r.words(), word) })
		}
	}
	return func(r *row) bool {
		return !slices.ContainsFunc(tests, func(test func(*row) bool) bool { return !test(r) })
	}
}

// groupings are by what nodes can be grouped, in the order of the key that switches.
var groupings = []string{"pool", "zone", "owner", "none"}

// grouped puts nodes under their groups. A node is listed under each workload of its pods.
func grouped(rows []row, by string, folded map[string]bool) []row {
	var groupsOf func(*item) []string
	switch by {
	case "pool":
		groupsOf = func(r *item) []string { return []string{cmp.Or(r.node.Pool, "no NodePool")} }
	case "zone":
		groupsOf = func(r *item) []string { return []string{cmp.Or(r.node.Zone, "no zone yet")} }
	case "owner":
		groupsOf = (*item).owners
	default:
		return rows
	}
	members := map[string][]row{}
	for i := range rows {
		for _, name := range groupsOf(rows[i].item) {
			members[name] = append(members[name], rows[i])
		}
	}
	all := make([]row, 0, len(rows)+len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		g := &group{name: name, folded: folded[name]}
		all = append(all, row{place{under: name}, &item{group: g, currency: members[name][0].currency}})
		for _, member := range members[name] {
			g.nodes = append(g.nodes, member.node)
			if !g.folded {
				member.under = name
				all = append(all, member)
			}
		}
	}
	return all
}

// sums are what is added up over nodes.
type sums struct {
	pods                 int
	perHour              float64
	requested, allocated map[string]int64
}

func sumsOf(nodes []*view.Node, resources []string) sums {
	s := sums{requested: map[string]int64{}, allocated: map[string]int64{}}
	for _, n := range nodes {
		s.pods += len(n.Pods)
		s.perHour += n.PerHour
		for _, name := range resources {
			s.requested[name] += n.Requested.Of(name)
			s.allocated[name] += n.Allocatable.Of(name)
		}
	}
	return s
}

// words says how full nodes are, and what they cost.
func (s sums) words(options Options, currency string) string {
	text := counted(s.pods, "pod")
	for _, name := range options.Resources {
		if share, known := part(s.requested[name], s.allocated[name]); known {
			text += fmt.Sprintf("  %s %s", name[strings.LastIndex(name, "/")+1:], percent(share))
		}
	}
	if !options.NoPrices {
		text += "  " + money(currency, s.perHour) + "/h"
	}
	return text
}
