package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// TestWhatRatesCountIsRemembered checks which of the nodes that began to be disrupted an evaluation still has to know.
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
		acts := New(Config{Rate: test.cluster})
		disrupted := []workflows.Disrupted{{NodePool: test.pool, Nodes: 2, At: now.Add(-test.ago)}}
		before := slices.Clone(disrupted)
		if got := acts.lately.counted(snapshot, disrupted); (len(got) == 1) != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
		if diff := cmp.Diff(before, disrupted); diff != "" {
			t.Errorf("%s: the question is changed:\n%s", test.reason, diff)
		}
	}
}

// TestARateNeverFillsAPayload has one node in each of many NodePools begin to be disrupted every half minute for a day.
// Half of the NodePools have a rate of their own besides the cluster's.
func TestARateNeverFillsAPayload(t *testing.T) {
	t.Parallel()
	const each, own = 30 * time.Second, 10 * time.Minute
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	rate := karpv1.DisruptionRate{Within: 24 * time.Hour}
	acts := New(Config{Rate: &rate})
	snapshot := &plan.Snapshot{}
	for i := range 50 {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pool-with-a-name-%d", i)}}
		if i%2 == 0 {
			pool.Annotations = map[string]string{karpv1.DisruptionRateAnnotationKey: "30%/10m"}
		}
		snapshot.NodePools = append(snapshot.NodePools, pool)
	}
	var remembered []workflows.Disrupted
	for range rate.Within / each {
		now = now.Add(each)
		for _, pool := range snapshot.NodePools {
			remembered = append(remembered, workflows.Disrupted{NodePool: pool.Name, Nodes: 1, At: now})
		}
		snapshot.Time = now
		remembered = acts.lately.counted(snapshot, remembered)
	}
	encoded, err := json.Marshal(remembered)
	if err != nil {
		t.Fatal(err)
	}
	all, lately := 0, 0
	for _, d := range remembered {
		all += d.Nodes
		if d.NodePool == snapshot.NodePools[0].Name && d.At.Add(own).After(now) {
			lately += d.Nodes
		}
	}
	if want := 50 * int(rate.Within/each); len(encoded) > 250<<10 || all != want {
		t.Errorf("%d nodes in %d bytes, want all %d that began in a day in 250 KiB", all, len(encoded), want)
	}
	if want := int(own / each); lately < want || lately > want+want/mergedShare+1 {
		t.Errorf("%d nodes count for the NodePool's own rate, want %d and at most a twentieth more", lately, want)
	}
}

// ratedPools is a mirror with nothing but NodePools.
type ratedPools struct {
	Mirror
	snapshot plan.Snapshot
}

func (m *ratedPools) Snapshot() *plan.Snapshot                  { return &m.snapshot }
func (m *ratedPools) Fresh(time.Duration) error                 { return nil }
func (m *ratedPools) NodePools() []*karpv1.NodePool             { return nil }
func (m *ratedPools) NodeOverlays() []*karpv1alpha1.NodeOverlay { return nil }

// TestADisruptionThatForgotIsReminded evaluates for a Disruption that was terminated or reset since this process's last
// evaluation.
func TestADisruptionThatForgotIsReminded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	began := func(pool string, nodes int, ago time.Duration) workflows.Disrupted {
		return workflows.Disrupted{NodePool: pool, Nodes: nodes, At: now.Add(-ago)}
	}
	first, second, other := began("slow", 2, 5*time.Minute), began("slow", 1, time.Minute), began("other", 1, time.Minute)
	for _, test := range []struct {
		reason             string
		known, asked, want []workflows.Disrupted
	}{
		{reason: "as nobody knows more, the question counts", asked: []workflows.Disrupted{first, second}, want: []workflows.Disrupted{first, second}},
		{reason: "terminated: it begins with nothing", known: []workflows.Disrupted{first, second}, want: []workflows.Disrupted{first, second}},
		{reason: "reset: the last evaluation is lost", known: []workflows.Disrupted{first, second}, asked: []workflows.Disrupted{first}, want: []workflows.Disrupted{first, second}},
		{reason: "another process has evaluated since", known: []workflows.Disrupted{first}, asked: []workflows.Disrupted{first, second}, want: []workflows.Disrupted{first, second}},
		{reason: "each NodePool for itself", known: []workflows.Disrupted{first}, asked: []workflows.Disrupted{other}, want: []workflows.Disrupted{first, other}},
		{reason: "what no rate counts any more is forgotten", known: []workflows.Disrupted{began("slow", 5, time.Hour)}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			mirror := &ratedPools{snapshot: plan.Snapshot{Time: now}}
			for _, name := range []string{"slow", "other"} {
				mirror.snapshot.NodePools = append(mirror.snapshot.NodePools, &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name,
					Annotations: map[string]string{karpv1.DisruptionRateAnnotationKey: "30%/10m"}}})
			}
			acts := New(Config{Mirror: mirror, Log: zap.NewNop()})
			acts.lately.set(test.known)
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivity(acts.Evaluate)
			answer, err := env.ExecuteActivity(acts.Evaluate, workflows.EvaluateInput{Disrupted: test.asked})
			if err != nil {
				t.Fatal(err)
			}
			var found workflows.Evaluation
			if err := answer.Get(&found); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, found.Disrupted); diff != "" {
				t.Errorf("remembered (-want +got):\n%s", diff)
			}
		})
	}
}
