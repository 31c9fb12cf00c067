package disruption_test

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// nodesVariable says how many nodes drift at once. Without it a hundred do; make drift-many has three hundred.
const nodesVariable = "TENON_DISRUPTION_NODES"

// manyNodes is the drift of many nodes at once.
func manyNodes(t *testing.T) scenario {
	nodes := 100
	if asked := os.Getenv(nodesVariable); asked != "" {
		var err error
		if nodes, err = strconv.Atoi(asked); err != nil || nodes < 1 {
			t.Fatalf("%s is %q, and must be a number of nodes", nodesVariable, asked)
		}
	}
	return scenario{
		name: "many-nodes", rule: "many nodes drift away within their budgets, and no pod waits for longer than its node took to boot",
		patience: 10 * time.Minute,
		pools:    []pool{{budgets: `{nodes: "34%"}`}},
		steps: []step{
			deploy(workload{name: "web", count: nodes, requests: whole}), serve(nodes), mark, noteTime, changePools(relabelled),
			replaced(nodes), have("version", "two"), waitedLessThanBoot, report, made(2 * nodes)},
		takes: takes{"Drifted": nodes},
	}
}

func noteTime(p *play) { p.at = time.Now() }

// waitedLessThanBoot checks that no pod which had to move was without a node for longer than its new node took from its
// claim until it served.
func waitedLessThanBoot(p *play) {
	p.T.Helper()
	boot := map[string]time.Duration{}
	for _, l := range p.view.of(p.name) {
		boot[l.node] = l.served.Sub(l.created)
	}
	hosts := map[string]string{}
	for _, pod := range p.pods() {
		hosts[pod.Name] = pod.Spec.NodeName
	}
	var longest time.Duration
	for _, w := range p.view.waited(p.name) {
		host, there := hosts[w.pod]
		if !there || w.created.Before(p.at) {
			continue
		}
		waited := w.bound.Sub(w.created)
		if longest = max(longest, waited); waited > boot[host] {
			p.T.Errorf("pod %s was without a node for %s, longer than the %s its node took to boot", w.pod, waited, boot[host])
		}
	}
	p.T.Logf("the longest that a pod was without a node: %s", longest)
}

// report logs how long it all took, and how many nodes were disrupted at once at most.
func report(p *play) {
	p.T.Helper()
	p.T.Logf("%s after the change, with %d nodes disrupted at once at most", time.Since(p.at).Round(time.Second), p.ledger.Peak(p.pools[0].name(p.name)))
}
