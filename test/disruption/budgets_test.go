package disruption_test

import (
	"fmt"
	"time"
)

// everything allows all nodes to be disrupted at once.
const everything = `{"spec":{"disruption":{"budgets":[{"nodes":"100%"}]}}}`

// daily returns a budget of no nodes that is in force every day for some minutes from a given time, in flow style.
func daily(from time.Time, minutes int) string {
	return fmt.Sprintf(`{nodes: "0", schedule: "%d %d * * *", duration: %dm}`, from.Minute(), from.Hour(), minutes)
}

// budgetScenarios are about how many nodes may be disrupted at once, and when. The budget watcher checks that budgets are
// kept; these scenarios check that they are also used.
func budgetScenarios(*laboratory) []scenario {
	three := workload{name: "web", count: 3, requests: whole}
	all := `{nodes: "100%"}`
	now := time.Now().UTC()
	far, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		panic(err)
	}
	emptied := func(p pool, further ...step) []step {
		return then([]step{deploy(three), scale("web", 0), serve(3), opened("0s")}, further...)
	}
	row := func(name, rule string, p pool, further ...step) scenario {
		return scenario{name: name, rule: rule, pools: []pool{p}, steps: emptied(p, further...), takes: takes{"Empty": 3}}
	}
	return []scenario{
		row("budget-count", "no more nodes go at once than the smallest budget says", pool{budgets: `{nodes: "1"}, ` + all}, serve(0), peak(1)),
		row("budget-percent", "a share of the nodes is rounded up", pool{budgets: `{nodes: "34%"}`}, serve(0), peak(2)),
		row("budget-zero", "with a budget of zero nothing goes, and the node says so", pool{budgets: `{nodes: "0"}`},
			keeps(everyNode, "Empty", "Budget", "budgets allow 0 of 3"), told("DisruptionBlocked", "budget"), changePools(everything), serve(0), peak(3)),
		row("budget-reason", "a budget for a reason binds that reason", pool{budgets: all + `, {nodes: "0", reasons: [Empty]}`},
			keeps(everyNode, "Empty", "Budget", ""), changePools(everything), serve(0)),
		{
			name: "budget-other-reason", rule: "a budget for a reason binds no other", pools: []pool{{budgets: all + `, {nodes: "0", reasons: [Empty, Drifted]}`}},
			steps: then(halfEmpty(2, workload{}), opened("0s"), serve(1), stays(1)),
			takes: takes{"Underutilized": 1},
		},
		row("budget-closed", "a scheduled budget binds while its window is open", pool{budgets: all + ", " + daily(now.Add(-2*time.Minute), 60)},
			keeps(everyNode, "Empty", "Budget", ""), changePools(everything), serve(0)),
		row("budget-outside", "a scheduled budget does not bind outside its window", pool{budgets: all + ", " + daily(now.Add(6*time.Hour), 60)}, serve(0)),
		{
			name: "budget-reopens", rule: "nodes go when the window of the budget that kept them has passed, with nothing else happening",
			steps: []step{deploy(three), scale("web", 0), serve(3), mark, windowNow, keeps(everyNode, "Empty", "Budget", ""), serve(0)},
			takes: takes{"Empty": 3},
		},
		row("budget-rate", "a rate lets one node after the other begin to go, each so long after the last",
			pool{annotations: "tenon.sh/disruption-rate: 1/20s", budgets: all}, serve(0), apart(20*time.Second)),
		row("budget-timezone", "a NodePool's time zone is that of its budgets' schedules",
			pool{annotations: "tenon.sh/budget-timezone: Asia/Kolkata", budgets: all + ", " + daily(now.In(far).Add(-2*time.Minute), 60)},
			keeps(everyNode, "Empty", "Budget", ""), changePools(`{"metadata":{"annotations":{"tenon.sh/budget-timezone":null}}}`), serve(0)),
	}
}

// windowNow sets consolidateAfter to zero, with a budget window that forbids disruption and ends within two and a half
// minutes.
func windowNow(p *play) {
	p.T.Helper()
	now := time.Now().UTC()
	minutes := 2
	if now.Second() > 30 {
		minutes = 3
	}
	changePools(fmt.Sprintf(`{"spec":{"disruption":{"consolidateAfter":"0s","budgets":[{"nodes":"100%%"},{"nodes":"0","schedule":"%d %d * * *","duration":"%dm"}]}}}`,
		now.Minute(), now.Hour(), minutes))(p)
}
