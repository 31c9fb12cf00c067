package v1

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ParseBudgets reads the budgets of the whole cluster: a JSON list like a NodePool's spec.disruption.budgets, whose
// schedules are in UTC; an empty text is an empty list. An error names the budget and the field.
func ParseBudgets(text string) ([]Budget, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var budgets []Budget
	if err := decoder.Decode(&budgets); err != nil {
		return nil, fmt.Errorf(`must be a JSON list such as [{"nodes": "10%%", "reasons": ["Drifted"]}]: %w`, err)
	}
	if decoder.More() {
		return nil, errors.New("must be one JSON list")
	}
	known := []DisruptionReason{DisruptionReasonEmpty, DisruptionReasonDrifted, DisruptionReasonUnderutilized, WindowExpired}
	for i := range budgets {
		budget := &budgets[i]
		_, _, err := budget.parseNodes()
		for _, reason := range budget.Reasons {
			if err == nil && !slices.Contains(known, reason) {
				err = fmt.Errorf("reasons: %q must be one of %s", reason, joined(known))
			}
		}
		switch {
		case err != nil:
		case (budget.Schedule == nil) != (budget.Duration == nil):
			err = errors.New("schedule and duration must be set together")
		case budget.Schedule != nil:
			_, err = parseSchedule(*budget.Schedule)
		}
		if err != nil {
			return nil, fmt.Errorf("budget %d: %w", i, err)
		}
	}
	return budgets, nil
}
