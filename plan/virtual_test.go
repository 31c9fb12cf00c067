package plan_test

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tenon-sh/tenon/plan"
)

func TestHowManyPodsABufferIsFor(t *testing.T) {
	t.Parallel()
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	each := plan.ResourcesOf(corev1.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("1")})
	for _, tc := range []struct {
		reason string
		wish   plan.Wish
		want   int
		err    string
	}{
		{reason: "replicas alone", wish: plan.Wish{Replicas: new(int32(3))}, want: 3},
		{reason: "a percentage is rounded up", wish: plan.Wish{Percentage: new(int32(10)), Scale: 11}, want: 2},
		{reason: "more than all of it", wish: plan.Wish{Percentage: new(int32(250)), Scale: 3}, want: 8},
		{reason: "a percentage of nothing", wish: plan.Wish{Percentage: new(int32(50))}, want: 0},
		{reason: "the larger of both counts", wish: plan.Wish{Replicas: new(int32(2)), Percentage: new(int32(50)), Scale: 10}, want: 5},
		{reason: "replicas are the least there is", wish: plan.Wish{Replicas: new(int32(2)), Percentage: new(int32(10)), Scale: 10}, want: 2},
		{reason: "limits bound replicas, rounded down", wish: plan.Wish{Replicas: new(int32(9)), Limits: cpu("5")}, want: 3},
		{reason: "limits that leave room", wish: plan.Wish{Replicas: new(int32(2)), Limits: cpu("100")}, want: 2},
		{reason: "limits alone", wish: plan.Wish{Limits: cpu("6")}, want: 4},
		{reason: "the tightest of the limits", wish: plan.Wish{Limits: corev1.ResourceList{"cpu": resource.MustParse("60"), "memory": resource.MustParse("2500Mi")}}, want: 2},
		{reason: "a limit on pods", wish: plan.Wish{Replicas: new(int32(9)), Limits: corev1.ResourceList{"pods": resource.MustParse("4")}}, want: 4},
		{reason: "a limit too small for one", wish: plan.Wish{Replicas: new(int32(9)), Limits: cpu("1")}, want: 0},
		{reason: "a limit on what is not requested bounds nothing", wish: plan.Wish{Replicas: new(int32(9)), Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("0")}}, want: 9},
		{reason: "nothing is asked for", wish: plan.Wish{Scale: 10}, want: 0},
		{reason: "limits alone that bound nothing", wish: plan.Wish{Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")}}, err: "name no resource that the pods request"},
		{reason: "a mistyped number", wish: plan.Wish{Replicas: new(int32(math.MaxInt32))}, want: plan.MostVirtual},
	} {
		got, err := tc.wish.Count(each)
		switch {
		case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)), tc.err == "" && err != nil:
			t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
		case got != tc.want:
			t.Errorf("%s: %d pods, want %d", tc.reason, got, tc.want)
		}
	}
}

// TestBuffersStayWithinTheirLimits checks that the virtual pods together never request more than the limits, and that
// one more would.
func TestBuffersStayWithinTheirLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		each, limit := rapid.Int64Range(1, 4000).Draw(t, "each"), rapid.Int64Range(0, 4_000_000).Draw(t, "limit")
		wish := plan.Wish{Limits: corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(limit, resource.DecimalSI)}}
		if rapid.Bool().Draw(t, "replicas") {
			wish.Replicas = new(rapid.Int32Range(0, 5000).Draw(t, "wanted"))
		}
		count, err := wish.Count(plan.Resources{CPU: each, Pods: 1})
		if err != nil {
			t.Fatal(err)
		}
		if int64(count)*each > limit {
			t.Errorf("%d pods of %d are more than %d", count, each, limit)
		}
		enough := count == plan.MostVirtual || wish.Replicas != nil && count == int(*wish.Replicas)
		if !enough && int64(count+1)*each <= limit {
			t.Errorf("%d pods of %d leave room within %d", count, each, limit)
		}
	})
}

func TestVirtualPods(t *testing.T) {
	t.Parallel()
	template := func(cpu string) *corev1.PodTemplateSpec {
		return &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec: corev1.PodSpec{
				NodeName: "somewhere", PriorityClassName: "system-cluster-critical", Priority: new(int32(1000)), HostNetwork: true,
				SchedulingGates: []corev1.PodSchedulingGate{{Name: "later"}},
				Containers: []corev1.Container{{
					Name: "main", Ports: []corev1.ContainerPort{{ContainerPort: 80}},
					Resources: corev1.ResourceRequirements{
						Limits:   corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("1Gi")},
						Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)},
					},
				}},
				Volumes: []corev1.Volume{
					{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
					{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
					{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				},
			},
		}
	}
	model := new(plan.Interner).VirtualPod("shop", template("1"))
	pods := model.VirtualPods("uid-of-buffer", "spare", 2)
	pod := pods[1]
	if pod.Name != "capacity-buffer-spare-1" || pod.Namespace != "shop" || pod.Labels.Set["app"] != "web" {
		t.Errorf("pod %s/%s with labels %v", pod.Namespace, pod.Name, pod.Labels.Set)
	}
	if !pod.Virtual || !pod.Provisionable() || pod.Priority != math.MinInt32 || pod.Critical {
		t.Errorf("it is not one that waits behind all others: %+v", pod)
	}
	if got := pod.Class.Requests; got.CPU != 1000 || got.Memory != 1<<30 {
		t.Errorf("requests %s, want those of the template, completed from its limits", got)
	}
	if len(pod.Class.HostPorts) != 1 {
		t.Errorf("ports %v, want the container's, which are the node's", pod.Class.HostPorts)
	}
	if pod.Mounts != nil {
		t.Errorf("it mounts %v", pod.Mounts)
	}
	elsewhere := new(plan.Interner).VirtualPod("shop", template("1")).VirtualPods("uid-of-buffer", "spare", 3)
	if pods[0].UID != elsewhere[0].UID || pods[1].UID != elsewhere[1].UID || pods[0].UID == pods[1].UID {
		t.Errorf("UIDs %s, %s made here, %s, %s elsewhere", pods[0].UID, pods[1].UID, elsewhere[0].UID, elsewhere[1].UID)
	}
	larger := new(plan.Interner).VirtualPod("shop", template("2")).VirtualPods("uid-of-buffer", "spare", 1)
	if larger[0].UID == pods[0].UID {
		t.Error("a pod of another shape has the same UID: it would be kept to what was promised to the first")
	}
}
