package activities

import (
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// evictEnvironment runs Evict over objects that nobody else changes.
func evictEnvironment(objects ...client.Object) *testsuite.TestActivityEnvironment {
	objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid"}})
	d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithObjects(objects...).
		WithIndex(&corev1.Pod{}, podNode, func(object client.Object) []string { return []string{object.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Node{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).Build()}
	var suite testsuite.WorkflowTestSuite
	environment := suite.NewTestActivityEnvironment()
	environment.RegisterActivityWithOptions(d.Evict, activity.RegisterOptions{Name: workflows.EvictActivity.Name})
	return environment
}

func protectedPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "batch", UID: "pod-uid", Annotations: map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"}},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
}

func evictInput() workflows.EvictInput {
	return workflows.EvictInput{Node: "n", NodeUID: "uid", Claim: "claim", Reason: workflows.ReasonEmpty}
}

func TestEvictGoesOnWhereTheLastTryStopped(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment()
	environment.SetHeartbeatDetails(evictProgress{Started: time.Now().Add(-time.Minute), Evicted: 3})
	value, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err != nil {
		t.Fatal(err)
	}
	var got workflows.EvictResult
	if err := value.Get(&got); err != nil {
		t.Fatal(err)
	}
	if !got.Done || got.Evicted != 3 {
		t.Errorf("result %+v, want done with the three evictions of the try before", got)
	}
}

func TestEvictHandsOverWhenItsWorkerStops(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment(protectedPod())
	stopping := make(chan struct{})
	environment.SetWorkerStopChannel(stopping)
	close(stopping)
	_, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err == nil || !strings.Contains(err.Error(), errWorkerStopping.Error()) {
		t.Errorf("error %v, want to be tried again elsewhere", err)
	}
}

func TestEvictReportsNewBlockersOnly(t *testing.T) {
	t.Parallel()
	environment := evictEnvironment(protectedPod())
	value, err := environment.ExecuteActivity(workflows.EvictActivity.Name, evictInput())
	if err != nil {
		t.Fatal(err)
	}
	var first workflows.EvictResult
	if err := value.Get(&first); err != nil {
		t.Fatal(err)
	}
	if first.Done || first.Left != 1 || len(first.Blockers) != 1 || first.Blockers[0].Pod != "team/batch" {
		t.Fatalf("result %+v", first)
	}
	known := evictInput()
	known.Known, known.Deadline = first.Digest, time.Now().Add(-time.Second)
	if value, err = environment.ExecuteActivity(workflows.EvictActivity.Name, known); err != nil {
		t.Fatal(err)
	}
	var last workflows.EvictResult
	if err := value.Get(&last); err != nil {
		t.Fatal(err)
	}
	if last.Evicted != 1 {
		t.Errorf("at the deadline: %+v, want the pod deleted", last)
	}
}

// TestLargePodsGoFirst holds that small pods wait only where nodes go together for whose pods there is a place.
func TestLargePodsGoFirst(t *testing.T) {
	t.Parallel()
	ended := time.Now().Truncate(time.Second)
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Finalizers: []string{karpv1.TerminationFinalizer}, DeletionTimestamp: &metav1.Time{Time: ended}}}
	ahead := claim.DeepCopy()
	ahead.Name, ahead.DeletionTimestamp = "ahead", &metav1.Time{Time: ended.Add(time.Hour)}
	started := ended.Add(2 * time.Second)
	for _, test := range []struct {
		reason string
		in     workflows.EvictInput
		want   time.Time
	}{
		{"consolidation has found places", workflows.EvictInput{Claim: "claim", Reason: string(karpv1.DisruptionReasonUnderutilized)}, ended.Add(largeFirst)},
		{"the API server's clock is an hour ahead", workflows.EvictInput{Claim: "ahead", Reason: string(karpv1.DisruptionReasonUnderutilized)}, started.Add(largeFirst)},
		{"an interrupted node is in a hurry", workflows.EvictInput{Claim: "claim", Reason: workflows.ReasonSpotInterrupted}, time.Time{}},
		{"a person drains what is not Tenon's", workflows.EvictInput{Reason: workflows.ReasonManualDrain}, time.Time{}},
		{"the claim is gone", workflows.EvictInput{Claim: "another", Reason: string(karpv1.DisruptionReasonDrifted)}, time.Time{}},
	} {
		d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim, ahead).Build()}
		p := newPass(d, test.in, &corev1.Node{}, time.Now(), time.Now(), evictProgress{Started: started})
		if err := p.letLargeFirst(t.Context()); err != nil || !p.smallFrom.Equal(test.want) {
			t.Errorf("%s: small pods go from %v on, want %v; %v", test.reason, p.smallFrom, test.want, err)
		}
	}
}
