package disruption_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/workflows"
)

// commandScenarios are about the answers of the tenon command.
func commandScenarios() []scenario {
	return []scenario{{
		name: "why-node", rule: "tenon why node tells people and programs what keeps a node, and what else once that is gone", pools: []pool{{budgets: `{nodes: "0"}`}},
		steps: then(halfEmpty(2, workload{}), create(pdb("none", "web", "maxUnavailable: 0")), opened("0s"),
			says("Stays", "Underutilized", "PDB", `PodDisruptionBudget why-node/none`), relax("none"),
			says("Stays", "Underutilized", "Budget", `budgets allow 0 of 2`), changePools(everything), stays(1)),
		takes: takes{"Underutilized": 1},
	}}
}

// says checks what tenon why node reports about every marked node for a reason, and that its table and its JSON agree.
func says(state, reason, cause, text string) step {
	return func(p *play) {
		p.T.Helper()
		keeps(everyNode, reason, cause, text)(p)
		for _, node := range p.markedNodes() {
			// Other scenarios run at the same time: while their pods wait for a plan, that keeps every node.
			p.Await("tenon why node "+node, p.within(), func() (bool, string) { return p.tells(node, state, reason, cause, text) })
		}
	}
}

// tells runs tenon why node for a node, once with JSON output and once with the table.
func (p *play) tells(node, state, reason, cause, text string) (ok bool, said string) {
	out, err := p.Tenon("why", "node", node, "-o", "json")
	var story struct {
		Name, State, NodePool string
		Verdicts              []workflows.NodeVerdict
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &story)
	}
	if err != nil {
		return false, fmt.Sprintf("%v:\n%s", err, out)
	}
	at := slices.IndexFunc(story.Verdicts, func(v workflows.NodeVerdict) bool { return v.Reason == reason })
	if at < 0 || story.Name != node || story.State != state || story.NodePool != p.pools[0].name(p.name) || story.Verdicts[at].Cause != cause || !strings.Contains(story.Verdicts[at].Message, text) {
		return false, "for programs:\n" + out
	}
	people, err := p.Tenon("why", "node", node)
	row := regexp.MustCompile(`(?m)^` + reason + ` +` + cause + ` +` + regexp.QuoteMeta(story.Verdicts[at].Message))
	return err == nil && strings.HasPrefix(people, node+" ") && row.MatchString(people), fmt.Sprintf("for people (%v):\n%s", err, people)
}
