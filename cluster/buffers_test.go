package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	"github.com/tenon-sh/tenon/plan"
)

func testBuffer(name string, spec bufferv1.CapacityBufferSpec) *bufferv1.CapacityBuffer {
	return &bufferv1.CapacityBuffer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1}, Spec: spec}
}

func podsOf(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}}}},
	}
}

func testTemplate(name, cpu string, generation int64) *corev1.PodTemplate {
	return &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: generation}, Template: podsOf(cpu)}
}

func testDeployment(name string, replicas int32, generation int64) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: generation},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Template: podsOf("1")}}
}

// awaitBuffers waits until the buffers are resolved as wanted: each line is a buffer's name, its reason and its virtual
// pods.
func awaitBuffers(t *testing.T, m *Mirror, why string, want ...string) {
	t.Helper()
	subscription := m.Subscribe(BuffersChanged)
	defer subscription.Close()
	ctx := within(t)
	for {
		var got []string
		for _, buffer := range m.Buffers() {
			line := buffer.Object.Name + " " + buffer.Reason
			for _, pod := range buffer.Pods {
				line += " " + pod.Name
			}
			got = append(got, line)
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			return
		}
		select {
		case <-subscription.C:
		case <-ctx.Done():
			t.Fatalf("%s: (-want +got)\n%s", why, diff)
		}
	}
}

func TestBuffersBecomeVirtualPods(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.buffers = true
	server.put("pods", testPod("a", "", unschedulable))
	server.put("podtemplates", testTemplate("web", "1", 1))
	server.put("capacitybuffers", testBuffer("spare", bufferv1.CapacityBufferSpec{PodTemplateRef: &bufferv1.LocalObjectRef{Name: "web"}, Replicas: new(int32(2))}))
	server.start(t)
	m := runMirror(t, server, Options{})

	awaitBuffers(t, m, "a template", "spare  capacity-buffer-spare-0 capacity-buffer-spare-1")
	snapshot := m.Snapshot()
	var virtual []types.UID
	for _, pod := range snapshot.Pending {
		if pod.Virtual {
			virtual = append(virtual, pod.UID)
			if !pod.Provisionable() || pod.Namespace != "default" || pod.Labels.Set["app"] != "web" {
				t.Errorf("a virtual pod %+v does not wait for a node as others do", pod)
			}
		}
	}
	if len(snapshot.Pending) != 3 || len(virtual) != 2 {
		t.Fatalf("%d pods wait, %d of them virtual; want three and two", len(snapshot.Pending), len(virtual))
	}
	if m.Provisionable() != 1 {
		t.Errorf("%d pods are counted as waiting, want the real one", m.Provisionable())
	}

	server.put("podtemplates", testTemplate("web", "2", 2))
	if err := m.Await(within(t), func() (bool, error) {
		pending := m.Snapshot().Pending
		return len(pending) == 3 && !slices.ContainsFunc(pending, func(pod *plan.Pod) bool { return slices.Contains(virtual, pod.UID) }), nil
	}, Event{Kind: BuffersChanged}); err != nil {
		t.Fatalf("pods of another shape are others: %v", err)
	}
	ofDeployment := bufferv1.CapacityBufferSpec{ScalableRef: &bufferv1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "web"}, Percentage: new(int32(50))}
	server.put("capacitybuffers", testBuffer("more", ofDeployment))
	awaitBuffers(t, m, "what it refers to is missing", "more ScalableRefNotFound", "spare  capacity-buffer-spare-0 capacity-buffer-spare-1")
	server.put("deployments", testDeployment("web", 3, 1))
	awaitBuffers(t, m, "half of three", "more  capacity-buffer-more-0 capacity-buffer-more-1", "spare  capacity-buffer-spare-0 capacity-buffer-spare-1")
	server.put("deployments", testDeployment("web", 1, 2))
	awaitBuffers(t, m, "half of one", "more  capacity-buffer-more-0", "spare  capacity-buffer-spare-0 capacity-buffer-spare-1")
	server.remove("podtemplates", testTemplate("web", "2", 2))
	awaitBuffers(t, m, "the template is gone", "more  capacity-buffer-more-0", "spare PodTemplateNotFound")
	server.remove("capacitybuffers", testBuffer("more", ofDeployment))
	awaitBuffers(t, m, "a buffer is gone", "spare PodTemplateNotFound")
	if asked := server.requests("replicasets"); asked != 0 {
		t.Errorf("ReplicaSets were asked for %d times, though no buffer refers to one", asked)
	}
}

