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
// caller to subtract. A budget that cannot be read allows nothing, and is named in the error; so is a rate, and a time zone that
// nobody knows, where there are schedules to be read in it.
func (in *NodePool) AllowedDisruptions(now time.Time, numNodes int, reason DisruptionReason) (int, error) {
	zone, zoneErr := in.BudgetTimezone()
	allowed := Unbounded
	var errs []error
	for i := range in.Spec.Disruption.Budgets {
		budget := &in.Spec.Disruption.Budgets[i]
		if !budget.appliesTo(reason) {
			continue
		}
		if zoneErr != nil && budget.Schedule != nil {
			allowed = 0
			errs = append(errs, zoneErr)
			zoneErr = nil
			continue
		}
		n, err := budget.AllowedDisruptions(now, numNodes, zone)
		if err != nil {
			errs = append(errs, fmt.Errorf("spec.disruption.budgets[%d]: %w", i, err))
		}
		allowed = min(allowed, n)
	}
	if _, err := in.DisruptionRate(); err != nil {
		allowed, errs = 0, append(errs, err)
	}
	return allowed, errors.Join(errs...)
}

// BudgetTimezone returns the time zone that the schedules of the pool's budgets are in, by its annotation
// BudgetTimezoneAnnotationKey; UTC where it has none. An error says that nobody knows the zone, and comes with UTC.
func (in *NodePool) BudgetTimezone() (*time.Location, error) {
	name := in.Annotations[BudgetTimezoneAnnotationKey]
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == time.Local.String() {
		return time.UTC, fmt.Errorf("annotation %s: %q is not a time zone of the IANA database such as Europe/Zurich", BudgetTimezoneAnnotationKey, name)
	}
	return zone, nil
}

// endsTried bounds how many ends of one scheduled budget's times are looked at.
const endsTried = 64

// NextOpening returns the next moment after now at which the pool's budgets allow more disruptions for a reason than
// they do now, because the time of a scheduled budget is over; zero if there is none. Where times follow upon each other
// without end in sight it returns a moment at which to ask again.
func (in *NodePool) NextOpening(now time.Time, numNodes int, reason DisruptionReason) time.Time {
	zone, err := in.BudgetTimezone()
	if err != nil {
		return time.Time{}
	}
	var ends []time.Time
	always := *in
	always.Spec.Disruption.Budgets = nil
	for i := range in.Spec.Disruption.Budgets {
		switch budget := &in.Spec.Disruption.Budgets[i]; {
		case !budget.appliesTo(reason):
		case budget.Schedule == nil:
			always.Spec.Disruption.Budgets = append(always.Spec.Disruption.Budgets, *budget)
		default:
			ends = append(ends, budget.ends(now, zone)...)
		}
	}
	allowed, err := in.AllowedDisruptions(now, numNodes, reason)
	most, _ := always.AllowedDisruptions(now, numNodes, reason)
	if err != nil || most <= allowed || len(ends) == 0 {
		return time.Time{}
	}
	slices.SortFunc(ends, time.Time.Compare)
	for _, end := range ends {
		if more, err := in.AllowedDisruptions(end, numNodes, reason); err == nil && more > allowed {
			return end
		}
	}
	return ends[len(ends)-1]
}

func (in *Budget) appliesTo(reason DisruptionReason) bool {
	return len(in.Reasons) == 0 || slices.Contains(in.Reasons, reason)
}

// AllowedDisruptions returns how many of numNodes nodes the budget allows to be under disruption at a moment, with its
// schedule in a time zone: Unbounded while the schedule is not active, and 0 together with an error if the budget cannot
// be read. Percentages are rounded up.
func (in *Budget) AllowedDisruptions(now time.Time, numNodes int, zone *time.Location) (int, error) {
	active, err := in.IsActive(now, zone)
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
// moment of the schedule, which is in a time zone. The duration is time that passes, whatever clocks on the wall do. A
// moment of the schedule that clocks leave out when they are set forward is the moment at which they are; one that they
// show twice when they are set back counts twice.
func (in *Budget) IsActive(now time.Time, zone *time.Location) (bool, error) {
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
	return !nextIn(schedule, now.Add(-in.Duration.Duration), zone).After(now), nil
}

// ends are the first moments after now at which a time of the budget ends, in order: those of the times that have begun,
// and of the next one.
func (in *Budget) ends(now time.Time, zone *time.Location) []time.Time {
	schedule, err := parseSchedule(*in.Schedule)
	if err != nil || in.Duration == nil {
		return nil
	}
	var ends []time.Time
	for from := now.Add(-in.Duration.Duration); len(ends) < endsTried; {
		from = nextIn(schedule, from, zone)
		if from.IsZero() {
			break
		}
		ends = append(ends, from.Add(in.Duration.Duration))
		if from.After(now) {
			break
		}
	}
	return ends
}

// nextIn is the first moment of a schedule after another, by the clocks of a time zone.
func nextIn(schedule cron.Schedule, after time.Time, zone *time.Location) time.Time {
	next := schedule.Next(after.In(zone))
	// Between the two the clocks may have been set forward over a moment of the schedule, which Next does not see.
	for at := after.In(zone); ; {
		_, change := at.ZoneBounds()
		if change.IsZero() || !change.Before(next) {
			return next
		}
		before, later := wall(change.Add(-1)), wall(change)
		if skipped := schedule.Next(before); later.After(before.Add(time.Second)) && !skipped.IsZero() && skipped.Before(later) {
			return change
		}
		at = change
	}
}

// wall is what clocks show at a moment, as if it were UTC.
func wall(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
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

// parseSchedule reads a cron expression of five fields, or one of the @-words. Whoever asks it says in which time zone.
func parseSchedule(text string) (cron.Schedule, error) {
	if strings.Contains(text, "TZ=") {
		return nil, fmt.Errorf("schedule %q: the time zone is for annotation %s to say", text, BudgetTimezoneAnnotationKey)
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, fmt.Errorf("schedule %q is not a cron expression of five fields such as \"0 9 * * mon-fri\": %w", text, err)
	}
	return schedule, nil
}
