package top

import (
	"strings"
	"time"

	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

// row is one line of a list.
type row struct {
	place
	*item
}

// place is what stays the same of a row from look to look, so that the cursor stays where it is. under is the group's name.
type place struct{ under, key string }

// item is what a row shows. Exactly one of its pointers is set, or none for a line of text.
type item struct {
	group    *group
	node     *view.Node
	from     *plan.Node
	pod      *view.Pod
	workflow *view.Workflow
	budget   *budget
	decision *view.Decision
	line     string
	now      time.Time
	currency string

	// text and workloads are what words and owners have found; an item lives as long as its node does not change.
	text      string
	workloads []string
}

// group is what nodes have in common by which they are grouped.
type group struct {
	name   string
	folded bool
	nodes  []*view.Node
}

// budget is what a NodePool's budgets allow for one reason.
type budget struct {
	pool view.Pool
	view.Budget
}

// label is a label of the row's node.
func (r *item) label(name string) string {
	if r.from == nil {
		return ""
	}
	return r.from.Labels[name]
}

// words are what a filter without a field looks at, in lower case.
func (r *item) words() string {
	if r.text != "" {
		return r.text
	}
	var text strings.Builder
	add := func(words ...string) {
		for _, word := range words {
			text.WriteString(word)
			text.WriteByte(' ')
		}
	}
	switch {
	case r.node != nil:
		n := r.node
		add(n.Name, n.Claim, n.Pool, n.Zone, n.InstanceType, n.CapacityType, string(n.State), n.Note)
		for i := range n.Pods {
			add(n.Pods[i].Namespace+"/"+n.Pods[i].Name, n.Pods[i].Owner)
		}
	case r.pod != nil:
		add(r.pod.Key(), r.pod.Owner, string(r.pod.State), r.pod.Node, r.pod.Reason)
	case r.workflow != nil:
		w := r.workflow
		add(w.ID, w.Type, w.Summary, w.Phase, w.NodePool, w.Node, w.NodeClaim, w.Reason)
	case r.budget != nil:
		add(r.budget.pool.Name, r.budget.Reason, r.budget.Mistake)
	case r.decision != nil:
		d := r.decision
		add(d.ID, d.Type, d.What, d.Why, d.Outcome)
		add(d.Nodes...)
	}
	r.text = strings.ToLower(text.String())
	return r.text
}

// owners are the workloads of the node's pods, each once.
func (r *item) owners() []string {
	if r.workloads != nil {
		return r.workloads
	}
	n, seen := r.node, map[string]bool{}
	for i := range n.Pods {
		owner := n.Pods[i].Namespace + " " + n.Pods[i].Owner
		if n.Pods[i].Owner == "" {
			owner = n.Pods[i].Namespace + " (no owner)"
		}
		if !seen[owner] {
			seen[owner] = true
			r.workloads = append(r.workloads, owner)
		}
	}
	return r.workloads
}
