package cluster

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// briefly is how soon after its node came up a pod that makes room for another counts as never having been served.
const briefly = 15 * time.Minute

// heirsMost bounds how many victims of one kind are remembered until their successors come.
const heirsMost = 1000

// grown counts the nodes that came up for pods which still wait. A pod that is preempted soon after is gone; the next of its
// siblings to come is its heir.
type grown struct {
	nodes map[types.UID]int
	heirs map[plan.Siblings][]int
}

func newGrown() grown { return grown{nodes: map[types.UID]int{}, heirs: map[plan.Siblings][]int{}} }

// Grown returns how many nodes came up for the pods that wait, where there was one. What another process has counted
// before is where this one goes on.
func (m *Mirror) Grown(before map[types.UID]int) map[types.UID]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	for pod, nodes := range before {
		if m.waiting.has(pod) {
			m.grown.nodes[pod] = max(m.grown.nodes[pod], nodes)
		}
	}
	grown := maps.Clone(m.grown.nodes)
	maps.DeleteFunc(grown, func(pod types.UID, _ int) bool { return !m.waiting.has(pod) })
	return grown
}

// cameUp counts a node for the pods that it was made for. Those of another process's plan are nominated to it. The lock is
// held.
func (m *Mirror) cameUp(claim *promised) {
	pods := m.promises.byKey[claim.claim.Name].pods
	if node := m.places.nodeOf(claim); len(pods) == 0 && node != "" {
		for uid, pod := range m.waiting.pods {
			if pod.NominatedNode == node {
				pods = append(pods, uid)
			}
		}
	}
	for _, pod := range pods {
		if m.waiting.has(pod) {
			m.grown.nodes[pod]++
		}
	}
}

// initialized says that a claim's node has come up.
func initialized(claim *promised) bool {
	return claim != nil && claim.claim.IsTrue(karpv1.ConditionTypeInitialized)
}

// growthChanged follows a pod's change. A pod that is bound has what it needs; more than one node is remembered, in case
// it does not stay. The lock is held.
func (m *Mirror) growthChanged(old, now *Pod, existed, exists bool) {
	if existed && (!exists || old.UID != now.UID) {
		m.inherit(old)
		delete(m.grown.nodes, old.UID)
	}
	switch {
	case !exists:
	case now.Node != "" && m.grown.nodes[now.UID] == 1:
		delete(m.grown.nodes, now.UID)
	case now.Node == "" && (!existed || old.UID != now.UID):
		siblings := now.Siblings()
		if heirs := m.grown.heirs[siblings]; len(heirs) > 0 {
			m.grown.nodes[now.UID] = heirs[0]
			if m.grown.heirs[siblings] = heirs[1:]; len(heirs) == 1 {
				delete(m.grown.heirs, siblings)
			}
		}
	}
}

// inherit remembers a pod that is gone, if it was preempted soon after its node came up. The lock is held.
func (m *Mirror) inherit(pod *Pod) {
	node := m.nodes.items[pod.Node]
	siblings := pod.Siblings()
	if !pod.preempted || node == nil || !siblings.Any() || len(m.grown.heirs[siblings]) >= heirsMost {
		return
	}
	claim := m.places.claimOf(node)
	if claim == nil || claim.plan.InitializedAt.IsZero() || m.clock.Now().Sub(claim.plan.InitializedAt) > briefly {
		return
	}
	m.grown.heirs[siblings] = append(m.grown.heirs[siblings], max(1, m.grown.nodes[pod.UID]))
}
