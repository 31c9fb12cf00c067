package top

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/internal/view"
)

// column is one column of a list.
type column struct {
	// name is what people order and filter by, title what stands above.
	name, title string
	// width is in columns of the terminal. A column with a share takes its share of what the others leave, and at least width.
	width, share int
	right        bool
	// rank says which columns a narrow terminal does without: those with the highest first, those without a rank never.
	rank int
	cell func(*row) string
	by   func(a, b *row) int
	tone func(*row) tone
}

func text(read func(*row) string) (cell func(*row) string, by func(a, b *row) int) {
	return read, func(a, b *row) int { return cmp.Compare(read(a), read(b)) }
}

// named returns a column that shows a text and is ordered by it.
func named(name, title string, width, rank int, read func(*row) string) column {
	cell, by := text(read)
	return column{name: name, title: title, width: width, rank: rank, cell: cell, by: by}
}

// wide returns a column like named that takes its share of the room.
func wide(name, title string, width, share, rank int, read func(*row) string) column {
	c := named(name, title, width, rank, read)
	c.share = share
	return c
}

// number returns a column that shows a number and is ordered by it.
func number(name, title string, width, rank int, read func(*row) string, value func(*row) float64) column {
	return column{name: name, title: title, width: width, rank: rank, right: true, cell: read, by: func(a, b *row) int { return cmp.Compare(value(a), value(b)) }}
}

// barWidth is how wide bars are.
const barWidth = 6

// usage returns the column that shows how much of a resource is requested.
func usage(resource string) column {
	share := func(r *row) (float64, bool) {
		return part(r.node.Requested.Of(resource), r.node.Allocatable.Of(resource))
	}
	name, title := resource, strings.ToUpper(resource[strings.LastIndex(resource, "/")+1:])
	if resource == "pods" {
		name, title = podsUsage, "PODS USED"
	}
	return column{name: name, title: title, width: max(barWidth+5, len(title)),
		cell: func(r *row) string {
			if used, known := share(r); known {
				return bar(used, barWidth) + fitted(percent(used), 5, true)
			}
			return "-"
		},
		by: func(a, b *row) int {
			x, _ := share(a)
			y, _ := share(b)
			return cmp.Compare(x, y)
		},
		tone: func(r *row) tone {
			switch used, known := share(r); {
			case !known:
				return plain
			case used >= 0.75:
				return good
			case used >= 0.4:
				return fair
			}
			return bad
		}}
}

// The names of columns that have other names in eks-node-viewer too.
const (
	podsUsage = "pods-usage"
	byAge     = "age"
)

// viewerNames are the computed labels of eks-node-viewer, with the columns that show the same.
var viewerNames = map[string]string{
	"creation": byAge, "eks-node-viewer/node-age": byAge,
	"eks-node-viewer/node-cpu-usage": "cpu", "eks-node-viewer/node-memory-usage": "memory", "eks-node-viewer/node-pods-usage": podsUsage,
	"eks-node-viewer/node-ephemeral-storage-usage": "ephemeral-storage",
}

// labelled returns the column of a label.
func labelled(label string) column {
	title := strings.ToUpper(label[strings.LastIndex(label, "/")+1:])
	return named(label, title, max(12, len(title)), 0, func(r *row) string { return r.label(label) })
}

// nodeColumns returns the columns of the nodes.
func nodeColumns(options Options) []column {
	columns := []column{
		wide("name", "NODE", 14, 1, 0, func(r *row) string { return title(r.node) }),
		named("pool", "NODEPOOL", 10, 6, func(r *row) string { return r.node.Pool }),
		named("type", "TYPE", 12, 2, func(r *row) string { return r.node.InstanceType }),
		named("zone", "ZONE", 11, 5, func(r *row) string { return r.node.Zone }),
		named("capacity", "CAPACITY", 9, 4, func(r *row) string { return r.node.CapacityType }),
		named("state", "STATE", 11, 0, func(r *row) string { return string(r.node.State) }),
	}
	columns[len(columns)-1].tone = func(r *row) tone {
		switch r.node.State {
		case view.NodeServing:
			return good
		case view.NodeNotReady:
			return bad
		}
		return fair
	}
	for _, resource := range options.Resources {
		columns = append(columns, usage(resource))
	}
	columns = append(columns, number("pods", "PODS", 4, 1, func(r *row) string { return strconv.Itoa(len(r.node.Pods)) }, func(r *row) float64 { return float64(len(r.node.Pods)) }))
	if !options.NoPrices {
		columns = append(columns, number("price", "PER HOUR", 8, 0, func(r *row) string { return price(r.node) }, func(r *row) float64 { return r.node.PerHour }))
	}
	columns = append(columns, number(byAge, "AGE", 5, 3, func(r *row) string { return age(r.node.Created, r.now) }, func(r *row) float64 { return -float64(r.node.Created.Unix()) }))
	for _, label := range options.Labels {
		if shown := viewerNames[label]; shown == "" {
			columns = append(columns, labelled(label))
		} else if resource := strings.TrimSuffix(shown, "-usage"); shown != byAge && columnNamed(columns, shown) == nil {
			columns = append(columns, usage(resource))
		}
	}
	return columns
}

