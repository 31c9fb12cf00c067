package cluster

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/plan"
)

// briefly is how soon after its node came up a pod must be preempted to count as never having been served.
const briefly = 15 * time.Minute

// maxHeirs limits how many victims of one kind are remembered until their successors come.
const maxHeirs = 1000

// grown counts the nodes that came up for pods that still wait. A pod that is preempted soon after that is gone; the
// next of its siblings inherits its count.
type grown struct {
	*shared
	machines *feed[*machine]
	places   *places
	waiting  *waiting
	promises *promises
	// nodes is how many nodes came up for each pod; heirs is the same for pods that are gone, by their siblings.
	nodes map[types.UID]int
	heirs map[plan.Siblings][]int
}

func newGrown(s *shared, machines *feed[*machine], places *places, waiting *waiting, promises *promises) *grown {
	return &grown{shared: s, machines: machines, places: places, waiting: waiting, promises: promises,
		nodes: map[types.UID]int{}, heirs: map[plan.Siblings][]int{}}
}

// Grown returns how many nodes came up for each waiting pod, if any. It continues the counts in before, which are
// another process's.
func (g *grown) Grown(before map[types.UID]int) map[types.UID]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	for pod, nodes := range before {
		if g.waiting.has(pod) {
			g.nodes[pod] = max(g.nodes[pod], nodes)
		}
	}
	grown := maps.Clone(g.nodes)
	maps.DeleteFunc(grown, func(pod types.UID, _ int) bool { return !g.waiting.has(pod) })
	return grown
}

// cameUp counts a node for the pods that it was made for. If another process planned it, those are the pods nominated
// to it. The lock is held.
func (g *grown) cameUp(claim *promised) {
	pods := g.promises.byKey[claim.claim.Name].pods
	if node := g.places.nodeOf(claim); len(pods) == 0 && node != "" {
		for uid, pod := range g.waiting.pods {
			if pod.NominatedNode == node {
				pods = append(pods, uid)
			}
		}
	}
	for _, pod := range pods {
		if g.waiting.has(pod) {
			g.nodes[pod]++
		}
	}
}

// podChanged follows a pod's change. A bound pod has what it needs and loses a count of one; a higher count is kept in
// case the pod does not stay bound. The lock is held.
func (g *grown) podChanged(old, now *Pod, existed, exists bool) {
	if existed && (!exists || old.UID != now.UID) {
		g.inherit(old)
		delete(g.nodes, old.UID)
	}
	switch {
	case !exists:
	case now.Node != "" && g.nodes[now.UID] == 1:
		delete(g.nodes, now.UID)
	case now.Node == "" && (!existed || old.UID != now.UID):
		siblings := now.Siblings()
		if heirs := g.heirs[siblings]; len(heirs) > 0 {
			g.nodes[now.UID] = heirs[0]
			if g.heirs[siblings] = heirs[1:]; len(heirs) == 1 {
				delete(g.heirs, siblings)
			}
		}
	}
}

// inherit remembers a pod that is gone, if it was preempted soon after its node came up. The lock is held.
func (g *grown) inherit(pod *Pod) {
	node := g.machines.items[pod.Node]
	siblings := pod.Siblings()
	if !pod.preempted || node == nil || !siblings.Any() || len(g.heirs[siblings]) >= maxHeirs {
		return
	}
	claim := g.places.claimOf(node)
	if claim == nil || claim.plan.InitializedAt.IsZero() || g.clock.Now().Sub(claim.plan.InitializedAt) > briefly {
		return
	}
	g.heirs[siblings] = append(g.heirs[siblings], max(1, g.nodes[pod.UID]))
}
