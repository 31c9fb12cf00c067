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
		{reason: "a pool that has its nodes is silent", at: snapshot(0, 2, 2, "True"), news: true, signal: false, wait: 0},
		{reason: "one that lacks nodes is announced at once", at: snapshot(time.Second, 3, 2, "True"), news: false, signal: true, wait: retryFirst},
		{reason: "and again after a while only", at: snapshot(2*time.Second, 3, 2, "True"), news: false, signal: false, wait: 9 * time.Second},
		{reason: "unless it lacks more", at: snapshot(3*time.Second, 5, 2, "True"), news: false, signal: true, wait: retryFirst},
		{reason: "a node class that changed may help", at: snapshot(5*time.Second, 5, 2, "True"), news: true, signal: true, wait: retryFirst},
		{reason: "what may not be launched is not announced", at: snapshot(6*time.Second, 5, 2, "False"), news: false, signal: false, wait: 0},
		{reason: "when it is served there is nothing to say", at: snapshot(7*time.Second, 5, 5, "True"), news: false, signal: false, wait: 0},
		{reason: "a surplus is none of Provisioning's", at: snapshot(8*time.Second, 1, 5, "True"), news: false, signal: false, wait: 0},
	} {
		if signal, wait := p.lacking(look.at, look.news); signal != look.signal || wait != look.wait {
			t.Errorf("%s: signal %t after %s, want %t after %s", look.reason, signal, wait, look.signal, look.wait)
		}
	}
}
