package v1

import (
	"strings"
	"testing"
)

func TestParseBudgets(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, text string
		count        int
		fails        string
	}{
		"None":      {reason: "no text limits nothing"},
		"Full":      {reason: "as in a NodePool", text: `[{"nodes": "10%"}, {"nodes": "0", "reasons": ["Drifted", "Expired"], "schedule": "0 9 * * mon-fri", "duration": "8h"}]`, count: 2},
		"Words":     {reason: "it is no list", text: "10%", fails: "must be a JSON list such as"},
		"Two":       {reason: "there is more than a list", text: "[] []", fails: "must be one JSON list"},
		"Field":     {reason: "a field that nobody reads", text: `[{"nodes": "1", "pool": "web"}]`, fails: "pool"},
		"Nodes":     {reason: "too many percent", text: `[{"nodes": "1"}, {"nodes": "110%"}]`, fails: `budget 1: nodes "110%"`},
		"Reason":    {reason: "no budget stops repair", text: `[{"nodes": "1", "reasons": ["Unhealthy"]}]`, fails: `reasons: "Unhealthy" must be one of`},
		"Schedule":  {reason: "half a schedule", text: `[{"nodes": "1", "schedule": "@daily"}]`, fails: "must be set together"},
		"Malformed": {reason: "no schedule", text: `[{"nodes": "1", "schedule": "daily", "duration": "1h"}]`, fails: `schedule "daily"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budgets, err := ParseBudgets(test.text)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) || len(budgets) != test.count {
				t.Errorf("%s: %v, error %v, want %q", test.reason, budgets, err, test.fails)
			}
		})
	}
}
