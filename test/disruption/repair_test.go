package disruption_test

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repairScenarios are about nodes that are ill and will not recover by themselves.
func repairScenarios() []scenario {
	closed := []pool{{budgets: `{nodes: "0"}`}}
	return []scenario{{
		name: "repaired", rule: "a node whose kernel has been ill for half an hour goes by force, whatever the budgets", pools: closed,
		steps:  []step{deploy(workload{name: "web", count: 1}), create(pdb("none", "web", "maxUnavailable: 0")), mark, onMarked(ill("KernelReady", time.Hour)), replaced(1)},
		takes:  takes{"Unhealthy": 1},
		breaks: "nothing can be expected of a node that is ill",
	}, {
		name: "repaired-later", rule: "a node that has not been ill for long stays", pools: closed,
		steps: []step{deploy(workload{name: "web", count: 2, requests: whole}), mark, illFirst("StorageReady", time.Minute), illSecond("StorageReady", time.Hour), gone(1), serve(2)},
		takes: takes{"Unhealthy": 1},
	}, {
		name: "repair-breaker", rule: "while more than a fifth of a NodePool is ill, none of it is repaired", pools: closed,
		steps: []step{deploy(workload{name: "web", count: 2, requests: whole}), mark, onMarked(ill("NetworkingReady", time.Hour)), told("NodeRepairBlocked", ""), untouched,
			illFirst("NetworkingReady", 0), gone(1), serve(2)},
		takes: takes{"Unhealthy": 1},
	}}
}

func untouched(p *play) {
	p.T.Helper()
	p.untouched()
}

// illFirst and illSecond have the first or second of the marked nodes be ill.
func illFirst(condition string, since time.Duration) step  { return illNumber(0, condition, since) }
func illSecond(condition string, since time.Duration) step { return illNumber(1, condition, since) }

func illNumber(n int, condition string, since time.Duration) step {
	return func(p *play) {
		p.T.Helper()
		ill(condition, since)(p, p.markedNodes()[n])
	}
}

// ill has a node have been ill for so long, or be well again where that is zero.
func ill(condition string, since time.Duration) func(*play, string) {
	return func(p *play, name string) {
		p.T.Helper()
		status := "False"
		if since == 0 {
			status = "True"
		}
		at := time.Now().Add(-since).UTC().Format(time.RFC3339)
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","lastTransitionTime":%q,"lastHeartbeatTime":%q}]}}`, condition, status, at, at)
		for _, n := range p.nodes() {
			if n.Name != name {
				continue
			}
			if err := p.Status().Patch(context.Background(), n.DeepCopy(), client.RawPatch("application/strategic-merge-patch+json", []byte(patch))); err != nil {
				p.T.Fatal(err)
			}
		}
	}
}
