package disruption_test

import "time"

// windowScenarios are about maintenance windows. Each shows that what waits for a window waits, by what Tenon says about it,
// and that it is done once one is open.
func windowScenarios() []scenario {
	web := workload{name: "web", count: 1}
	// The window opens once in four years, for a minute.
	closed := func(p pool) []pool {
		p.annotations = `tenon.sh/maintenance-windows: '[{"schedule": "0 0 29 2 *", "duration": "1m"}]'`
		return []pool{p}
	}
	opens := changePools(`{"metadata":{"annotations":{"tenon.sh/maintenance-windows":"[{\"schedule\": \"* * * * *\", \"duration\": \"1h\"}]"}}}`)
	const why = "outside the maintenance windows of NodePool"
	return []scenario{{
		name: "window-empty", rule: "an empty node stays while no maintenance window is open", pools: closed(pool{}),
		steps: []step{deploy(web), opened("0s"), mark, scale("web", 0), keeps(everyNode, "Empty", "Window", why), told("MaintenanceWindowClosed", "closed for Empty"), untouched,
			opens, serve(0), told("MaintenanceWindowOpened", "open for Empty")},
		takes: takes{"Empty": 1},
	}, {
		name: "window-expired", rule: "a node that expires goes by force only while a maintenance window is open",
		pools: closed(pool{budgets: `{nodes: "0"}`, template: []string{"expireAfter: 60s"}}),
		steps: []step{launch(web), claims(1), mark, changePools(`{"spec":{"template":{"spec":{"expireAfter":"720h"}}}}`), running, keeps(everyNode, "Expired", "Window", why), untouched,
			opens, replaced(1), old(59 * time.Second)},
		takes: takes{"Expired": 1},
	}}
}
