package activities

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// TestPackProvided plans while a node is being replaced: nothing is bought for the pods on it, and what is bought for
// others is not larger for them.
func TestPackProvided(t *testing.T) {
	t.Parallel()
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("16Gi"), corev1.ResourcePods: resource.MustParse("50")}
	kind := &cloud.InstanceType{Name: "m6i.xlarge", Labels: map[string]string{corev1.LabelInstanceTypeStable: "m6i.xlarge", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"},
		Capacity: capacity, Allocatable: capacity, Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: "us-east-1a", ZoneID: "use1-az1", Price: 0.2, Available: true}}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: karpv1.NodePoolStatus{Conditions: []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: "True"}}}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	reduce := plan.NewInterner()
	pod := func(name string) *plan.Pod {
		return reduce.Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}}}}},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}})
	}
	marked := func(replacement string) *plan.Node {
		claim, node := serving("a")
		taintDisrupted(node)
		joined := plan.Join(reduce.Claim(claim), reduce.Node(node))
		joined.Replacement = replacement
		return joined.WithPods([]*plan.Pod{pod("moving-1"), pod("moving-2")})
	}
	for _, test := range []struct {
		reason  string
		node    *plan.Node
		pending []*plan.Pod
		want    []types.UID
	}{
		{"nobody sees to the pods of a node that just goes", marked(""), nil, []types.UID{"moving-1", "moving-2"}},
		{"a replacement sees to them", marked("r1"), nil, nil},
		{"others are bought for all the same", marked("r1"), []*plan.Pod{pod("waits")}, []types.UID{"waits"}},
	} {
		in := plan.Input{Snapshot: &plan.Snapshot{Time: time.Now(), Nodes: []*plan.Node{test.node}, NodePools: []*karpv1.NodePool{pool}, Pending: test.pending},
			Pools: []plan.Pool{{NodePool: pool, Types: []*cloud.InstanceType{kind}}}}
		packed := packProvided(in)
		var bought []types.UID
		for i := range packed.Claims {
			bought = append(bought, packed.Claims[i].Pods...)
		}
		slices.Sort(bought)
		if !slices.Equal(bought, test.want) || len(packed.Unplaced) > 0 {
			t.Errorf("%s: bought for %v, left %v", test.reason, bought, packed.Unplaced)
		}
	}
}
