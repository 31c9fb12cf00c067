package v1

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Unbounded is what a budget that does not apply allows.
const Unbounded = math.MaxInt32

// AllowedDisruptions returns how many of a pool's numNodes nodes may be under disruption for a reason at a moment: the
// smallest answer of the budgets that apply, or Unbounded if none does. What is under disruption already is for the
// caller to subtract. A budget that cannot be read allows nothing, and is named in the error.
func (in *NodePool) AllowedDisruptions(now time.Time, numNodes int, reason DisruptionReason) (int, error) {
	allowed := Unbounded
	var errs []error
	for i := range in.Spec.Disruption.Budgets {
		budget := &in.Spec.Disruption.Budgets[i]
		if len(budget.Reasons) > 0 && !slices.Contains(budget.Reasons, reason) {
			continue
		}
		n, err := budget.AllowedDisruptions(now, numNodes)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.disruption.budgets[%d]: %w", i, err))
		}
		allowed = min(allowed, n)
	}
	return allowed, errors.Join(errs...)
}

// AllowedDisruptions returns how many of numNodes nodes the budget allows to be under disruption at a moment:
// Unbounded while its schedule is not active, and 0 together with an error if it cannot be read. Percentages are
// rounded up.
func (in *Budget) AllowedDisruptions(now time.Time, numNodes int) (int, error) {
	active, err := in.IsActive(now)
	if err != nil {
		return 0, err
	}
	if !active {
		return Unbounded, nil
	}
	number, percent, err := in.parseNodes()
	if err != nil {
		return 0, err
	}
	if percent {
		return (number*numNodes + 99) / 100, nil
	}
	return number, nil
}

// IsActive tells whether the budget applies at a moment: always without a schedule, else for its duration from each
// moment of the schedule, both ends included. Schedules are in UTC.
func (in *Budget) IsActive(now time.Time) (bool, error) {
	if in.Schedule == nil && in.Duration == nil {
		return true, nil
	}
	if in.Schedule == nil || in.Duration == nil {
		return false, errors.New("schedule and duration must be set together")
	}
	schedule, err := parseSchedule(*in.Schedule)
	if err != nil {
		return false, err
	}
	now = now.UTC()
	return !schedule.Next(now.Add(-in.Duration.Duration)).After(now), nil
}

// parseNodes reads the field nodes: a number, or a percentage.
func (in *Budget) parseNodes() (number int, percent bool, err error) {
	digits, percent := strings.CutSuffix(in.Nodes, "%")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 0 || percent && n > 100 {
		return 0, false, fmt.Errorf("nodes %q is neither a number such as 5 nor a percentage from 0%% to 100%%", in.Nodes)
	}
	return int(n), percent, nil
}

// parseSchedule reads a cron expression of five fields, or one of the @-words, in UTC.
func parseSchedule(text string) (cron.Schedule, error) {
	schedule, err := cron.ParseStandard("TZ=UTC " + text)
	if err != nil {
		return nil, fmt.Errorf("schedule %q is not a cron expression of five fields such as \"0 9 * * mon-fri\": %w", text, err)
	}
	return schedule, nil
}
