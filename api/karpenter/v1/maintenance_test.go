package v1

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseMaintenanceWindows(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ reason, text, fails string }{
		"None":     {reason: "no text limits nothing", text: " "},
		"Empty":    {reason: "an empty list limits nothing", text: "[]"},
		"Full":     {reason: "every field", text: `[{"schedule": "0 22 * * sat", "duration": "4h", "timeZone": "Europe/Zurich", "reasons": ["Drifted", "Interrupted"]}]`},
		"Words":    {reason: "it is no list", text: "saturday", fails: "must be a JSON list such as"},
		"Two":      {reason: "there is something behind the list", text: "[] []", fails: "more than one list"},
		"Field":    {reason: "a field that nobody reads", text: `[{"schedule": "@daily", "duration": "4h", "timezone2": "x"}]`, fails: "timezone2"},
		"Cron":     {reason: "no schedule", text: `[{"duration": "4h"}]`, fails: "window 0: schedule"},
		"Zone":     {reason: "a zone in the schedule", text: `[{"schedule": "TZ=UTC 0 1 * * *", "duration": "4h"}]`, fails: "is for timeZone to say"},
		"NoZone":   {reason: "a zone that nobody knows", text: `[{"schedule": "@daily", "duration": "4h", "timeZone": "Europe/Zuerich"}]`, fails: `timeZone "Europe/Zuerich" must be`},
		"Local":    {reason: "a zone that each machine reads in its way", text: `[{"schedule": "@daily", "duration": "4h", "timeZone": "Local"}]`, fails: `timeZone "Local" must be`},
		"Duration": {reason: "no duration", text: `[{"schedule": "@daily"}]`, fails: "duration 0s must be at least 1m"},
		"Reason":   {reason: "a reason that nobody knows", text: `[{"schedule": "@daily", "duration": "4h"}, {"schedule": "@daily", "duration": "4h", "reasons": ["Drift"]}]`, fails: `window 1: reasons: "Drift" must be one of Empty, Drifted`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			windows, err := ParseMaintenanceWindows(test.text)
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Fatalf("%s: error %v, want %q", test.reason, err, test.fails)
			}
			if err != nil && windows.Stop(DisruptionReasonDrifted, nil, time.Now()) == nil {
				t.Errorf("%s: what cannot be read stops nothing", test.reason)
			}
		})
	}
}

