package starter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestPeopleAreToldOfWindows checks Events and metrics of a NodePool with windows, once for each change.
func TestPeopleAreToldOfWindows(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics, err := NewPauseMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	saturday := time.Date(2026, 1, 3, 21, 0, 0, 0, time.UTC)
	f, events := newFleet(0, saturday), record.NewFakeRecorder(10)
	if f.windows, err = karpv1.ParseMaintenanceWindows(`[{"schedule": "0 22 * * sat", "duration": "4h", "reasons": ["Drifted"]}]`); err != nil {
		t.Fatal(err)
	}
	p := &pauses{mirror: f, events: events, metrics: metrics}
	shown := func() (values []float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "tenon_maintenance_window_open" {
				for _, series := range family.GetMetric() {
					values = append(values, series.GetGauge().GetValue())
				}
			}
		}
		return values
	}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u"}}
	look := func(at time.Time) { p.tellWindows([]*karpv1.NodePool{pool}, at) }
	look(saturday)
	look(saturday.Add(30 * time.Minute))
	if got := shown(); !cmp.Equal(got, []float64{0}) {
		t.Errorf("before the window the metric shows %v", got)
	}
	look(saturday.Add(time.Hour))
	if got := shown(); !cmp.Equal(got, []float64{1}) {
		t.Errorf("in the window the metric shows %v", got)
	}
	pool.Annotations = map[string]string{karpv1.MaintenanceWindowsAnnotationKey: "sunday"}
	look(saturday.Add(2 * time.Hour))
	pool.Annotations[karpv1.MaintenanceWindowsAnnotationKey] = "[]"
	look(saturday.Add(3 * time.Hour))
	if got := shown(); len(got) != 0 {
		t.Errorf("without windows the metric shows %v", got)
	}
	var told []string
	for len(events.Events) > 0 {
		text := <-events.Events
		told = append(told, text[:min(len(text), 75)])
	}
	want := []string{"Normal MaintenanceWindowClosed closed for Drifted until 2026-01-03T22:00:00Z", "Normal MaintenanceWindowOpened open for Drifted until 2026-01-04T02:00:00Z",
		"Warning MaintenanceWindowsMisread the maintenance windows cannot be read, so"}
	for i := range want {
		want[i] = want[i][:min(len(want[i]), 75)]
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}