func TestBuffersThatCannotBeResolved(t *testing.T) {
	t.Parallel()
	other := "example.com/hibernated"
	for _, tc := range []struct {
		reason string
		spec   bufferv1.CapacityBufferSpec
		want   []string
	}{
		{reason: "it refers to nothing", spec: bufferv1.CapacityBufferSpec{Replicas: new(int32(1))}, want: []string{"spare ResolutionFailed"}},
		{
			reason: "a kind without a template of pods",
			spec:   bufferv1.CapacityBufferSpec{Replicas: new(int32(1)), ScalableRef: &bufferv1.ScalableRef{APIGroup: "batch", Kind: "Job", Name: "web"}},
			want:   []string{"spare ResolutionFailed"},
		},
		{
			reason: "limits that bound nothing",
			spec: bufferv1.CapacityBufferSpec{PodTemplateRef: &bufferv1.LocalObjectRef{Name: "web"},
				Limits: corev1.ResourceList{"memory": resource.MustParse("1Gi")}},
			want: []string{"spare ResolutionFailed"},
		},
		{reason: "nothing is asked for",
			spec: bufferv1.CapacityBufferSpec{ScalableRef: &bufferv1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "web"}}, want: []string{"spare "}},
		{reason: "a strategy of somebody else", spec: bufferv1.CapacityBufferSpec{ProvisioningStrategy: &other}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer()
			server.buffers = true
			server.put("podtemplates", testTemplate("web", "1", 1))
			server.put("deployments", testDeployment("web", 3, 1))
			server.put("capacitybuffers", testBuffer("spare", tc.spec))
			server.start(t)
			awaitBuffers(t, runMirror(t, server, Options{}), tc.reason, tc.want...)
		})
	}
}

// TestBuffersThatAreNotServed checks that a cluster without CapacityBuffers works, that they are found once they are
// served, and dropped when they no longer are.
func TestBuffersThatAreNotServed(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.put("podtemplates", testTemplate("web", "1", 1))
	spare := testBuffer("spare", bufferv1.CapacityBufferSpec{PodTemplateRef: &bufferv1.LocalObjectRef{Name: "web"}, Replicas: new(int32(1))})
	server.put("capacitybuffers", spare)
	server.start(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	m := runMirror(t, server, Options{Clock: clock})
	awaitBuffers(t, m, "none are served")
	if err := m.Fresh(time.Minute); err != nil {
		t.Errorf("a cluster without CapacityBuffers: %v", err)
	}

	server.set(func() { server.buffers = true })
	passing := t.Context()
	go func() {
		for passing.Err() == nil {
			if clock.HasWaiters() {
				clock.Step(askAgain)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	awaitBuffers(t, m, "they are served now", "spare  capacity-buffer-spare-0")
	server.set(func() { server.buffers = false })
	server.endWatches()
	awaitBuffers(t, m, "they are served no more")
}

func TestPromisesToVirtualPods(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.buffers = true
	server.put("podtemplates", testTemplate("web", "1", 1))
	spare := testBuffer("spare", bufferv1.CapacityBufferSpec{PodTemplateRef: &bufferv1.LocalObjectRef{Name: "web"}, Replicas: new(int32(1))})
	server.put("capacitybuffers", spare)
	claim := testClaim("c", "aws:///c")
	server.put("nodeclaims", claim)
	server.start(t)
	m := runMirror(t, server, Options{})
	awaitBuffers(t, m, "a buffer", "spare  capacity-buffer-spare-0")
	uid := m.Snapshot().Pending[0].UID
	m.Promise("c", []types.UID{uid}, time.Now().Add(time.Hour))
	if node := m.Snapshot().Nodes[0]; !slices.Equal(node.Promised, []types.UID{uid}) || node.NominatedUntil.IsZero() {
		t.Errorf("a claim in flight is promised to %v until %v, want the virtual pod it was made for", node.Promised, node.NominatedUntil)
	}
	claim.SetCondition(metav1.Condition{Type: "Launched", Status: metav1.ConditionTrue})
	claim.SetCondition(metav1.Condition{Type: "Registered", Status: metav1.ConditionTrue})
	claim.SetCondition(metav1.Condition{Type: "Initialized", Status: metav1.ConditionTrue})
	if err := m.AwaitClaims(within(t), server.put("nodeclaims", claim)); err != nil {
		t.Fatal(err)
	}
	if node := m.Snapshot().Nodes[0]; len(node.Promised) > 0 || !node.NominatedUntil.IsZero() {
		t.Errorf("a node that is ready is promised to %v until %v: virtual pods never come", node.Promised, node.NominatedUntil)
	}
	server.remove("capacitybuffers", spare)
	awaitBuffers(t, m, "the buffer is gone")
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.promises.keyOf) > 0 || len(m.promises.byKey) > 0 {
		t.Errorf("promises to pods that are not wished for any more are kept: %v", m.promises.keyOf)
	}
}

// requests counts the requests for a resource.
func (s *apiServer) requests(resource string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[resource]
}