// TestMaintenanceWindows asks whether windows are open. The clocks of Zurich are set forward on 2026-03-29 at 2:00, which is
// 1:00 UTC, and back on 2026-10-25 at 3:00, which is 1:00 UTC.
func TestMaintenanceWindows(t *testing.T) {
	t.Parallel()
	const saturday = `[{"schedule": "0 22 * * sat", "duration": "4h"}]`
	const zurich = `[{"schedule": "0 22 * * sat", "duration": "4h", "timeZone": "Europe/Zurich"}]`
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	own := func(text string) *NodePool {
		pool := &NodePool{}
		pool.Name = "web"
		pool.Annotations = map[string]string{MaintenanceWindowsAnnotationKey: text}
		return pool
	}
	for _, test := range []struct {
		reason string
		// everywhere are the cluster's windows.
		everywhere string
		pool       *NodePool
		of         DisruptionReason
		now        string
		open       bool
		until      string
		says       string
	}{
		{reason: "without windows everything may go at any time", of: DisruptionReasonDrifted, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "before it opens", everywhere: saturday, of: DisruptionReasonDrifted, now: "2026-01-03T21:59:59Z", until: "2026-01-03T22:00:00Z",
			says: "it is outside the cluster's maintenance windows for the reason Drifted; the next opens at 2026-01-03T22:00:00Z"},
		{reason: "when it opens", everywhere: saturday, of: DisruptionReasonDrifted, now: "2026-01-03T22:00:00Z", open: true, until: "2026-01-04T02:00:00Z"},
		{reason: "just before it closes", everywhere: saturday, of: WindowExpired, now: "2026-01-04T01:59:59Z", open: true, until: "2026-01-04T02:00:00Z"},
		{reason: "when it closes", everywhere: saturday, of: WindowOverprovisioned, now: "2026-01-04T02:00:00Z", until: "2026-01-10T22:00:00Z"},
		{reason: "the zone's clocks count", everywhere: zurich, of: DisruptionReasonEmpty, now: "2026-01-03T21:00:00Z", open: true, until: "2026-01-04T01:00:00Z"},
		{reason: "in summer too", everywhere: zurich, of: DisruptionReasonEmpty, now: "2026-07-04T20:00:00Z", open: true, until: "2026-07-05T00:00:00Z"},
		{reason: "a duration is time that passes, over a change of the clocks", everywhere: zurich, of: DisruptionReasonEmpty, now: "2026-03-28T21:30:00Z", open: true, until: "2026-03-29T01:00:00Z"},
		{reason: "and when they are set back", everywhere: zurich, of: DisruptionReasonEmpty, now: "2026-10-24T23:30:00Z", open: true, until: "2026-10-25T00:00:00Z"},
		{reason: "what cannot wait does not, unless it is named", everywhere: saturday, of: WindowUnhealthy, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "interruptions neither", everywhere: saturday, of: WindowInterrupted, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "what is named waits", everywhere: `[{"schedule": "0 22 * * sat", "duration": "4h", "reasons": ["Interrupted"]}]`, of: WindowInterrupted, now: "2026-01-02T12:00:00Z", until: "2026-01-03T22:00:00Z"},
		{reason: "and nothing else", everywhere: `[{"schedule": "0 22 * * sat", "duration": "4h", "reasons": ["Interrupted"]}]`, of: DisruptionReasonEmpty, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "the first of several opens it", everywhere: `[{"schedule": "0 22 * * sat", "duration": "4h"}, {"schedule": "0 22 * * fri", "duration": "1h"}]`, of: DisruptionReasonEmpty,
			now: "2026-01-02T12:00:00Z", until: "2026-01-02T22:00:00Z"},
		{reason: "the last of several that meet closes it", everywhere: `[{"schedule": "0 22 * * *", "duration": "1h"}, {"schedule": "30 22 * * *", "duration": "1h"}, {"schedule": "30 23 * * *", "duration": "15m"}]`,
			of: DisruptionReasonEmpty, now: "2026-01-02T22:15:00Z", open: true, until: "2026-01-02T23:45:00Z"},
		{reason: "a NodePool's own take the place of the cluster's", everywhere: saturday, pool: own(`[{"schedule": "0 3 * * *", "duration": "1h"}]`), of: DisruptionReasonEmpty,
			now: "2026-01-03T22:30:00Z", until: "2026-01-04T03:00:00Z", says: "it is outside the maintenance windows of NodePool web for the reason Empty; the next opens at 2026-01-04T03:00:00Z"},
		{reason: "a NodePool may have none", everywhere: saturday, pool: own("[]"), of: DisruptionReasonEmpty, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "what cannot be read never opens", pool: own("saturday"), of: DisruptionReasonEmpty, now: "2026-01-02T12:00:00Z", says: "the maintenance windows of NodePool web cannot be read"},
		{reason: "but for what cannot wait", pool: own("saturday"), of: WindowUnhealthy, now: "2026-01-02T12:00:00Z", open: true},
		{reason: "a day that there is not never opens", everywhere: `[{"schedule": "0 0 31 2 *", "duration": "1h"}]`, of: DisruptionReasonEmpty, now: "2026-01-02T12:00:00Z", says: "none opens again"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			everywhere, err := ParseMaintenanceWindows(test.everywhere)
			if err != nil {
				t.Fatal(err)
			}
			now := at(test.now)
			open, until := everywhere.For(test.pool).Open(test.of, now)
			if open != test.open || momentOr(until, "") != test.until {
				t.Errorf("open %t until %s, want %t until %q", open, until, test.open, test.until)
			}
			stop := everywhere.Stop(test.of, test.pool, now)
			if (stop == nil) != test.open {
				t.Fatalf("it is open: %t, and stopped by %v", test.open, stop)
			}
			if stop != nil && (!strings.Contains(stop.String(), test.says) || !stop.Until.Equal(until)) {
				t.Errorf("it is stopped until %s because %q, want until %s and %q", stop.Until, stop, until, test.says)
			}
		})
	}
}

// What Open says stays so until the moment it names, and changes then, unless windows follow upon each other without end.
func TestMaintenanceWindowsUntil(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		schedules := []string{"0 22 * * sat", "30 * * * *", "*/20 1-5 * * *", "0 2 * * sun", "0 0 1 * *"}
		text := "["
		for i := range rapid.IntRange(1, 3).Draw(t, "windows") {
			if i > 0 {
				text += ", "
			}
			text += `{"schedule": "` + rapid.SampledFrom(schedules).Draw(t, "schedule") + `", "duration": "` + rapid.SampledFrom([]string{"1m", "20m", "1h30m"}).Draw(t, "duration") +
				`", "timeZone": "` + rapid.SampledFrom([]string{"", "Europe/Zurich", "Asia/Kolkata"}).Draw(t, "zone") + `"}`
		}
		windows, err := ParseMaintenanceWindows(text + "]")
		if err != nil {
			t.Fatal(err)
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 366*24*60).Draw(t, "minutes")) * time.Minute)
		open, until := windows.Open(WindowExpired, now)
		if until.IsZero() || !until.After(now) {
			t.Fatalf("%s: at %s open %t until %s", text, now, open, until)
		}
		for _, before := range []time.Time{now.Add(until.Sub(now) / 2), until.Add(-time.Nanosecond)} {
			if still, _ := windows.Open(WindowExpired, before); still != open {
				t.Fatalf("%s: at %s open %t until %s, but %t at %s", text, now, open, until, still, before)
			}
		}
		if then, _ := windows.Open(WindowExpired, until); then == open && until.Sub(now) < 30*time.Minute {
			t.Fatalf("%s: at %s open %t until %s, and still then", text, now, open, until)
		}
	})
}
