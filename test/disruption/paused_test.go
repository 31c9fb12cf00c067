package disruption_test

import (
	"net/http"
	"time"
)

// pausedScenarios are about work that a person has paused for a NodePool. Each shows that the work waits, by what Tenon says
// about it, and that it is done once the pause is over.
func pausedScenarios() []scenario {
	web := workload{name: "web", count: 1}
	paused := func(what string, p pool) []pool {
		p.annotations = "tenon.sh/pause: " + what
		return []pool{p}
	}
	resumed := changePools(`{"metadata":{"annotations":{"tenon.sh/pause":null}}}`)
	const why = "disruption is paused for NodePool"
	return []scenario{{
		name: "paused-empty", rule: "an empty node stays while disruption is paused", pools: paused("disruption", pool{}),
		steps: []step{deploy(web), opened("0s"), mark, scale("web", 0), keeps(everyNode, "Empty", "Paused", why), told("Paused", why), untouched, resumed, serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "paused-surplus", rule: "the surplus of a static NodePool stays while disruption is paused", pools: paused("disruption", pool{spec: []string{"replicas: 2"}}),
		steps: []step{serve(2), mark, changePools(`{"spec":{"replicas":1}}`), keeps(everyNode, "Overprovisioned", "Paused", why), untouched, resumed, serve(1)},
		takes: takes{"Overprovisioned": 1},
	}, {
		name: "paused-repair", rule: "a node that is ill stays while disruption is paused", pools: paused("disruption", pool{}),
		steps: []step{deploy(web), mark, onMarked(ill("KernelReady", time.Hour)), told("NodeRepairBlocked", why), untouched, resumed, replaced(1)},
		takes: takes{"Unhealthy": 1},
	}, {
		name: "paused-interruption", rule: "a node whose machine is to be maintained stays while interruption is paused, and the message is not lost", pools: paused("interruption", pool{}),
		steps: []step{deploy(web), mark, onMarked(func(p *play, node string) {
			p.T.Helper()
			p.Sim(http.MethodPost, "/_sim/event", map[string]any{"event": "scheduled-change", "instances": []string{p.instance(node)}}, nil)
		}), told("InstanceUnhealthy", "nothing is done about it: interruption is paused"), untouched, resumed, replaced(1)},
		takes: takes{"ScheduledChange": 1},
	}, {
		name: "paused-launch", rule: "nothing is launched while provisioning is paused", pools: paused("provisioning", pool{}),
		steps: []step{launch(web), told("Paused", "provisioning is paused for NodePool"), told("FailedScheduling", "provisioning is paused for NodePool"), made(0), resumed, running, scale("web", 0), opened("0s"), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "observed", rule: "for a NodePool that is only observed Tenon says what it would do",
		steps: []step{deploy(web), opened("1h"), mark, changePools(`{"metadata":{"annotations":{"tenon.sh/observe":"true"}}}`), scale("web", 0), opened("0s"),
			told("Observed", "would carry out removals, 1: Empty"), untouched, changePools(`{"metadata":{"annotations":{"tenon.sh/observe":null}}}`), serve(0)},
		takes: takes{"Empty": 1},
	}}
}
