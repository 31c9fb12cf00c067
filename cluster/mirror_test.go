package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// soon limits every wait in these tests; none of them should take nearly as long.
const soon = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// runMirror returns a running, synced mirror of the server.
func runMirror(t testing.TB, server *apiServer, options Options) *Mirror {
	t.Helper()
	if options.Log == nil {
		options.Log = zaptest.NewLogger(t)
	}
	options.Kind = nodeclass.Kind()
	m, err := NewMirror(server.config(), options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	if err := m.WaitSynced(within(t)); err != nil {
		t.Fatal(err)
	}
	return m
}

func testPod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"},
			CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")}}}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func unschedulable(pod *corev1.Pod) {
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
}

func boundAt(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func ownedBy(kind, name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: &yes}}
	}
}

func testNode(name, providerID string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{corev1.LabelHostname: name},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Images:      []corev1.ContainerImage{{Names: []string{"registry/image:v1"}}},
		},
	}
}

func testClaim(name, providerID string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}},
		Spec:       karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}},
		Status:     karpv1.NodeClaimStatus{ProviderID: providerID},
	}
}

// shape is the part of a snapshot that tests compare: places with their pods, and the pods without one.
func shape(s *plan.Snapshot) []string {
	var lines []string
	for _, node := range s.Nodes {
		line := fmt.Sprintf("claim=%s node=%s provider=%s:", node.Claim, node.Name, node.ProviderID)
		for _, pod := range node.Pods {
			line += " " + pod.Name
		}
		if len(node.AttachLimits)+len(node.Attached) > 0 {
			line += fmt.Sprintf(" attached=%v limits=%v", node.Attached, node.AttachLimits)
		}
		lines = append(lines, line)
	}
	for _, pod := range s.Pending {
		lines = append(lines, "pending "+pod.Name)
	}
	return lines
}

// awaitShape waits until the snapshot has a shape; on a timeout it reports the difference.
func awaitShape(t *testing.T, m *Mirror, why string, want ...string) {
	t.Helper()
	subscription := m.Subscribe(PodsPending, ClaimChanged, NodeChanged, PodsChanged)
	defer subscription.Close()
	ctx := within(t)
	for {
		diff := cmp.Diff(want, shape(m.Snapshot()))
		if diff == "" {
			return
		}
		select {
		case <-subscription.C:
			subscription.Take()
		case <-ctx.Done():
			t.Fatalf("%s (-want +got):\n%s", why, diff)
		}
	}
}

func TestSnapshotJoinsClaimsNodesAndPods(t *testing.T) {
	t.Parallel()
	for _, mode := range []struct {
		name     string
		listOnly bool
	}{{"initial state streamed", false}, {"initial state listed", true}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			server := newAPIServer().start(t)
			server.set(func() { server.listOnly = mode.listOnly })
			server.put("nodes", testNode("node-a", "aws:///a"))
			server.put("nodes", testNode("node-x", ""))
			server.put("nodeclaims", testClaim("claim-a", "aws:///a"))
			server.put("nodeclaims", testClaim("claim-b", ""))
			server.put("pods", testPod("p1", "node-a"))
			server.put("pods", testPod("p2", "", unschedulable))
			server.put("pods", testPod("ended", "node-a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }))
			m := runMirror(t, server, Options{})
			awaitShape(t, m, "the first list",
				"claim=claim-a node=node-a provider=aws:///a: p1", "claim=claim-b node= provider=:", "claim= node=node-x provider=:", "pending p2")

			server.put("nodeclaims", testClaim("claim-b", "aws:///b"))
			server.put("nodes", testNode("node-b", "aws:///b"))
			server.put("pods", testPod("p2", "node-b", boundAt(time.Unix(1_700_000_100, 0))))
			awaitShape(t, m, "a claim gets a node, the pod is bound",
				"claim=claim-a node=node-a provider=aws:///a: p1", "claim=claim-b node=node-b provider=aws:///b: p2", "claim= node=node-x provider=:")

			server.put("pods", testPod("p1", "node-a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }))
			server.remove("nodes", testNode("node-b", "aws:///b"))
			awaitShape(t, m, "a pod that ended is gone, a claim without its node is in flight again",
				"claim=claim-a node=node-a provider=aws:///a:", "claim=claim-b node= provider=aws:///b:", "claim= node=node-x provider=:")

			server.put("nodes", testNode("node-x", "aws:///b"))
			awaitShape(t, m, "a provider id that comes late pairs node and claim",
				"claim=claim-a node=node-a provider=aws:///a:", "claim=claim-b node=node-x provider=aws:///b:")
		})
	}
}
