package activities

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func taint(key string, effect corev1.TaintEffect) corev1.Taint {
	return corev1.Taint{Key: key, Effect: effect}
}

// launchedClaim returns a claim whose node has to come up with a taint, a startup taint and a GPU.
func launchedClaim() *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "blue-1", UID: "claim-uid", Labels: map[string]string{"team": "blue"}, Annotations: map[string]string{"owner": "platform"}},
		Spec: karpv1.NodeClaimSpec{
			Taints:        []corev1.Taint{taint("dedicated", corev1.TaintEffectNoSchedule)},
			StartupTaints: []corev1.Taint{taint("agent", corev1.TaintEffectNoExecute)},
			Resources: karpv1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1"), "example.com/none": resource.MustParse("0")}},
		},
	}
}

// joinedNode returns a Node as its kubelet has just created it.
func joinedNode(taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1"}, Spec: corev1.NodeSpec{Taints: taints}}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	unregistered := taint(karpv1.UnregisteredTaintKey, corev1.TaintEffectNoExecute)
	notReady := taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule)
	dedicated, agent := taint("dedicated", corev1.TaintEffectNoSchedule), taint("agent", corev1.TaintEffectNoExecute)
	for _, test := range []struct {
		reason string
		node   *corev1.Node
		labels map[string]string
		want   []corev1.Taint
	}{
		{reason: "the claim's taints come where the one that kept pods away was", node: joinedNode(unregistered, notReady),
			want: []corev1.Taint{notReady, dedicated, agent}},
		{reason: "a taint the kubelet has set is not set twice", node: joinedNode(dedicated, unregistered), want: []corev1.Taint{dedicated, agent}},
		{reason: "a startup taint that was removed after the registration stays away", node: joinedNode(dedicated),
			labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true"}, want: []corev1.Taint{dedicated}},
		{reason: "a startup taint that its owner removed before a late registration stays away", node: joinedNode(unregistered, dedicated),
			labels: map[string]string{karpv1.NodeDoNotSyncTaintsLabelKey: "true"}, want: []corev1.Taint{dedicated}},
		{reason: "a node may ask for its taints to be left alone", node: joinedNode(unregistered),
			labels: map[string]string{karpv1.NodeDoNotSyncTaintsLabelKey: "true"}, want: []corev1.Taint{}},
	} {
		node := test.node
		node.Labels = test.labels
		register(node, launchedClaim(), false)
		if diff := cmp.Diff(test.want, node.Spec.Taints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		if node.Labels["team"] != "blue" || node.Labels[karpv1.NodeRegisteredLabelKey] != "true" || node.Annotations["owner"] != "platform" ||
			len(node.Finalizers) != 1 || !owned(node, launchedClaim()) {
			t.Errorf("%s: labels, annotations, finalizer or owner are missing: %+v", test.reason, node.ObjectMeta)
		}
		again := node.DeepCopy()
		register(again, launchedClaim(), false)
		if diff := cmp.Diff(node, again); diff != "" {
			t.Errorf("%s: registering twice changes something (-once +twice):\n%s", test.reason, diff)
		}
	}
}

func TestInitialization(t *testing.T) {
	t.Parallel()
	serving := func(edit func(*corev1.Node)) *corev1.Node {
		node := joinedNode(taint("dedicated", corev1.TaintEffectNoSchedule))
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}
		edit(node)
		return node
	}
	with := func(t corev1.Taint) *corev1.Node {
		return serving(func(node *corev1.Node) { node.Spec.Taints = append(node.Spec.Taints, t) })
	}
	for _, test := range []struct {
		why  string
		node *corev1.Node
		want string
	}{
		{why: "a node with everything serves pods; what was requested as zero may be missing", node: serving(func(*corev1.Node) {}), want: ""},
		{why: "a node is Ready when its kubelet says so",
			node: serving(func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionUnknown }), want: "NodeNotReady"},
		{why: "a node without conditions is not Ready", node: serving(func(node *corev1.Node) { node.Status.Conditions = nil }), want: "NodeNotReady"},
		{why: "startup taints are there until somebody removes them", node: with(taint("agent", corev1.TaintEffectNoExecute)), want: "StartupTaintsExist"},
		{why: "a taint is a startup taint by key and effect", node: with(taint("agent", corev1.TaintEffectNoSchedule)), want: ""},
		{why: "not-ready goes by itself", node: with(taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), want: "KnownEphemeralTaintsExist"},
		{why: "unreachable goes by itself", node: with(taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule)), want: "KnownEphemeralTaintsExist"},
		{why: "unreachable with NoExecute is a node that was lost, not one that starts",
			node: with(taint(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)), want: ""},
		{why: "the cloud controller's taint goes by itself",
			node: with(taint("node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule)), want: "KnownEphemeralTaintsExist"},
		{why: "readiness taints go by themselves", node: with(taint("readiness.k8s.io/network", corev1.TaintEffectNoSchedule)), want: "KnownEphemeralTaintsExist"},
		{why: "an unregistered node does not serve", node: with(taint(karpv1.UnregisteredTaintKey, corev1.TaintEffectNoExecute)), want: "KnownEphemeralTaintsExist"},
		{why: "a device that was requested has to be there",
			node: serving(func(node *corev1.Node) { delete(node.Status.Allocatable, "nvidia.com/gpu") }), want: "ResourceNotRegistered"},
		{why: "a device whose plugin has not counted yet is not there",
			node: serving(func(node *corev1.Node) { node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0") }), want: "ResourceNotRegistered"},
	} {
		if reason, message := initialization(test.node, launchedClaim()); reason != test.want || (message == "") != (reason == "") {
			t.Errorf("%s: got %q (%s), want %q", test.why, reason, message, test.want)
		}
	}
}

// unpublished is a mirror of a cluster in which one driver has published nothing.
type unpublished struct {
	Mirror
	driver string
}

func (u unpublished) UnpublishedDriver(_ string, drivers []string) string {
	if slices.Contains(drivers, u.driver) {
		return u.driver
	}
	return ""
}

// TestDevicesArePublishedFirst checks that a node does not serve before the drivers of its devices have published them.
func TestDevicesArePublishedFirst(t *testing.T) {
	t.Parallel()
	node := joinedNode()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	j := &joiner{mirror: unpublished{driver: "gpu.example.com"}}
	for drivers, want := range map[string]string{
		"": "", "nic.example.com": "", "gpu.example.com": "DRADriverPoolsNotPublished", "nic.example.com,gpu.example.com": "DRADriverPoolsNotPublished",
	} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Annotations: map[string]string{karpv1.DRADriversAnnotationKey: drivers}}}
		if got, _ := j.unready(node, claim); got != want {
			t.Errorf("a claim for devices of %q is kept back by %q, want %q", drivers, got, want)
		}
	}
}

func TestUnguarded(t *testing.T) {
	t.Parallel()
	taint := corev1.Taint{Key: karpv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}
	for _, test := range []struct {
		reason string
		labels map[string]string
		taints []corev1.Taint
		want   bool
	}{
		{reason: "the taint keeps pods away", taints: []corev1.Taint{taint}, want: false},
		{reason: "nothing does", taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}, want: true},
		{reason: "a registered node takes pods", labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true"}, want: false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}, Spec: corev1.NodeSpec{Taints: test.taints}}
		if got := unguarded(node); got != test.want {
			t.Errorf("%s: %v", test.reason, got)
		}
	}
}

// TestNodesAreKeptForThePodsPlannedForThem registers a node that pods wait for, opens it, and registers it once more.
func TestNodesAreKeptForThePodsPlannedForThem(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim"}}
	node := joinedNode(taint(karpv1.UnregisteredTaintKey, corev1.TaintEffectNoExecute))
	for range 2 {
		register(node, claim, true)
		if diff := cmp.Diff([]corev1.Taint{karpv1.ExpectingNoScheduleTaint()}, node.Spec.Taints); diff != "" {
			t.Errorf("taints of a registered node that pods are expected on (-want +got):\n%s", diff)
		}
	}
	if open(node); len(node.Spec.Taints) > 0 {
		t.Errorf("a node that is open has taints: %v", node.Spec.Taints)
	}
	if register(node, claim, true); len(node.Spec.Taints) > 0 {
		t.Errorf("a second try closes the node again: %v", node.Spec.Taints)
	}
}
