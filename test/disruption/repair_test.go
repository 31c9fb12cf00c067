package disruption_test

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// repairScenarios are about unhealthy nodes that will not recover by themselves.
func repairScenarios() []scenario {
	closed := []pool{{budgets: `{nodes: "0"}`}}
	return []scenario{{
		name: "repaired", rule: "a node whose kernel has been ill for half an hour goes by force, whatever the budgets", pools: closed,
		steps:  []step{deploy(workload{name: "web", count: 1}), create(pdb("none", "web", "maxUnavailable: 0")), mark, onMarked(ill("KernelReady", time.Hour)), replaced(1)},
		takes:  takes{"Unhealthy": 1},
		breaks: "nothing can be expected of a node that is ill",
	}, {
		name: "repaired-later", rule: "a node that is ill stays for as long as that is tolerated", pools: closed,
		steps: []step{deploy(workload{name: "web", count: 1}), mark, onMarked(ill("StorageReady", tolerated-10*time.Second)), replaced(1), notBefore(9 * time.Second)},
		takes: takes{"Unhealthy": 1},
	}, {
		name: "repair-breaker", rule: "while more than a fifth of a NodePool is ill, none of it is repaired", pools: closed,
		steps: []step{deploy(workload{name: "web", count: 2, requests: whole}), mark, onMarked(ill("NetworkingReady", tolerated-15*time.Second)), told("NodeRepairBlocked", "2 of 2 nodes"), untouched,
			wellFirst("NetworkingReady"), gone(1), serve(2)},
		takes: takes{"Unhealthy": 1},
	}}
}

// tolerated is how long the conditions of these scenarios are tolerated.
const tolerated = 30 * time.Minute

func untouched(p *play) {
	p.T.Helper()
	p.untouched()
}

// wellFirst makes the first of the marked nodes healthy again.
func wellFirst(condition string) step {
	return func(p *play) {
		p.T.Helper()
		ill(condition, 0)(p, p.markedNodes()[0])
	}
}

// ill makes a node unhealthy since this long ago, or healthy again if that is zero.
func ill(condition string, since time.Duration) func(*play, string) {
	return func(p *play, name string) {
		p.T.Helper()
		status := "False"
		if since == 0 {
			status = "True"
		}
		p.at = time.Now()
		at := p.at.Add(-since).UTC().Format(time.RFC3339)
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
