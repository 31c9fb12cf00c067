package view

import (
	"slices"
	"strings"
	"time"
)

// Delta is what a reader of an older view has to be told. Fields that have not changed are absent.
type Delta struct {
	Generation uint64    `json:"generation"`
	Time       time.Time `json:"time"`
	// Nodes are new or have changed, NodesGone are the keys of those that are no longer there. The same holds for the pods
	// that wait, by UID.
	Nodes       []*Node  `json:"nodes,omitempty"`
	NodesGone   []string `json:"nodesGone,omitempty"`
	Pending     []*Pod   `json:"pending,omitempty"`
	PendingGone []string `json:"pendingGone,omitempty"`

	Cost   *Cost   `json:"cost,omitempty"`
	Totals *Totals `json:"totals,omitempty"`
	Pools  *[]Pool `json:"pools,omitempty"`
	// Pauses, Workflows and Decisions are the whole lists.
	Pauses    *[]Pause     `json:"pauses,omitempty"`
	Workflows *[]*Workflow `json:"workflows,omitempty"`
	Decisions *[]*Decision `json:"decisions,omitempty"`
	Stale     *string      `json:"stale,omitempty"`
	Trouble   *string      `json:"trouble,omitempty"`
}

// Since returns what a reader of the view old has to be told to know the view now, and whether that is anything. Both have
// to be of one Builder.
func Since(old, now *Cluster) (d Delta, changed bool) {
	d = Delta{Generation: now.Generation, Time: now.Time}
	d.Nodes, d.NodesGone = differences(old.Nodes, now.Nodes, byKey, func(n *Node) string { return n.Key })
	d.Pending, d.PendingGone = differences(old.Pending, now.Pending, byUID, func(p *Pod) string { return p.UID })
	changed = len(d.Nodes)+len(d.NodesGone)+len(d.Pending)+len(d.PendingGone) > 0
	if !old.Cost.equal(now.Cost) {
		d.Cost, changed = &now.Cost, true
	}
	if old.Totals != now.Totals {
		d.Totals, changed = &now.Totals, true
	}
	if !slices.EqualFunc(old.Pools, now.Pools, Pool.equal) {
		d.Pools, changed = &now.Pools, true
	}
	if !slices.Equal(old.Pauses, now.Pauses) {
		d.Pauses, changed = &now.Pauses, true
	}
	if !slices.Equal(old.Workflows, now.Workflows) {
		d.Workflows, changed = &now.Workflows, true
	}
	if !slices.Equal(old.Decisions, now.Decisions) {
		d.Decisions, changed = &now.Decisions, true
	}
	if old.Stale != now.Stale {
		d.Stale, changed = &now.Stale, true
	}
	if old.Trouble != now.Trouble {
		d.Trouble, changed = &now.Trouble, true
	}
	return d, changed
}

func byKey(a, b *Node) int { return strings.Compare(a.Key, b.Key) }

func byUID(a, b *Pod) int { return strings.Compare(a.UID, b.UID) }

// differences walks two ordered lists. What has not changed is the same pointer in both.
func differences[T any](old, now []*T, compare func(a, b *T) int, key func(*T) string) (changed []*T, gone []string) {
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case i < len(old) && j < len(now) && old[i] == now[j]:
			i, j = i+1, j+1
		case j == len(now) || i < len(old) && compare(old[i], now[j]) < 0:
			gone = append(gone, key(old[i]))
			i++
		case i == len(old) || compare(old[i], now[j]) > 0:
			changed = append(changed, now[j])
			j++
		default:
			changed = append(changed, now[j])
			i, j = i+1, j+1
		}
	}
	return changed, gone
}
