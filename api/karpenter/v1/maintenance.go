package v1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The reasons that a maintenance window may name, besides those of budgets.
const (
	// WindowExpired is expiry, by force as well as graceful, and what tenon expire marks.
	WindowExpired DisruptionReason = "Expired"
	// WindowOverprovisioned is the surplus of a static pool.
	WindowOverprovisioned DisruptionReason = "Overprovisioned"
	// WindowUnhealthy is the repair of a node that will not recover.
	WindowUnhealthy DisruptionReason = "Unhealthy"
	// WindowInterrupted is what follows from the cloud's messages that it takes an instance away.
	WindowInterrupted DisruptionReason = "Interrupted"
)

// WindowReasons returns the reasons that a maintenance window may name. The first ones, all that can wait, are those of a
// window that names none. Repair and interruption are not among them: what runs on such a node is lost anyway, and waiting
// only makes that last longer.
func WindowReasons() (all, unnamed []DisruptionReason) {
	unnamed = []DisruptionReason{DisruptionReasonEmpty, DisruptionReasonDrifted, DisruptionReasonUnderutilized, WindowExpired, WindowOverprovisioned}
	return append(slices.Clone(unnamed), WindowUnhealthy, WindowInterrupted), unnamed
}

// MaintenanceWindow is a time in which nodes may be removed for some reasons.
//
// +kubebuilder:object:generate=false
type MaintenanceWindow struct {
	// Schedule is a cron expression of five fields: when the window opens.
	Schedule string `json:"schedule"`
	// Duration is how long it stays open. It is time that passes, whatever clocks on the wall do.
	Duration metav1.Duration `json:"duration"`
	// TimeZone is the zone of the IANA database, such as Europe/Zurich, by whose clocks the schedule is read; UTC if empty.
	TimeZone string `json:"timeZone,omitempty"`
	// Reasons are those that wait for the window; if there are none, all that can wait (WindowReasons).
	Reasons []DisruptionReason `json:"reasons,omitempty"`

	schedule cron.Schedule
	zone     *time.Location
}

// MaintenanceWindows are the windows of the cluster or of a NodePool. Their zero value limits nothing.
//
// +kubebuilder:object:generate=false
type MaintenanceWindows struct {
	windows []MaintenanceWindow
	// pool is the NodePool that they are for; empty for the whole cluster.
	pool string
	// problem says why they cannot be read; nil if they can.
	problem error
	// text is what they were read from.
	text string
}

// Equal says whether two are the same, by what they were read from.
func (w MaintenanceWindows) Equal(other MaintenanceWindows) bool {
	return w.pool == other.pool && w.text == other.text
}

