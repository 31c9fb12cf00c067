package disruption_test

import (
	"strings"

	"github.com/tenon-sh/tenon/workflows"
)

// orderedScenarios are about nodes that people order to be replaced. What limits the decisions of Tenon does not limit them.
func orderedScenarios() []scenario {
	web := workload{name: "web", count: 1}
	order := onMarked(func(p *play, node string) {
		p.T.Helper()
		if out, err := p.Tenon("replace", node, "--note", "bad disk"); err != nil || !strings.Contains(out, "the order goes on all the same") {
			p.T.Fatalf("tenon replace: %v\n%s", err, out)
		}
	})
	return []scenario{{
		name: "replace-ordered", rule: "a node that somebody orders to be replaced goes when what was launched for it serves, whatever the budgets", pools: []pool{{budgets: `{nodes: "0"}`}},
		steps: []step{deploy(web), mark, order, replaced(1), made(2), preSpun, told("DisruptionTerminating", "bad disk"),
			recordedOf(workflows.ReplacementOrderType, "of-one"), recorded("ordered")},
		takes: takes{"ManualReplacement": 1},
	}, {
		name: "expire-ordered", rule: "nodes that somebody marks as expired are replaced within the NodePool's budgets", pools: []pool{{budgets: `{nodes: "0"}`}},
		steps: []step{deploy(web), mark, onMarked(func(p *play, node string) {
			p.T.Helper()
			if out, err := p.Tenon("expire", node, "--reason", "kernel"); err != nil || !strings.Contains(out, "Marked") {
				p.T.Fatalf("tenon expire: %v\n%s", err, out)
			}
		}), keeps(everyNode, "Expired", "Budget", "allow 0 of 1"), changePools(everything), replaced(1), made(2), preSpun},
		takes: takes{"Expired": 1},
	}}
}
