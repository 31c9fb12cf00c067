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