// ParseMaintenanceWindows reads a JSON list of windows; an empty text is an empty list. An error names the window and the
// field. Together with it the windows are returned that close everything which can wait.
func ParseMaintenanceWindows(text string) (MaintenanceWindows, error) {
	all := MaintenanceWindows{text: text}
	if strings.TrimSpace(text) == "" {
		return all, nil
	}
	decoder := json.NewDecoder(bytes.NewBufferString(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&all.windows)
	if err == nil {
		if _, rest := decoder.Token(); !errors.Is(rest, io.EOF) {
			err = errors.New("there is more than one list")
		}
	}
	if err != nil {
		err = fmt.Errorf(`must be a JSON list such as [{"schedule": "0 22 * * sat", "duration": "4h", "timeZone": "Europe/Zurich"}]: %w`, err)
	}
	for i := range all.windows {
		if err == nil {
			if wrong := all.windows[i].complete(); wrong != nil {
				err = fmt.Errorf("window %d: %w", i, wrong)
			}
		}
	}
	if err != nil {
		return MaintenanceWindows{problem: err, text: text}, err
	}
	return all, nil
}

// complete checks a window that was decoded.
func (w *MaintenanceWindow) complete() (err error) {
	if strings.Contains(w.Schedule, "TZ=") {
		return fmt.Errorf("schedule %q: the time zone is for timeZone to say", w.Schedule)
	}
	if w.schedule, err = parseSchedule(w.Schedule); err != nil {
		return err
	}
	if w.Duration.Duration < time.Minute {
		return fmt.Errorf("duration %s must be at least 1m", w.Duration.Duration)
	}
	w.zone = time.UTC
	if w.TimeZone != "" {
		if w.zone, err = time.LoadLocation(w.TimeZone); err != nil || w.TimeZone == time.Local.String() {
			return fmt.Errorf("timeZone %q must be a time zone of the IANA database such as Europe/Zurich", w.TimeZone)
		}
	}
	known, _ := WindowReasons()
	for _, reason := range w.Reasons {
		if !slices.Contains(known, reason) {
			return fmt.Errorf("reasons: %q must be one of %s", reason, joined(known))
		}
	}
	return nil
}

func joined(reasons []DisruptionReason) string {
	words := make([]string, 0, len(reasons))
	for _, reason := range reasons {
		words = append(words, string(reason))
	}
	return strings.Join(words, ", ")
}

// For returns the windows that hold for a pool, which may be nil: its own, by its annotation MaintenanceWindowsAnnotationKey,
// which take the place of the cluster's; w, the cluster's, if it has none. An empty list is a pool's own as well.
func (w MaintenanceWindows) For(pool *NodePool) MaintenanceWindows {
	if pool == nil {
		return w
	}
	text, some := pool.Annotations[MaintenanceWindowsAnnotationKey]
	if !some {
		return w
	}
	own, _ := ParseMaintenanceWindows(text) // the problem is kept
	own.pool = pool.Name
	return own
}

// Limits says whether nodes are removed for a reason in windows only.
func (w MaintenanceWindows) Limits(reason DisruptionReason) bool {
	_, unnamed := WindowReasons()
	if w.problem != nil {
		return slices.Contains(unnamed, reason)
	}
	return slices.ContainsFunc(w.windows, func(window MaintenanceWindow) bool { return window.isFor(reason) })
}

func (w *MaintenanceWindow) isFor(reason DisruptionReason) bool {
	_, unnamed := WindowReasons()
	return slices.Contains(w.Reasons, reason) || len(w.Reasons) == 0 && slices.Contains(unnamed, reason)
}

// Open says whether nodes may be removed for a reason at a moment, and until when that stays so: until the windows close or
// the next one opens; zero if it stays so for ever. Where windows follow upon each other without end in sight, the moment is
// one at which to ask again.
func (w MaintenanceWindows) Open(reason DisruptionReason, now time.Time) (open bool, until time.Time) {
	if !w.Limits(reason) {
		return true, time.Time{}
	}
	if end := w.ends(reason, now); !end.IsZero() {
		return true, end
	}
	for i := range w.windows {
		if window := &w.windows[i]; window.isFor(reason) {
			if next := nextIn(window.schedule, now, window.zone); !next.IsZero() && (until.IsZero() || next.Before(until)) {
				until = next
			}
		}
	}
	return false, until
}

// ends returns when the windows close that are open at a moment; zero if none is open.
func (w MaintenanceWindows) ends(reason DisruptionReason, now time.Time) (end time.Time) {
	at := now
	for range endsTried {
		later := time.Time{}
		for i := range w.windows {
			if window := &w.windows[i]; window.isFor(reason) {
				if closes := window.closes(at); closes.After(later) {
					later = closes
				}
			}
		}
		if later.IsZero() {
			return end
		}
		end, at = later, later
	}
	return end
}

// closes returns when the window closes that is open at a moment; zero if it is not open.
func (w *MaintenanceWindow) closes(now time.Time) (end time.Time) {
	from := now.Add(-w.Duration.Duration)
	for range endsTried {
		if from = nextIn(w.schedule, from, w.zone); from.IsZero() || from.After(now) {
			return end
		}
		end = from.Add(w.Duration.Duration)
	}
	return end
}

// Stop says why no node of a pool, which may be nil, is removed for a reason now; nil if that may be done. w is the
// cluster's. Its Until is when the next window opens.
func (w MaintenanceWindows) Stop(reason DisruptionReason, pool *NodePool, now time.Time) *Stop {
	of := w.For(pool)
	open, until := of.Open(reason, now)
	if open {
		return nil
	}
	whose := "the cluster's maintenance windows"
	if of.pool != "" {
		whose = "the maintenance windows of NodePool " + of.pool
	}
	stop := &Stop{Pause: Pause{What: PauseDisruption, Until: until}, NodePool: of.pool}
	switch {
	case of.problem != nil:
		stop.Window = fmt.Sprintf("%s cannot be read, so that none is open for the reason %s: %v", whose, reason, of.problem)
	case until.IsZero():
		stop.Window = fmt.Sprintf("it is outside %s for the reason %s, and none opens again", whose, reason)
	default:
		stop.Window = fmt.Sprintf("it is outside %s for the reason %s; the next opens at %s", whose, reason, until.UTC().Format(time.RFC3339))
	}
	return stop
}

// WindowState says for the people who look at a NodePool whether its windows are open.
//
// +kubebuilder:object:generate=false
type WindowState struct {
	// Open and Closed are the reasons that wait for windows.
	Open, Closed []DisruptionReason
	// Problem says why the windows cannot be read; empty if they can.
	Problem string
	// Text says all of it in one sentence.
	Text string
	// Changes is when another state begins; zero for never.
	Changes time.Time
}

// State says whether the windows that hold for a pool are open; nil if nothing waits for windows. w is the cluster's.
func (w MaintenanceWindows) State(pool *NodePool, now time.Time) *WindowState {
	of := w.For(pool)
	if of.problem != nil {
		_, unnamed := WindowReasons()
		return &WindowState{Closed: unnamed, Problem: of.problem.Error(), Text: "the maintenance windows cannot be read, so that none is open for " + joined(unnamed) + ": " + of.problem.Error()}
	}
	state := &WindowState{}
	var texts []string
	all, _ := WindowReasons()
	for _, reason := range all {
		if !of.Limits(reason) {
			continue
		}
		open, until := of.Open(reason, now)
		if open {
			state.Open = append(state.Open, reason)
			texts = append(texts, fmt.Sprintf("open for %s until %s", reason, momentOr(until, "further notice")))
		} else {
			state.Closed = append(state.Closed, reason)
			texts = append(texts, fmt.Sprintf("closed for %s until %s", reason, momentOr(until, "somebody changes them")))
		}
		if !until.IsZero() && (state.Changes.IsZero() || until.Before(state.Changes)) {
			state.Changes = until
		}
	}
	if len(texts) == 0 {
		return nil
	}
	state.Text = strings.Join(texts, "; ")
	return state
}

func momentOr(at time.Time, never string) string {
	if at.IsZero() {
		return never
	}
	return at.UTC().Format(time.RFC3339)
}
