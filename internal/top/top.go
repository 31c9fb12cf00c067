// Package top is the screen of `tenon top`: the view of a cluster, as the worker's page shows it, in a terminal. It shows
// what internal/view has made and computes nothing of its own but sums over the nodes it lists.
//
// A Screen is a model of Bubble Tea. It is told each look at the cluster as a message, answers keys, and draws only the
// rows that can be seen, so that 2,000 nodes cost no more than twenty. Lists (list.go) are rows under columns, filtered,
// ordered and grouped; whoever opens a row reads its details, with what `tenon why` says about it. Without a terminal, All
// writes every list once.
//
// Everything that others have written is shown without control sequences.
//
// Reading order: style, words, row, top, column, list, details, keys, layout, screen, frame, all.
package top

import (
	"context"
	"fmt"
	"image/color"
	"regexp"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

// Look is one look at the cluster. A Screen takes it as a message.
type Look struct {
	View *view.Cluster
	// Snapshot is what the view is made of. Its time is now, also where nothing has changed.
	Snapshot *plan.Snapshot
	// Unpriced is why prices are missing, or not those of this moment; empty if nothing is wrong.
	Unpriced string
}

// Options say what a Screen shows at first.
type Options struct {
	// Resources are those with a bar, by their names in Kubernetes.
	Resources []string
	// Labels are labels with a column of their own.
	Labels []string
	// Selector selects the nodes that are listed; nil means all.
	Selector labels.Selector
	// Sort is the nodes' order: a column, a label, or a computed label of eks-node-viewer, after a dash in the other order.
	Sort string
	// Group is one of Groupings; empty means the first.
	Group string
	// Filter has words, or fields such as pool:web.
	Filter   string
	NoPrices bool
	// Colors are three: for what is good, ok and bad, such as a full, a half full and an empty node; nil means those of the terminal.
	Colors []color.Color
	// Why says of a node or a pod what `tenon why` says.
	Why func(ctx context.Context, kind Kind, name string) (string, error)
}

// Groupings are the values of Options.Group.
func Groupings() []string { return slices.Clone(groupings) }

func (o Options) selects(node *plan.Node) bool {
	return o.Selector == nil || node != nil && o.Selector.Matches(labels.Set(node.Labels))
}

// Selected returns the view without the nodes that the options' selector does not select.
func Selected(look Look, options Options) *view.Cluster {
	only := *look.View
	only.Nodes = []*view.Node{}
	rows, _ := nodeRows(&look, options, nil)
	for _, r := range rows {
		only.Nodes = append(only.Nodes, r.node)
	}
	return &only
}

// ParseSort reads an order as eks-node-viewer takes it: creation, a column or a label, with =asc (the default) or =dsc.
func ParseSort(text string) (string, error) {
	name, order, given := strings.Cut(text, "=")
	if at := strings.LastIndex(text, "="); given {
		name, order = text[:at], text[at+1:]
	}
	switch {
	case name == "":
		return "", fmt.Errorf("%q: name creation, a column such as cpu, or a label", text)
	case !given || order == "asc":
		return name, nil
	case order == "dsc" || order == "desc":
		return "-" + name, nil
	}
	return "", fmt.Errorf("%q: the order must be asc or dsc", text)
}

var hex = regexp.MustCompile("^#[0-9a-fA-F]{6}$")

// ParseColors reads three colours as eks-node-viewer takes them: #04B575,#FFFF00,#FF0000. Empty text means the default.
func ParseColors(text string) ([]color.Color, error) {
	if text == "" {
		return nil, nil
	}
	var colors []color.Color
	for one := range strings.SplitSeq(text, ",") {
		if !hex.MatchString(one) {
			return nil, fmt.Errorf("%q: a colour is written like #04B575", one)
		}
		colors = append(colors, lipgloss.Color(one))
	}
	if len(colors) != 3 {
		return nil, fmt.Errorf("%q: give three colours: for good, ok and bad", text)
	}
	return colors, nil
}
