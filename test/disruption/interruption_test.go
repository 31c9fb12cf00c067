package disruption_test

import (
	"net/http"
	"strings"

	"github.com/tenon-sh/tenon/lab"
)

// queueName is the queue for the cloud's announcements.
const queueName = lab.DefaultCluster // the one that deploy/iam lets the worker read

// interruptionScenarios are about machines that the cloud takes back. An interruption makes the same type in the same zone
// unavailable for a while, so each scenario with spot has its own types.
func interruptionScenarios() []scenario {
	closed := func(p pool) []pool { p.budgets = `{nodes: "0"}`; return []pool{p} }
	web := workload{name: "web", count: 1}
	spot := pool{types: []string{"m6idn.large"}, capacity: []string{"spot"}}
	announced := func(event string) step {
		return onMarked(func(p *play, node string) {
			p.T.Helper()
			p.Sim(http.MethodPost, "/_sim/event", map[string]any{"event": event, "instances": []string{p.instance(node)}}, nil)
		})
	}
	row := func(name, rule, event, said, reason string) scenario {
		return scenario{name: name, rule: rule, pools: closed(pool{}), steps: []step{deploy(web), mark, announced(event), told(said, ""), replaced(1)}, takes: takes{reason: 1}}
	}
	return []scenario{
		{
			name: "spot-interrupted", rule: "a spot instance that is taken back is emptied and goes, whatever the budgets", pools: closed(spot),
			steps: []step{deploy(web), mark, onMarked(func(p *play, node string) {
				p.T.Helper()
				p.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": []string{p.instance(node)}, "notice": "2m"}, nil)
			}), told("SpotInterrupted", ""), replaced(1)},
			takes: takes{"SpotInterrupted": 1},
		},
		{
			name: "rebalance", rule: "a recommendation is told of and takes nothing away", pools: []pool{{types: []string{"m6in.large"}, capacity: []string{"spot"}}},
			steps: []step{deploy(web), mark, announced("rebalance-recommendation"), told("SpotRebalanceRecommendation", ""), untouched, scale("web", 0), opened("0s"), serve(0)},
			takes: takes{"Empty": 1},
		},
		{
			name: "spot-interrupted-stays", rule: "a pod that is not to be disrupted is lost with a spot instance that is taken back: it keeps its node until then, and another one serves before, which waits for it",
			pools: []pool{{types: []string{"m6idn.xlarge"}, capacity: []string{"spot"}}},
			steps: []step{deploy(workload{name: "web", count: 1, annotations: `karpenter.sh/do-not-disrupt: "true"`}), opened("30s"), announced("spot-interruption"), told("SpotInterrupted", ""), served(2), stillOn("web"),
				onMarked(func(p *play, node string) {
					p.T.Helper()
					p.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": []string{p.instance(node)}, "notice": "1s"}, nil)
				}), replaced(1), made(2)},
			takes: takes{"SpotInterrupted": 1},
		},
		row("stopping", "an instance that somebody stops is emptied and goes", "stopping", "InstanceStopping", "InstanceStopping"),
		row("terminated", "an instance that somebody terminates goes", "shutting-down", "InstanceTerminating", "InstanceTerminated"),
		row("scheduled", "an instance that is to be maintained is emptied and goes", "scheduled-change", "InstanceUnhealthy", "ScheduledChange"),
		{
			name: "interrupted-while-replaced", rule: "a node that is interrupted while it is being replaced is replaced once",
			pools: []pool{{types: []string{"m6id.xlarge"}, capacity: []string{"spot"}, template: starting}},
			steps: []step{launch(web), release(1), serve(1), mark, changePools(relabelled), begun(1), claims(2), onMarked(func(p *play, node string) {
				p.T.Helper()
				p.Sim(http.MethodPost, "/_sim/interrupt", map[string]any{"instances": []string{p.instance(node)}, "notice": "2m"}, nil)
			}), told("SpotInterrupted", ""), releaseOthers, replaced(1), made(2)},
			takes: takes{"SpotInterrupted": 1},
		},
	}
}

// instance returns the instance id of a node.
func (p *play) instance(node string) string {
	for _, n := range p.nodes() {
		if n.Name == node {
			return n.Spec.ProviderID[strings.LastIndexByte(n.Spec.ProviderID, '/')+1:]
		}
	}
	p.T.Fatalf("there is no node %s", node)
	return ""
}
