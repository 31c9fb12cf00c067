package status

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bufferv1 "github.com/tenon-sh/tenon/api/autoscaling/v1beta1"
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
		// ready and provisioning are the status, the reason and a part of the message.
		ready, provisioning string
		replicas            *int32
	}{
		{reason: "all the room is there", buffer: cluster.Buffer{Pods: pods(3)}, there: 3, ready: "True Resolved ",
			provisioning: "True FitsExistingCapacity there is room for 3 pods", replicas: new(int32(3))},
		{reason: "some of it is", buffer: cluster.Buffer{Pods: pods(3)}, there: 1, ready: "True Resolved ",
			provisioning: "True RequiresNewCapacity there is room for 1 of 3 pods", replicas: new(int32(3))},
		{reason: "no pods are wanted", buffer: cluster.Buffer{}, there: 0, ready: "True Resolved ",
			provisioning: "False BufferEmpty no pods", replicas: new(int32(0))},
		{
			reason: "the template is missing", buffer: cluster.Buffer{Reason: bufferv1.ReasonPodTemplateNotFound, Problem: `there is no PodTemplate "web"`}, there: 0,
			ready: `False PodTemplateNotFound there is no PodTemplate "web"`, provisioning: "False NotReadyForProvisioning ",
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
		// A second look computes the same status, so nothing is written again.
		after := object.DeepCopy()
		after.Status = status
		tc.buffer.Object = after
		if diff := cmp.Diff(status, bufferStatus(&tc.buffer, tc.there)); diff != "" {
			t.Errorf("%s: a second look changes the status (-first +second)\n%s", tc.reason, diff)
		}
	}
}
