package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// metricsDocument returns the document about metrics.
func metricsDocument() (string, error) {
	if err := metrics.Check(); err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(`# Metrics

Every metric that Karpenter 1.14 documents, and what it is here; then Tenon's own. Those with a meaning have Karpenter's name, type and labels, so
that its dashboards and alerts work. The table is made from the list that the collectors use. ` + "`TestWhyPod`" + ` has a real Prometheus scrape a worker and
evaluates the expressions of the two dashboards in Karpenter's documentation; those about what is there, rather than gone, have to have series.

## Who exports what

* **leader**: only the worker that holds the Lease. These metrics describe the cluster: each Node, pod and NodePool is there once, however many
  workers run. Karpenter's replicas do the same. After a change of leader, the series continue from another instance.
* **every**: each worker exports what it has done or seen itself. Counters and histograms of several workers add up: use ` + "`sum`" + `. Gauges about the
  worker itself, such as ` + "`tenon_mirror_staleness_seconds`" + `, are for ` + "`max`" + ` or ` + "`min`" + `.

Counters begin at zero when a worker starts, and count only what happens from then on.

## Libraries

A worker also exports ` + "`go_...` and `process_...`" + `, and all metrics of Temporal's SDK as ` + "`temporal_...`" + `. Watch ` + "`temporal_workflow_task_execution_failed_total`" + `
(a workflow task that failed is tried again until a build comes that can do it), ` + "`temporal_activity_execution_failed_total`" + `,
` + "`temporal_request_failure_total`" + ` and the ` + "`..._schedule_to_start_latency`" + ` histograms (all workers busy).
`)
	own := "\n## Tenon's own\n\n| metric | type | labels | by | |\n|---|---|---|---|---|\n"
	verdicts := []struct {
		verdict metrics.Verdict
		title   string
	}{{metrics.Same, "The same as Karpenter's"}, {metrics.Different, "Different from Karpenter's"}, {metrics.Missing, "Missing"}, {metrics.Meaningless, "Without a meaning here"}}
	for _, section := range verdicts {
		fmt.Fprintf(&text, "\n## %s\n\n", section.title)
		if section.verdict == metrics.Meaningless || section.verdict == metrics.Missing {
			text.WriteString("| metric | why |\n|---|---|\n")
		} else {
			text.WriteString("| metric | type | stability | labels | by | |\n|---|---|---|---|---|---|\n")
		}
		for _, metric := range metrics.All() {
			switch {
			case metric.Verdict != section.verdict:
			case metric.By == metrics.Nobody:
				fmt.Fprintf(&text, "| `%s` | %s |\n", metric.Name, metric.Note)
			default:
				fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s | %s |\n", metric.Name, metric.Kind, metric.Stability, labelList(metric), metric.By, about(metric))
			}
		}
	}
	text.WriteString(own)
	for _, metric := range metrics.All() {
		if metric.Verdict == metrics.Own {
			fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n", metric.Name, metric.Kind, labelList(metric), metric.By, about(metric))
		}
	}
	text.WriteString("\n## The labels of Nodes\n\nThe metrics of Nodes have these labels of theirs; what a Node does not have is left out.\n\n| label of the metric | label of the Node |\n|---|---|\n")
	labels := metrics.NodeLabels()
	keys := make([]string, 0, len(labels))
	for key := range labels {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return strings.Compare(labels[a], labels[b]) })
	for _, key := range keys {
		fmt.Fprintf(&text, "| `%s` | `%s` |\n", labels[key], key)
	}
	return text.String(), nil
}

// about says what a metric is, and in what it differs.
func about(metric metrics.Metric) string {
	if metric.Note == "" {
		return metric.Help
	}
	return metric.Help + " " + strings.ToUpper(metric.Note[:1]) + metric.Note[1:] + "."
}

// labelList lists the labels of a metric. Those of Nodes are named together.
func labelList(metric metrics.Metric) string {
	labels, ofNodes := metrics.NodeLabels(), 0
	var names []string
	known := map[string]bool{}
	for _, name := range labels {
		known[name] = true
	}
	for _, label := range metric.Labels {
		if known[label] && len(metric.Labels) > len(labels) {
			ofNodes++
			continue
		}
		names = append(names, label)
	}
	if ofNodes > 0 {
		names = append(names, "[those of Nodes](#the-labels-of-nodes)")
	}
	return strings.Join(names, ", ")
}
