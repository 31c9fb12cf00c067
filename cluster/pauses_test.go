package cluster

import (
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestPausesAreMirrored follows a pause of the cluster from the ConfigMap to its end, which comes without any change in the
// API server.
func TestPausesAreMirrored(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	server.put("nodepools", &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}})
	began := time.Unix(1_700_000_000, 0)
	clock := clocktesting.NewFakeClock(began)
	m := runMirror(t, server, Options{Clock: clock, Log: zap.NewNop(), Pauses: true})
	events := m.Subscribe(PoolEdited)
	defer events.Close()
	holds := func() bool {
		snapshot := m.Snapshot()
		return snapshot.Stopped(karpv1.PauseDisruption, snapshot.NodePools[0]) != nil
	}
	announced := func() {
		t.Helper()
		select {
		case <-events.C:
			events.Take()
		case <-within(t).Done():
			t.Fatal("nobody was told")
		}
	}
	if holds() {
		t.Fatal("something is paused from the start")
	}
	text := karpv1.FormatPauses([]karpv1.Pause{{What: karpv1.PauseDisruption, Until: began.Add(time.Hour)}})
	server.put("configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: karpv1.PauseNamespace, Name: karpv1.PauseConfigMapName}, Data: map[string]string{karpv1.PauseConfigMapKey: text}})
	announced()
	if !holds() {
		t.Error("the pause is not in the snapshot")
	}
	clock.Step(time.Hour)
	announced()
	if holds() {
		t.Error("the pause holds beyond its end")
	}
}

// TestWindowsAreMirrored follows a maintenance window of the cluster: it opens and closes without any change in the API server.
func TestWindowsAreMirrored(t *testing.T) {
	t.Parallel()
	server := newAPIServer().start(t)
	server.put("nodepools", &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "p"}})
	began := time.Date(2026, 1, 3, 21, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakeClock(began)
	windows, err := karpv1.ParseMaintenanceWindows(`[{"schedule": "0 22 * * sat", "duration": "4h"}]`)
	if err != nil {
		t.Fatal(err)
	}
	m := runMirror(t, server, Options{Clock: clock, Log: zap.NewNop(), Pauses: true, Windows: windows})
	events := m.Subscribe(PoolEdited)
	defer events.Close()
	for _, step := range []struct {
		after  time.Duration
		closed bool
	}{{closed: true}, {after: time.Hour}, {after: 4 * time.Hour, closed: true}} {
		if step.after > 0 {
			clock.Step(step.after)
			select {
			case <-events.C:
				events.Take()
			case <-within(t).Done():
				t.Fatalf("nobody was told after %s", step.after)
			}
		}
		snapshot := m.Snapshot()
		if stop := snapshot.Closed(karpv1.DisruptionReasonDrifted, snapshot.NodePools[0]); (stop != nil) != step.closed {
			t.Errorf("after %s: %v", step.after, stop)
		}
	}
}
