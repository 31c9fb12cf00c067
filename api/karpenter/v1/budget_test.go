package v1_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// monday is a Monday at noon, UTC.
var monday = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

func TestAllowedDisruptions(t *testing.T) {
	t.Parallel()
	scheduled := func(nodes, schedule string, duration time.Duration) v1.Budget {
		return v1.Budget{Nodes: nodes, Schedule: ptr.To(schedule), Duration: &metav1.Duration{Duration: duration}}
	}
	for _, tc := range []struct {
		reason  string
		budgets []v1.Budget
		nodes   int
		now     time.Time
		want    int
		wantErr string
	}{
		{reason: "no budget bounds nothing", nodes: 7, want: v1.Unbounded},
		{reason: "a number is taken as it is", budgets: []v1.Budget{{Nodes: "3"}}, nodes: 100, want: 3},
		{reason: "a number may be more than there is", budgets: []v1.Budget{{Nodes: "30"}}, nodes: 2, want: 30},
		{reason: "percentages are rounded up", budgets: []v1.Budget{{Nodes: "10%"}}, nodes: 1, want: 1},
		{reason: "percentages of whole numbers are exact", budgets: []v1.Budget{{Nodes: "10%"}}, nodes: 20, want: 2},
		{reason: "nothing of nothing", budgets: []v1.Budget{{Nodes: "50%"}}, nodes: 0, want: 0},
		{reason: "zero per cent forbids", budgets: []v1.Budget{{Nodes: "0%"}}, nodes: 50, want: 0},
		{reason: "the smallest decides", budgets: []v1.Budget{{Nodes: "50%"}, {Nodes: "4"}, {Nodes: "90%"}}, nodes: 10, want: 4},
		{
			reason:  "a budget for another reason does not apply",
			budgets: []v1.Budget{{Nodes: "0", Reasons: []v1.DisruptionReason{v1.DisruptionReasonDrifted}}, {Nodes: "5"}},
			nodes:   10, want: 5,
		},
		{
			reason:  "a budget for this reason applies",
			budgets: []v1.Budget{{Nodes: "1", Reasons: []v1.DisruptionReason{v1.DisruptionReasonEmpty}}, {Nodes: "5"}},
			nodes:   10, want: 1,
		},
		{reason: "within the schedule", budgets: []v1.Budget{scheduled("0", "0 9 * * mon-fri", 8*time.Hour)}, nodes: 10, want: 0},
		{reason: "after the schedule", budgets: []v1.Budget{scheduled("0", "0 9 * * mon-fri", time.Hour)}, nodes: 10, want: v1.Unbounded},
		{reason: "on another day", budgets: []v1.Budget{scheduled("0", "0 9 * * tue", 8*time.Hour)}, nodes: 10, want: v1.Unbounded},
		{reason: "at the first moment", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, want: 0},
		{reason: "just before the first moment", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, now: monday.Add(-time.Second), want: v1.Unbounded},
		{reason: "schedules are UTC wherever the worker is", budgets: []v1.Budget{scheduled("0", "0 12 * * *", time.Minute)}, nodes: 10, now: monday.In(time.FixedZone("east", 7*3600)), want: 0},
		{reason: "words are schedules", budgets: []v1.Budget{scheduled("0", "@daily", 13*time.Hour)}, nodes: 10, want: 0},
		{reason: "what cannot be read forbids", budgets: []v1.Budget{scheduled("5", "@never x", time.Hour), {Nodes: "5"}}, nodes: 10, want: 0, wantErr: "spec.disruption.budgets[0]"},
		{reason: "a bad number forbids", budgets: []v1.Budget{{Nodes: "ten"}}, nodes: 10, want: 0, wantErr: `nodes "ten"`},
		{reason: "half a schedule forbids", budgets: []v1.Budget{{Nodes: "9", Schedule: ptr.To("@daily")}}, nodes: 10, want: 0, wantErr: "together"},
	} {
		now := tc.now
		if now.IsZero() {
			now = monday
		}
		pool := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: tc.budgets}}}
		got, err := pool.AllowedDisruptions(now, tc.nodes, v1.DisruptionReasonEmpty)
		if got != tc.want {
			t.Errorf("%s: allowed %d, want %d", tc.reason, got, tc.want)
		}
		if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
			t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.wantErr)
		}
	}
}

