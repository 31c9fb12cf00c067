package disruption_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tenon-sh/tenon/workflows"
)

// approvalScenarios are about decisions that a person has to approve.
func approvalScenarios() []scenario {
	web := workload{name: "web", count: 1}
	needs := func(what string) []pool { return []pool{{annotations: "tenon.sh/approval: " + what}} }
	label := `{"spec":{"template":{"metadata":{"labels":{"version":"two"}}}}}`
	unlabel := `{"spec":{"template":{"metadata":{"labels":{"version":null}}}}}`
	const waits = "it waits for approval since"
	return []scenario{{
		name: "approve-drift", rule: "a drifted node waits until somebody approves, and is replaced then", pools: needs("drift"),
		steps: []step{deploy(web), mark, changePools(label), drifted("NodePoolDrifted"), keeps("web", "Drifted", "Approval", waits), told("ApprovalRequired", "waits for approval until"), untouched,
			decides("approve", "approved by"), told("ApprovalGranted", "approved by"), replaced(1), have("version", "two"), preSpun, recordedApproval("approved")},
		takes: takes{"Drifted": 1},
	}, {
		name: "reject-empty", rule: "an empty node stays when somebody rejects its removal, until nobody need approve it", pools: needs("all"),
		steps: []step{deploy(web), opened("0s"), mark, scale("web", 0), keeps(everyNode, "Empty", "Approval", waits), decides("reject", "rejected by"),
			keeps(everyNode, "Empty", "Approval", "rejected it until"), told("ApprovalRejected", "rejected by"), untouched,
			changePools(`{"metadata":{"annotations":{"tenon.sh/approval":null}}}`), serve(0), recordedApproval("rejected")},
		takes: takes{"Empty": 1},
	}, {
		name: "approve-outdated", rule: "nobody need approve what no longer holds", pools: needs("drift"),
		steps: []step{deploy(web), mark, changePools(label), keeps("web", "Drifted", "Approval", waits), changePools(unlabel), told("ApprovalOutdated", "no longer has the drift"),
			keeps("web", "Drifted", "None", "it has not drifted"), untouched, recordedApproval("outdated")},
	}}
}

// approvalsWaiting returns the ids of what waits for approval in the scenario's first NodePool.
func (p *play) approvalsWaiting() []string {
	p.T.Helper()
	out, err := p.Tenon("approvals", "--pool", p.pools[0].name(p.name), "-o", "json")
	var listed []struct{ ID, State, Reason string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &listed)
	}
	if err != nil {
		p.T.Fatalf("tenon approvals: %v\n%s", err, out)
	}
	var ids []string
	for _, l := range listed {
		ids = append(ids, l.ID)
	}
	return ids
}

// decides approves or rejects what waits for approval about every marked node, by the node's name.
func decides(command, says string) step {
	return func(p *play) {
		p.T.Helper()
		if ids := p.approvalsWaiting(); len(ids) != len(p.markedNodes()) {
			p.T.Fatalf("%v wait for approval, want one for each of %v", ids, p.markedNodes())
		}
		for _, node := range p.markedNodes() {
			if out, err := p.Tenon(command, node, "--reason", "a test"); err != nil || !strings.Contains(out, says) || !strings.Contains(out, "a test") {
				p.T.Fatalf("tenon %s %s: %v\n%s", command, node, err, out)
			}
		}
	}
}

// recordedApproval waits until the scenario's last Approval has ended, and keeps its history for the replay tests if
// world.RecordEnv is set.
func recordedApproval(what string) step {
	return func(p *play) {
		p.T.Helper()
		query := fmt.Sprintf("WorkflowType = %q AND NodePool = %q AND ExecutionStatus = 'Completed'", workflows.ApprovalType, p.pools[0].name(p.name))
		p.Await("the list of workflows to know that the Approval has ended", p.within(), func() (bool, string) { return len(p.Executions(query)) > 0, "none has" })
		runs := p.Runs(query)
		p.Record(runs[len(runs)-1], what)
	}
}
