package disruption_test

import "time"

// expiryScenarios are about nodes that exceed their lifetime. What replaces them must live longer, or it would be replaced
// again and again: the NodePool changes once its first claim is made. That makes the nodes drift, which the budgets of these
// NodePools forbid.
func expiryScenarios() []scenario {
	web := workload{name: "web", count: 1}
	brief := func(p pool) []pool {
		p.template = append(p.template, "expireAfter: 120s")
		return []pool{p}
	}
	longer := changePools(`{"spec":{"template":{"spec":{"expireAfter":"720h"}}}}`)
	const notDrift = `{nodes: "100%"}, {nodes: "0", reasons: [Drifted]}`
	const graceful = "tenon.sh/expiration: graceful"
	return []scenario{{
		name: "expired", rule: "a node that expires goes by force: whatever the budgets say, and before anything replaces it", pools: brief(pool{budgets: `{nodes: "0"}`}),
		steps: []step{launch(web), claims(1), mark, longer, running, replaced(1), old(119 * time.Second)},
		takes: takes{"Expired": 1},
	}, {
		name: "expired-graceful", rule: "where expiration is graceful, a node that expires is replaced first", pools: brief(pool{annotations: graceful, budgets: notDrift}),
		steps: []step{launch(web), claims(1), mark, longer, running, replaced(1), preSpun, old(119 * time.Second)},
		takes: takes{"Expired": 1},
	}, {
		name: "expired-graceful-budget", rule: "where expiration is graceful, a node that expires goes within the budgets", pools: brief(pool{annotations: graceful, budgets: `{nodes: "0"}`}),
		steps: []step{launch(web), claims(1), mark, longer, running, keeps("web", "Expired", "Budget", ""),
			changePools(`{"spec":{"disruption":{"budgets":[{"nodes":"100%"},{"nodes":"0","reasons":["Drifted"]}]}}}`), replaced(1), preSpun},
		takes: takes{"Expired": 1},
	}, {
		name: "expired-graceful-force", rule: "where expiration is graceful, a node goes by force once its terminationGracePeriod has passed as well",
		pools: brief(pool{annotations: graceful, budgets: `{nodes: "0"}`, template: []string{"terminationGracePeriod: 15s"}}),
		steps: []step{launch(web), claims(1), mark, longer, running, replaced(1), old(134 * time.Second)},
		takes: takes{"Expired": 1},
	}}
}