// In Zurich clocks go from 2:00 to 3:00 on the 29th of March 2026, and from 3:00 back to 2:00 on the 25th of October.
func TestBudgetTimezone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason, zone, schedule string
		duration               time.Duration
		now                    string
		forbids                bool
		wantErr                string
	}{
		{reason: "UTC without a zone", schedule: "0 9 * * *", duration: time.Hour, now: "2026-01-10T09:30:00Z", forbids: true},
		{reason: "winter time", zone: "Europe/Zurich", schedule: "0 9 * * *", duration: time.Hour, now: "2026-01-10T08:30:00Z", forbids: true},
		{reason: "not by UTC", zone: "Europe/Zurich", schedule: "0 9 * * *", duration: time.Hour, now: "2026-01-10T09:30:00Z"},
		{reason: "summer time", zone: "Europe/Zurich", schedule: "0 9 * * *", duration: time.Hour, now: "2026-07-10T07:30:00Z", forbids: true},
		{reason: "a day that is another one in UTC", zone: "America/New_York", schedule: "0 20 * * fri", duration: 4 * time.Hour, now: "2026-01-10T01:30:00Z", forbids: true},
		{reason: "a moment that is left out is the one at which the clocks are set", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 2 * time.Hour, now: "2026-03-29T01:00:00Z", forbids: true},
		{reason: "not before the clocks are set", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 2 * time.Hour, now: "2026-03-29T00:59:59Z"},
		{reason: "its duration is time that passes", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 2 * time.Hour, now: "2026-03-29T02:59:59Z", forbids: true},
		{reason: "and ends", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 2 * time.Hour, now: "2026-03-29T03:00:00Z"},
		{reason: "the first half past two", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 30 * time.Minute, now: "2026-10-25T00:45:00Z", forbids: true},
		{reason: "the second half past two", zone: "Europe/Zurich", schedule: "30 2 * * *", duration: 30 * time.Minute, now: "2026-10-25T01:45:00Z", forbids: true},
		{reason: "over a night in which clocks change", zone: "Europe/Zurich", schedule: "0 22 * * sat", duration: 8 * time.Hour, now: "2026-03-29T04:59:00Z", forbids: true},
		{reason: "a zone nobody knows forbids", zone: "Europe/Zuerich", schedule: "0 9 * * *", duration: time.Hour, now: "2026-01-10T12:00:00Z", forbids: true, wantErr: "Europe/Zuerich"},
		{reason: "where the worker is does not matter", zone: "Local", schedule: "0 9 * * *", duration: time.Hour, now: "2026-01-10T12:00:00Z", forbids: true, wantErr: "Local"},
		{reason: "a schedule does not bring a zone of its own", schedule: "TZ=Europe/Zurich 0 9 * * *", duration: time.Hour, now: "2026-01-10T12:00:00Z", forbids: true, wantErr: "TZ="},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		pool := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: []v1.Budget{
			{Nodes: "0", Schedule: &tc.schedule, Duration: &metav1.Duration{Duration: tc.duration}}}}}}
		pool.Annotations = map[string]string{v1.BudgetTimezoneAnnotationKey: tc.zone}
		got, err := pool.AllowedDisruptions(now, 10, v1.DisruptionReasonEmpty)
		if want := map[bool]int{true: 0, false: v1.Unbounded}[tc.forbids]; got != want {
			t.Errorf("%s: allowed %d, want %d", tc.reason, got, want)
		}
		if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
			t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.wantErr)
		}
	}
}

// A time zone that cannot be read is nobody's problem while no schedule is to be read in it.
func TestBudgetTimezoneWithoutSchedule(t *testing.T) {
	t.Parallel()
	pool := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: []v1.Budget{{Nodes: "2"}}}}}
	pool.Annotations = map[string]string{v1.BudgetTimezoneAnnotationKey: "nowhere"}
	if got, err := pool.AllowedDisruptions(monday, 10, v1.DisruptionReasonEmpty); got != 2 || err != nil {
		t.Errorf("allowed %d, %v", got, err)
	}
}

func TestNextOpening(t *testing.T) {
	t.Parallel()
	scheduled := func(nodes, schedule string, duration time.Duration, reasons ...v1.DisruptionReason) v1.Budget {
		return v1.Budget{Nodes: nodes, Schedule: ptr.To(schedule), Duration: &metav1.Duration{Duration: duration}, Reasons: reasons}
	}
	for _, tc := range []struct {
		reason  string
		zone    string
		budgets []v1.Budget
		// want is counted from monday; negative means never.
		want time.Duration
	}{
		{reason: "nothing is scheduled", budgets: []v1.Budget{{Nodes: "0"}}, want: -1},
		{reason: "the end of the window", budgets: []v1.Budget{scheduled("0", "0 9 * * *", 8*time.Hour)}, want: 5 * time.Hour},
		{reason: "days away", budgets: []v1.Budget{scheduled("0", "0 0 * * mon", 96*time.Hour)}, want: 84 * time.Hour},
		{reason: "windows that overlap end together", budgets: []v1.Budget{scheduled("0", "0 9 * * *", 8*time.Hour), scheduled("0", "0 15 * * *", 4*time.Hour)}, want: 7 * time.Hour},
		{reason: "a window that takes nothing away", budgets: []v1.Budget{{Nodes: "1"}, scheduled("5", "0 9 * * *", 8*time.Hour)}, want: -1},
		{reason: "one for another reason", budgets: []v1.Budget{{Nodes: "0"}, scheduled("0", "0 9 * * *", 8*time.Hour, v1.DisruptionReasonDrifted)}, want: -1},
		{reason: "in another zone", zone: "Asia/Tokyo", budgets: []v1.Budget{scheduled("0", "0 20 * * *", 2*time.Hour)}, want: time.Hour},
		{reason: "a window that always follows upon itself is asked for again", budgets: []v1.Budget{scheduled("0", "* * * * *", time.Hour)}, want: time.Hour + time.Minute},
	} {
		pool := &v1.NodePool{Spec: v1.NodePoolSpec{Disruption: v1.Disruption{Budgets: tc.budgets}}}
		pool.Annotations = map[string]string{v1.BudgetTimezoneAnnotationKey: tc.zone}
		got := pool.NextOpening(monday, 10, v1.DisruptionReasonEmpty)
		if tc.want < 0 && !got.IsZero() || tc.want >= 0 && !got.Equal(monday.Add(tc.want)) {
			t.Errorf("%s: %v, want %v", tc.reason, got, monday.Add(tc.want))
		}
	}
}
