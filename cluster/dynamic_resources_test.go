package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// testSlice is one of a number of slices that a driver publishes for a node.
func testSlice(name, node string, of int64) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: of}}}
}

// TestDevicesAreMirrored follows the devices of a node from its first slice until the node is gone.
func TestDevicesAreMirrored(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.devices = true
	node := testNode("n", "aws:///n")
	node.Labels[corev1.LabelInstanceTypeStable], node.Labels[karpv1.NodePoolLabelKey] = "g5.xlarge", "web"
	server.put("nodes", node)
	server.put("deviceclasses", &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
	claim := "gpu"
	server.put("pods", testPod("waits", "", func(pod *corev1.Pod) {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	}))
	server.start(t)
	m := runMirror(t, server, Options{DynamicResources: true})
	subscription := m.Subscribe(DevicesChanged)
	defer subscription.Close()
	seen := func(why string, done func(*plan.Devices) bool, on ...Event) {
		t.Helper()
		if err := m.Await(within(t), func() (bool, error) { return done(m.Snapshot().Devices), nil }, on...); err != nil {
			t.Fatalf("%s: %v", why, err)
		}
		if got := subscription.Take(); len(got) != 1 {
			t.Errorf("%s: events %v, want one", why, got)
		}
	}
	changed := Event{Kind: DevicesChanged}
	if devices := m.Snapshot().Devices; devices.Classes["gpu"] == nil || len(devices.Claims)+len(devices.Slices) != 0 {
		t.Errorf("at first there are %v", devices)
	}
	server.put("resourceclaims", &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: claim}})
	seen("the claim that a pod waits for", func(d *plan.Devices) bool { return d.Claims["default/gpu"] != nil }, changed)
	server.put("resourceslices", testSlice("one", "n", 2))
	seen("half of the node's devices", func(d *plan.Devices) bool { return len(d.Slices) == 1 }, changed)
	if got := m.UnpublishedDriver("n", []string{"gpu.example.com"}); got != "gpu.example.com" {
		t.Errorf("half a pool is published, and %q is missing", got)
	}
	server.put("resourceslices", testSlice("two", "n", 2))
	seen("the rest of them", func(d *plan.Devices) bool { return len(d.Slices) == 2 }, changed)
	if got := m.UnpublishedDriver("n", []string{"gpu.example.com"}); got != "" {
		t.Errorf("all is published, and %q is missing", got)
	}
	server.remove("nodes", node)
	server.remove("resourceslices", testSlice("one", "n", 2))
	server.remove("resourceslices", testSlice("two", "n", 2))
	gone := func(d *plan.Devices) bool { return len(d.Slices) == 0 }
	if err := m.Await(within(t), func() (bool, error) { return gone(m.Snapshot().Devices), nil }, changed); err != nil {
		t.Fatal(err)
	}
	if learnt := m.Snapshot().Devices.Learnt[plan.NodeKind{Pool: "web", InstanceType: "g5.xlarge"}]; len(learnt) != 2 {
		t.Errorf("of the node that is gone, %d slices are remembered", len(learnt))
	}
}

// Without the feature gate the mirror does not request devices, so that a worker needs no permission for them.
func TestDevicesAreLeftAlone(t *testing.T) {
	t.Parallel()
	server := newAPIServer()
	server.devices = true
	server.put("resourceslices", testSlice("one", "n", 1))
	server.start(t)
	m := runMirror(t, server, Options{})
	if got := m.Snapshot().Devices; got != nil || server.requests("resourceslices") != 0 {
		t.Errorf("the snapshot has %v, and %d requests were made for slices", got, server.requests("resourceslices"))
	}
	if got := m.UnpublishedDriver("n", []string{"gpu.example.com"}); got != "" {
		t.Errorf("nodes wait for %q", got)
	}
}
