package starter

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/plan"
)

func TestBufferStatus(t *testing.T) {
	t.Parallel()
	object := &bufferv1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Name: "spare", Generation: 4},
		Spec: bufferv1.CapacityBufferSpec{PodTemplateRef: &bufferv1.LocalObjectRef{Name: "web"}}}
	pods := func(count int) []*plan.Pod { return make([]*plan.Pod, count) }
	for _, tc := range []struct {
		reason string
		buffer cluster.Buffer
		there  int
		// ready and provisioning are status, reason and a part of the message.
		ready, provisioning string
		replicas            *int32
	}{
		{"all the room is there", cluster.Buffer{Pods: pods(3)}, 3, "True Resolved ", "True FitsExistingCapacity there is room for 3 pods", new(int32(3))},
		{"some of it is", cluster.Buffer{Pods: pods(3)}, 1, "True Resolved ", "True RequiresNewCapacity there is room for 1 of 3 pods", new(int32(3))},
		{"no pods are wanted", cluster.Buffer{}, 0, "True Resolved ", "False BufferEmpty no pods", new(int32(0))},
		{
			"the template is missing", cluster.Buffer{Reason: bufferv1.ReasonPodTemplateNotFound, Problem: `there is no PodTemplate "web"`}, 0,
			`False PodTemplateNotFound there is no PodTemplate "web"`, "False NotReadyForProvisioning ", nil,
		},
	} {
		tc.buffer.Object = object
		status := bufferStatus(&tc.buffer, tc.there)
		told := &bufferv1.CapacityBuffer{Status: status}
		for kind, want := range map[string]string{bufferv1.ConditionReadyForProvisioning: tc.ready, bufferv1.ConditionProvisioning: tc.provisioning} {
			c := told.Condition(kind)
			if got := string(c.Status) + " " + c.Reason + " " + c.Message; !strings.HasPrefix(got, want) || c.ObservedGeneration != 4 {
				t.Errorf("%s: %s is %q of generation %d, want %q", tc.reason, kind, got, c.ObservedGeneration, want)
			}
		}
		if diff := cmp.Diff(tc.replicas, status.Replicas); diff != "" {
			t.Errorf("%s: replicas (-want +got)\n%s", tc.reason, diff)
		}
		// What was written is what would be written again: nothing is.
		after := object.DeepCopy()
		after.Status = status
		tc.buffer.Object = after
		if diff := cmp.Diff(status, bufferStatus(&tc.buffer, tc.there)); diff != "" {
			t.Errorf("%s: a second look changes the status (-first +second)\n%s", tc.reason, diff)
		}
	}
}

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
