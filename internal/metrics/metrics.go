// Package metrics lists every metric that Tenon has, and every metric that Karpenter documents: what it means here, its type
// and its labels, and which worker exports it. Collectors take names, types, labels and help from this list (Set, Desc), and
// docs/reference/metrics.md is made from it, so that the three cannot differ.
//
// karpenter.txt has the names, types, stability and labels of Karpenter 1.14, as its sources define them. A metric of Karpenter's
// that has a meaning here has the same type and labels.
//
// Reading order: metrics, karpenter, own, set.
package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kind is the type of a metric.
type Kind string

// The types, in the words of Prometheus.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// By says which workers export a metric.
type By string

const (
	// Leader means that only the worker that holds the Lease exports it, as with Karpenter: it describes the cluster, and no sum
	// over workers counts anything twice.
	Leader By = "leader"
	// Every means that each worker exports what it has done or seen itself. Counters and histograms of several workers add up.
	Every By = "every"
	// Nobody exports a metric without a meaning.
	Nobody By = ""
)

// Verdict says how a metric compares with Karpenter's of the same name.
type Verdict string

// The verdicts.
const (
	Same        Verdict = "same"
	Different   Verdict = "different"
	Meaningless Verdict = "meaningless"
	// Own is a metric that Karpenter does not have.
	Own Verdict = "own"
)

// Metric is one metric.
type Metric struct {
	Name string
	Kind Kind
	// Stability is Karpenter's word for how stable the metric is; empty for Tenon's own.
	Stability string
	// Labels are in no order that matters.
	Labels []string
	// Help is one sentence for people, which Prometheus shows as well. It is empty for a metric without a meaning.
	Help string
	// Buckets are the upper bounds of a histogram, in the unit of the metric.
	Buckets []float64
	By      By
	Verdict Verdict
	// Note says in what it differs from Karpenter's, or why it has no meaning.
	Note string
}

// row is a metric as the tables of this package write it. Type, labels and stability of Karpenter's metrics are those of
// karpenter.txt.
type row struct {
	name    string
	by      By
	help    string
	verdict Verdict
	note    string
	buckets []float64
	// kind and labels are for Tenon's own metrics only.
	kind   Kind
	labels string
}

// All returns every metric ordered by name: Karpenter's, also those without a meaning here, and Tenon's own.
func All() []Metric { return slices.Clone(catalogue().all) }

// list is the catalogue, and what is wrong with it.
type list struct {
	all    []Metric
	byName map[string]*Metric
	wrong  []string
}

var catalogue = sync.OnceValue(func() *list {
	l := &list{byName: map[string]*Metric{}}
	known := map[string]Metric{}
	for line := range strings.Lines(karpenterNames) {
		metric := parse(line)
		known[metric.Name] = metric
	}
	for _, r := range slices.Concat(karpenterRows, ownRows) {
		metric, karpenters := known[r.name]
		if !karpenters {
			metric = Metric{Name: r.name, Kind: r.kind, Labels: strings.Fields(r.labels)}
		}
		delete(known, r.name)
		metric.Help, metric.Buckets, metric.By, metric.Verdict, metric.Note = r.help, r.buckets, r.by, r.verdict, r.note
		if karpenters == (r.verdict == Own) {
			l.wrong = append(l.wrong, fmt.Sprintf("%s has the verdict %q", r.name, r.verdict))
		}
		l.all = append(l.all, metric)
	}
	for name := range known {
		l.wrong = append(l.wrong, fmt.Sprintf("Karpenter's metric %s has no row", name))
	}
	slices.SortFunc(l.all, func(a, b Metric) int { return strings.Compare(a.Name, b.Name) })
	for i := range l.all {
		name := l.all[i].Name
		if l.byName[name] != nil {
			l.wrong = append(l.wrong, name+" has two rows")
		}
		l.byName[name] = &l.all[i]
	}
	slices.Sort(l.wrong)
	return l
})

// Check returns an error unless every metric of Karpenter's has exactly one row.
func Check() error {
	if wrong := catalogue().wrong; len(wrong) > 0 {
		return fmt.Errorf("the list of metrics: %s", strings.Join(wrong, "; "))
	}
	return nil
}

// parse reads a line of karpenter.txt: name, type, stability, labels. "@node" stands for the labels of a Node.
func parse(line string) Metric {
	fields := strings.Fields(line)
	metric := Metric{Name: fields[0], Kind: Kind(fields[1]), Stability: fields[2]}
	for _, label := range fields[3:] {
		if label == "@node" {
			metric.Labels = append(metric.Labels, nodeLabelNames()...)
			continue
		}
		metric.Labels = append(metric.Labels, label)
	}
	return metric
}
