package starter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// The reasons of the Events on a NodePool about its maintenance windows.
const (
	// eventWindowOpened says that a maintenance window of the NodePool has opened, and for what.
	eventWindowOpened = "MaintenanceWindowOpened"
	// eventWindowClosed says that a maintenance window of the NodePool has closed, and when the next one opens.
	eventWindowClosed = "MaintenanceWindowClosed"
	// eventWindowWrong says why the maintenance windows of the NodePool cannot be read. What could wait for one waits until they are corrected.
	eventWindowWrong = "MaintenanceWindowsMisread"
)

// newWindowGauge returns the metric of maintenance windows.
func newWindowGauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "tenon", Name: "maintenance_window_open",
		Help: "1 while a maintenance window of a NodePool is open for a reason, 0 while none is; absent for reasons that wait for no window. Only the leader shows it."},
		[]string{"nodepool", "reason"})
}

// windowState is what an Event on a NodePool has said about its windows.
type windowState struct{ event, what string }

// tellWindows records an Event on each NodePool whose maintenance windows have opened or closed since the last time, and
// shows the metric. What opens or closes at the same time is one Event.
func (p *pauses) tellWindows(pools []*karpv1.NodePool, now time.Time) {
	if p.metrics != nil {
		p.metrics.windows.Reset()
	}
	said := map[string]windowState{}
	for _, pool := range pools {
		state := p.mirror.Windows().State(pool, now)
		if state == nil {
			continue
		}
		if p.metrics != nil {
			for _, reason := range state.Open {
				p.metrics.windows.WithLabelValues(pool.Name, string(reason)).Set(1)
			}
			for _, reason := range state.Closed {
				p.metrics.windows.WithLabelValues(pool.Name, string(reason)).Set(0)
			}
		}
		told := windowState{event: eventWindowOpened}
		kind := corev1.EventTypeNormal
		switch {
		case state.Problem != "":
			kind, told.event, told.what = corev1.EventTypeWarning, eventWindowWrong, state.Problem
		case len(state.Closed) > 0:
			told.event = eventWindowClosed
		}
		for _, reason := range state.Closed {
			told.what += " " + string(reason)
		}
		said[pool.Name] = told
		if p.events != nil && told != p.windows[pool.Name] {
			about := &corev1.ObjectReference{APIVersion: karpv1.SchemeGroupVersion.String(), Kind: "NodePool", Name: pool.Name, UID: pool.UID}
			p.events.Event(about, kind, told.event, state.Text)
		}
	}
	p.windows = said
}
