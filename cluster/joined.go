package cluster

import (
	"slices"
	"strings"
	"time"

	"github.com/tenon-sh/tenon/plan"
)

// joined builds the places of a snapshot: Nodes and NodeClaims joined, with their pods and what is remembered of both.
type joined struct {
	nodes     *feed[*machine]
	places    *places
	boundPods *boundPods
	promises  *promises
	overdue   *overdue
	storage   *storage
}

// list returns all places, ordered by key; it rebuilds those that have changed. The lock is held.
func (j *joined) list() []*plan.Node {
	nodes := make([]*plan.Node, 0, len(j.nodes.items)+len(j.places.claims))
	for name, node := range j.nodes.items {
		built, ok := j.places.builtNodes[name]
		if !ok {
			built = j.build(j.places.claimOf(node), node)
			j.places.builtNodes[name] = built
		}
		nodes = append(nodes, built)
	}
	for name, claim := range j.places.claims {
		if j.places.nodeOf(claim) != "" {
			continue
		}
		built, ok := j.places.builtClaims[name]
		if !ok {
			built = j.build(claim, nil)
			j.places.builtClaims[name] = built
		}
		nodes = append(nodes, built)
	}
	slices.SortFunc(nodes, func(a, b *plan.Node) int {
		if order := strings.Compare(a.Key(), b.Key()); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return nodes
}

// build joins a claim and a Node, either of which may be nil, with the pods and what the mirror remembers of both.
func (j *joined) build(claim *promised, node *machine) *plan.Node {
	var built plan.Node
	var here *residents
	switch {
	case node == nil:
		built = *claim.plan
	case claim == nil:
		built = *node.plan
	default:
		built = *claim.plan.Join(node.plan)
	}
	if node != nil {
		here = j.boundPods.byNode[node.node.Name]
		built.Pods = here.byUID()
		built.LastPodEvent = later(built.LastPodEvent, j.boundPods.lastPodEvent(here))
		j.storage.hold(&built)
	}
	built.Promised, built.NominatedUntil = j.promises.promisesOf(built.Key(), built.Initialized)
	if claim != nil && j.overdue.names[claim.claim.Name] {
		built.Cordoned, built.Promised, built.NominatedUntil = true, nil, time.Time{}
	}
	return &built
}
