// Package metrics lists every metric that Tenon has, and every metric that Karpenter documents: what it means here, its type
// and its labels, and which worker exports it. Collectors take names, types, labels and help from this list (Set, Desc), and
// docs/reference/metrics.md is made from it, so that the three cannot differ.
//
// karpenter.txt has the names, types, stability and labels of Karpenter 1.14, as its sources define them. A metric of Karpenter's
// that has a meaning here has the same type and labels.
//
// Reading order: metric, nodelabels, karpenter, own, metrics, set.
package metrics

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

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
