package starter

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestStaticPoolsAreAnnounced(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	snapshot := func(after time.Duration, replicas int64, nodes int, ready metav1.ConditionStatus) *plan.Snapshot {
		pool := testPool("static")
		pool.Spec.Replicas = &replicas
		pool.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: ready}}
		s := &plan.Snapshot{Time: start.Add(after), NodePools: []*karpv1.NodePool{pool}}
		for range nodes {
			s.Nodes = append(s.Nodes, &plan.Node{Claim: "c", Pool: "static"})
		}
		return s
	}
	p := pending{}
	for _, look := range []struct {
		reason string
		at     *plan.Snapshot
		news   bool
		signal bool
		wait   time.Duration
	}{
		{"a pool that has its nodes is silent", snapshot(0, 2, 2, "True"), true, false, 0},
		{"one that lacks nodes is announced at once", snapshot(time.Second, 3, 2, "True"), false, true, retryFirst},
		{"and again after a while only", snapshot(2*time.Second, 3, 2, "True"), false, false, 9 * time.Second},
		{"unless it lacks more", snapshot(3*time.Second, 5, 2, "True"), false, true, retryFirst},
		{"a node class that changed may help", snapshot(5*time.Second, 5, 2, "True"), true, true, retryFirst},
		{"what may not be launched is not announced", snapshot(6*time.Second, 5, 2, "False"), false, false, 0},
		{"when it is served there is nothing to say", snapshot(7*time.Second, 5, 5, "True"), false, false, 0},
		{"a surplus is none of Provisioning's", snapshot(8*time.Second, 1, 5, "True"), false, false, 0},
	} {
		if signal, wait := p.lacking(look.at, look.news); signal != look.signal || wait != look.wait {
			t.Errorf("%s: signal %t after %s, want %t after %s", look.reason, signal, wait, look.signal, look.wait)
		}
	}
}
