package disruption_test

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// manualScenarios are about nodes that people remove. No NodePool's budget restricts that; PodDisruptionBudgets do.
func manualScenarios() []scenario {
	closed := []pool{{budgets: `{nodes: "0"}`}}
	web := workload{name: "web", count: 1}
	deleteClaims := func(p *play) {
		p.T.Helper()
		for _, l := range p.view.of(p.name) {
			if p.marked[l.claim] {
				remove(&karpv1.NodeClaim{}, l.claim)(p)
			}
		}
	}
	drain := onMarked(func(p *play, node string) {
		p.T.Helper()
		if out, err := p.Tenon("drain", node, "--note", "kernel"); err != nil {
			p.T.Fatalf("tenon drain: %v\n%s", err, out)
		}
	})
	return []scenario{{
		name: "claim-deleted", rule: "a NodeClaim that somebody deletes takes its node along, whatever the budgets", pools: closed,
		steps: []step{deploy(web), mark, deleteClaims, replaced(1)},
		takes: takes{"ClaimDeleted": 1},
	}, {
		name: "node-deleted", rule: "a Node that somebody deletes is emptied in order and takes its machine along", pools: closed,
		steps: []step{deploy(web), mark, onMarked(func(p *play, node string) { remove(&corev1.Node{}, node)(p) }), replaced(1)},
		takes: takes{"NodeDeleted": 1},
	}, {
		name: "drained", rule: "a node that somebody drains is emptied and goes", pools: closed,
		steps: []step{deploy(web), mark, drain, replaced(1)},
		takes: takes{"ManualDrain": 1},
	}, {
		name: "deleted-pdb", rule: "the pods of a deleted node wait for their PodDisruptionBudget", pools: closed,
		steps: []step{deploy(web), create(pdb("none", "web", "maxUnavailable: 0")), mark, deleteClaims, begun(1), told("FailedDraining", "none"), relax("none"), replaced(1)},
		takes: takes{"ClaimDeleted": 1},
	}, {
		name: "deleted-one-by-one", rule: "the pods of a deleted node go as fast as their PodDisruptionBudget lets them, and no faster", pools: closed,
		steps: []step{deploy(workload{name: "web", count: 6, requests: tiny}), create(pdb("most", "web", "minAvailable: 5")), mark, deleteClaims, replaced(1)},
		takes: takes{"ClaimDeleted": 1},
	}}
}