func columnNamed(columns []column, name string) *column {
	for i := range columns {
		if columns[i].name == name {
			return &columns[i]
		}
	}
	return nil
}

func podColumns() []column {
	return []column{
		wide("name", "POD", 16, 2, 0, func(r *row) string { return r.pod.Key() }),
		wide("owner", "OWNER", 14, 1, 2, func(r *row) string { return r.pod.Owner }),
		named("state", "STATE", 9, 0, func(r *row) string { return string(r.pod.State) }),
		number("cpu", "CPU", 6, 0, func(r *row) string { return amount("cpu", r.pod.CPU) }, func(r *row) float64 { return float64(r.pod.CPU) }),
		number("memory", "MEMORY", 7, 1, func(r *row) string { return amount("memory", r.pod.Memory) }, func(r *row) float64 { return float64(r.pod.Memory) }),
		number(byAge, "AGE", 5, 0, func(r *row) string { return age(r.pod.Created, r.now) }, func(r *row) float64 { return -float64(r.pod.Created.Unix()) }),
		wide("reason", "WHY IT WAITS", 24, 5, 0, func(r *row) string { return r.pod.Reason }),
	}
}

func workflowColumns() []column {
	return []column{
		named("type", "WORKFLOW", 12, 0, func(r *row) string { return r.workflow.Type }),
		wide("summary", "WHAT IT DOES", 20, 3, 0, func(r *row) string { return cmp.Or(r.workflow.Summary, r.workflow.ID) }),
		named("phase", "PHASE", 12, 1, func(r *row) string { return r.workflow.Phase }),
		wide("node", "NODE", 14, 1, 2, func(r *row) string { return cmp.Or(r.workflow.Node, r.workflow.NodeClaim) }),
		named("reason", "REASON", 14, 3, func(r *row) string { return r.workflow.Reason }),
		number(byAge, "AGE", 5, 0, func(r *row) string { return age(r.workflow.Started, r.now) }, func(r *row) float64 { return -float64(r.workflow.Started.Unix()) }),
	}
}

func budgetColumns() []column {
	count := func(name, title string, read func(*budget) int) column {
		return number(name, title, len(title), 0, func(r *row) string { return anyNumber(read(r.budget)) }, func(r *row) float64 { return float64(read(r.budget)) })
	}
	return []column{
		wide("pool", "NODEPOOL", 12, 1, 0, func(r *row) string { return r.budget.pool.Name }),
		named("reason", "REASON", 14, 0, func(r *row) string { return r.budget.Reason }),
		count("nodes", "NODES", func(b *budget) int { return b.pool.Nodes }),
		count("disrupted", "DISRUPTED", func(b *budget) int { return b.pool.Disrupting }),
		count("allowed", "ALLOWED", func(b *budget) int { return b.Allowed }),
		count("left", "LEFT", func(b *budget) int { return b.Left }),
		wide("opens", "MORE AT", 11, 1, 1, func(r *row) string {
			if r.budget.Mistake != "" || r.budget.Opens.IsZero() {
				return r.budget.Mistake
			}
			return clock(r.budget.Opens, r.now)
		}),
	}
}

func decisionColumns() []column {
	return []column{
		{name: "at", title: "WHEN", width: 12, cell: func(r *row) string { return clock(r.decision.At, r.now) }, by: func(a, b *row) int { return a.decision.At.Compare(b.decision.At) }},
		wide("what", "WHAT", 20, 2, 0, func(r *row) string { return cmp.Or(r.decision.What, r.decision.ID) }),
		wide("why", "WHY", 16, 2, 0, func(r *row) string { return r.decision.Why }),
		number("saves", "SAVES/H", 9, 1, func(r *row) string {
			if r.decision.SavesPerHour == 0 {
				return ""
			}
			return money(r.currency, r.decision.SavesPerHour)
		}, func(r *row) float64 { return r.decision.SavesPerHour }),
		named("outcome", "OUTCOME", 11, 0, func(r *row) string { return cmp.Or(r.decision.Outcome, "under way") }),
	}
}
