package starter

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/tenon-sh/tenon/plan"
)

func TestProtectionEndsAreToldOnce(t *testing.T) {
	t.Parallel()
	events := record.NewFakeRecorder(10)
	ends := protectionEnds{events: events}
	began := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pod := &plan.Pod{UID: "1", Namespace: "default", Name: "job", DoNotDisrupt: true, DoNotDisruptFor: time.Hour, Started: began}
	for _, look := range []struct {
		reason string
		after  time.Duration
		want   string
		next   time.Duration
	}{
		{"the end is told when the pod is first seen", time.Minute, "Normal DoNotDisruptUntil", time.Hour},
		{"and not again", 2 * time.Minute, "", time.Hour},
		{"that it has come is told", time.Hour, "Normal DoNotDisruptGracePeriodElapsed", 0},
		{"once", 2 * time.Hour, "", 0},
	} {
		next := ends.tell(&plan.Snapshot{Time: began.Add(look.after), Nodes: []*plan.Node{{Name: "n", Claim: "c", Pool: "default", Pods: []*plan.Pod{pod}}}})
		got := ""
		select {
		case got = <-events.Events:
		default:
		}
		if !strings.HasPrefix(got, look.want) || look.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", look.reason, got, look.want)
		}
		if want := began.Add(look.next); look.next > 0 && !next.Equal(want) || look.next == 0 && !next.IsZero() {
			t.Errorf("%s: looks again at %s", look.reason, next)
		}
	}
}
