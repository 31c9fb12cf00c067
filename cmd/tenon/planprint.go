package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/tenon-sh/tenon/plan"
)

// maxWorkloads is the maximum number of workloads that a line of the table names.
const maxWorkloads = 4

// print writes the report as JSON, YAML or a table.
func (r *planReport) print(out io.Writer, format string) error {
	switch format {
	case "json":
		return writeJSON(out, r)
	case "yaml":
		data, err := yaml.Marshal(r)
		if err != nil {
			return fmt.Errorf("write YAML: %w", err)
		}
		_, err = out.Write(data)
		return err
	}
	return r.table(out)
}

// table writes the report with one line for nodes that are alike, and one for unplaced pods with the same reasons.
func (r *planReport) table(out io.Writer) error {
	pods := 0
	if len(r.Nodes) > 0 {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "NODE\tTYPE\tZONE\tCAPACITY\tARCH\t"+r.unit()+"/HOUR\tPODS")
		for first := 0; first < len(r.Nodes); {
			last := first
			for last+1 < len(r.Nodes) && r.Nodes[first].like(&r.Nodes[last+1]) {
				last++
			}
			node := &r.Nodes[first]
			name := node.Name
			if last > first {
				name += fmt.Sprintf("..%d", numberOf(r.Nodes[last].Name))
			}
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%.4f\t%s\n", name, node.InstanceType, node.Zone, node.CapacityType, node.Arch, node.PricePerHour, summary(node.workloads))
			for i := first; i <= last; i++ {
				pods += len(r.Nodes[i].Pods)
			}
			first = last + 1
		}
		if err := table.Flush(); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out)
	}
	if len(r.Existing) > 0 {
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "EXISTING NODE\tPODS")
		for i := range r.Existing {
			_, _ = fmt.Fprintf(table, "%s\t%s\n", r.Existing[i].Name, summary(r.Existing[i].workloads))
			pods += len(r.Existing[i].Pods)
		}
		if err := table.Flush(); err != nil {
			return err
		}
		_, _ = fmt.Fprintln(out)
	}
	for _, line := range unplacedLines(r.Unplaced) {
		_, _ = fmt.Fprintln(out, line)
	}
	_, err := fmt.Fprintf(out, "%s placed; %s, %.4f %s/hour; %s without a node\n", number(pods, "pod"), number(len(r.Nodes), "new node"), r.PricePerHour, r.unit(), number(len(r.Unplaced), "pod"))
	return err
}

// unit is what the currency is called in the table.
func (r *planReport) unit() string {
	if r.Currency == "USD" {
		return "$"
	}
	return r.Currency
}

// like says that two nodes differ only in their names and in which pods of the same workloads they hold.
func (n *plannedNode) like(other *plannedNode) bool {
	return n.NodePool == other.NodePool && n.InstanceType == other.InstanceType && n.Zone == other.Zone && n.CapacityType == other.CapacityType &&
		n.PricePerHour == other.PricePerHour && slices.Equal(n.workloads, other.workloads)
}

// numberOf returns the number at the end of a node's name.
func numberOf(name string) int {
	number := 0
	_, _ = fmt.Sscanf(name[strings.LastIndexByte(name, '-')+1:], "%d", &number)
	return number
}

func number(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// summary counts pods by workload: "shop/web (12), shop/db".
func summary(workloads []string) string {
	counts := map[string]int{}
	var order []string
	for _, workload := range workloads {
		if counts[workload] == 0 {
			order = append(order, workload)
		}
		counts[workload]++
	}
	var parts []string
	for i, workload := range order {
		if i == maxWorkloads && len(order) > maxWorkloads+1 {
			parts = append(parts, fmt.Sprintf("%d more workloads", len(order)-i))
			break
		}
		if counts[workload] > 1 {
			workload += fmt.Sprintf(" (%d)", counts[workload])
		}
		parts = append(parts, workload)
	}
	return strings.Join(parts, ", ")
}

// unplacedLines returns the lines about unplaced pods; pods with the same reasons share theirs.
func unplacedLines(unplaced []unplacedPod) []string {
	var order []string
	workloads := map[string][]string{}
	for i := range unplaced {
		reasons := unplaced[i].lines
		if workloads[reasons] == nil {
			order = append(order, reasons)
		}
		workloads[reasons] = append(workloads[reasons], unplaced[i].workload)
	}
	var lines []string
	for _, reasons := range order {
		lines = append(lines, "UNPLACED "+summary(workloads[reasons]), reasons)
	}
	return lines
}

// maxPools is the maximum number of NodePools that a line names.
const maxPools = 6

// reasonLines formats reasons, one per line; NodePools with the same reason share a line.
func reasonLines(reasons []plan.Reason) string {
	var order []string
	pools := map[string][]string{}
	for _, reason := range reasons {
		if _, known := pools[reason.Message]; !known {
			order = append(order, reason.Message)
		}
		pools[reason.Message] = append(pools[reason.Message], reason.NodePool)
	}
	var lines strings.Builder
	for _, message := range order {
		names := pools[message]
		which := "NodePool "
		switch {
		case names[0] == "":
			which = ""
		case len(names) > maxPools:
			which = fmt.Sprintf("NodePools %s and %d more: ", strings.Join(names[:maxPools], ", "), len(names)-maxPools)
		case len(names) > 1:
			which = "NodePools " + strings.Join(names, ", ") + ": "
		default:
			which += names[0] + ": "
		}
		lines.WriteString("  " + which + message + "\n")
	}
	return lines.String()
}
