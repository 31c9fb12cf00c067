package worker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

func TestReportsOf(t *testing.T) {
	t.Parallel()
	claim := func(node string) *karpv1.NodeClaim {
		return &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{NodeName: node, ImageID: "ami-1"}}
	}
	node := func(registered string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{corev1.LabelInstanceTypeStable: "m5.large", karpv1.NodeRegisteredLabelKey: registered}},
			Status:     corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("7Gi")}},
		}
	}
	nodes := map[string]*corev1.Node{"registered": node("true"), "joining": node("")}
	got := reportsOf([]*karpv1.NodeClaim{claim("registered"), claim("joining"), claim("gone"), claim("")}, func(name string) *corev1.Node { return nodes[name] })
	want := []cloud.NodeReport{{InstanceType: "m5.large", Image: "ami-1", Memory: 7 << 30}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}
