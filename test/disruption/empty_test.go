package disruption_test

import (
	"slices"
	"time"
)

// then appends steps to others.
func then(first []step, further ...step) []step { return slices.Concat(first, further) }

// emptyScenarios are about nodes that run nothing that would have to move.
func emptyScenarios() []scenario {
	web := workload{name: "web", count: 1}
	return []scenario{{
		name: "empty", rule: "a node on which nothing runs goes at once where consolidateAfter is zero",
		steps: []step{deploy(web), opened("0s"), scale("web", 0), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "empty-daemons", rule: "pods of DaemonSets do not make a node needed",
		steps: []step{deploy(web, workload{name: "agent", daemon: true, requests: tiny}), opened("2s"), scale("web", 0), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "empty-finished", rule: "pods that have finished do not make a node needed",
		steps: []step{
			create(workload{name: "job", count: 1, bare: true, annotations: `tenon.sh/run-for: "3s"`, spec: []string{"restartPolicy: Never"}}.manifest("SCENE")),
			claims(1), opened("1s"), begun(1), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "empty-together", rule: "empty nodes go all at once, as far as the budgets let them",
		steps: []step{deploy(workload{name: "web", count: 3, requests: whole}), scale("web", 0), serve(3), opened("0s"), serve(0), peak(3)},
		takes: takes{"Empty": 3},
	}, {
		name: "policy-when-empty", rule: "with the policy WhenEmpty, nodes stay while anything runs on them, however little", pools: []pool{{policy: "WhenEmpty"}},
		steps: then(halfEmpty(2, workload{}), opened("0s"), keeps(everyNode, "Underutilized", "Policy", "WhenEmpty"), scale("web", 0), serve(0)),
		takes: takes{"Empty": 2},
	}, {
		name: "after-never", rule: "with consolidateAfter Never, even an empty node stays",
		steps: []step{deploy(web), scale("web", 0), mark, keeps(everyNode, "Empty", "Policy|Quiet", "Never"), opened("0s"), serve(0)},
		takes: takes{"Empty": 1},
	}, {
		name: "after-renewed", rule: "consolidateAfter counts from the last time a pod came or went, not from when the node did",
		steps: []step{deploy(workload{name: "web", count: 2}), opened("60s"), aged(50 * time.Second), scale("web", 1), scale("web", 0), keeps(everyNode, "Empty", "Quiet", "1m0s"),
			serve(0), notBefore(59 * time.Second)},
		takes: takes{"Empty": 1},
	}}
}
