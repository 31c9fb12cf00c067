package activities

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// TestWhatRatesCountIsRemembered asks which of the nodes that began to be disrupted an evaluation still has to know of.
func TestWhatRatesCountIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	pool := func(name, rate string) *karpv1.NodePool {
		made := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if rate != "" {
			made.Annotations = map[string]string{karpv1.DisruptionRateAnnotationKey: rate}
		}
		return made
	}
	snapshot := &plan.Snapshot{Time: now, NodePools: []*karpv1.NodePool{pool("free", ""), pool("slow", "30%/10m"), pool("wrong", "soon")}}
	hour := &karpv1.DisruptionRate{Within: time.Hour}
	for _, test := range []struct {
		reason  string
		pool    string
		ago     time.Duration
		cluster *karpv1.DisruptionRate
		want    bool
	}{
		{reason: "no rate counts it", pool: "free", ago: time.Second},
		{reason: "its NodePool's rate counts it", pool: "slow", ago: 10*time.Minute - time.Second, want: true},
		{reason: "its NodePool's rate counts it no more", pool: "slow", ago: 10 * time.Minute},
		{reason: "the cluster's rate counts it", pool: "free", ago: time.Minute, cluster: hour, want: true},
		{reason: "the longer of both counts", pool: "slow", ago: 30 * time.Minute, cluster: hour, want: true},
		{reason: "a NodePool that is gone counts for the cluster", pool: "gone", ago: time.Minute, cluster: hour, want: true},
		{reason: "and for nobody else", pool: "gone", ago: time.Minute},
		{reason: "a rate that cannot be read may be a long one", pool: "wrong", ago: 23 * time.Hour, want: true},
	} {
		doing := New(Config{Rate: test.cluster})
		disrupted := []workflows.Disrupted{{NodePool: test.pool, Nodes: 2, At: now.Add(-test.ago)}}
		before := slices.Clone(disrupted)
		if got := doing.counted(snapshot, disrupted); (len(got) == 1) != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
		if diff := cmp.Diff(before, disrupted); diff != "" {
			t.Errorf("%s: the question is changed:\n%s", test.reason, diff)
		}
	}
}
