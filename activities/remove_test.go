package activities

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// pooled returns a launched claim of the static pool, with a finalizer that keeps it once it is deleted.
func pooled(name string) *karpv1.NodeClaim {
	claim := groupClaim(name, "s-1-0", "i-"+name)
	claim.Labels = map[string]string{karpv1.NodePoolLabelKey: "static"}
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	return claim
}

// TestRemoveSurplus removes nodes of a static pool: as many as the API server still has beyond the replicas, whatever runs
// on them, each with its reason recorded.
func TestRemoveSurplus(t *testing.T) {
	t.Parallel()
	leaving := pooled("leaving")
	leaving.DeletionTimestamp = new(metav1.Now())
	for _, test := range []struct {
		reason   string
		replicas *int64
		want     workflows.RemovalResult
		deleted  []string
	}{
		{reason: "all that were found", replicas: new(int64(1)), want: workflows.RemovalResult{Removed: 2}, deleted: []string{"a", "joining", "leaving"}},
		{
			reason: "the pool was scaled up meanwhile", replicas: new(int64(2)),
			want: workflows.RemovalResult{Removed: 1,
				Kept: []string{"joining: its NodePool has no nodes beyond its replicas any more"}}, deleted: []string{"a", "leaving"},
		},
		{
			reason: "and further", replicas: new(int64(9)), want: workflows.RemovalResult{Kept: []string{"a: its NodePool has no nodes beyond its replicas any more",
				"joining: its NodePool has no nodes beyond its replicas any more"}}, deleted: []string{"leaving"},
		},
		{reason: "the pool is gone", want: workflows.RemovalResult{}, deleted: []string{"leaving"}},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "uid-node"}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "runs"}, Spec: corev1.PodSpec{NodeName: "node-a"}}
		objects := []client.Object{pooled("a"), pooled("joining"), pooled("stays"), leaving.DeepCopy(), node, pod}
		if test.replicas != nil {
			pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
			pool.Spec.Replicas = test.replicas
			objects = append(objects, pool)
		}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).
			WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
		removal := workflows.Removal{Reason: "Overprovisioned", Nodes: []workflows.RemovedNode{
			{Claim: workflows.ClaimRef{Name: "leaving", UID: string(leaving.UID)}},
			{Node: "node-a", NodeUID: "uid-node", Claim: workflows.ClaimRef{Name: "a", UID: string(pooled("a").UID)}},
			{Claim: workflows.ClaimRef{Name: "joining", UID: string(pooled("joining").UID)}},
		}}
		env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
		acts := New(Config{Kube: kube, Log: zap.NewNop(), Events: record.NewFakeRecorder(10)})
		env.RegisterActivity(acts.Remove)
		value, err := env.ExecuteActivity(acts.Remove, removal)
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		var got workflows.RemovalResult
		if err := value.Get(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
		var claims karpv1.NodeClaimList
		if err := kube.List(context.Background(), &claims); err != nil {
			t.Fatal(err)
		}
		var deleted []string
		for i := range claims.Items {
			claim := &claims.Items[i]
			if claim.DeletionTimestamp.IsZero() {
				continue
			}
			deleted = append(deleted, claim.Name)
			if claim.Name == "joining" && claim.Annotations[karpv1.RemovalReasonAnnotationKey] != "Overprovisioned" {
				t.Errorf("%s: nobody can tell why claim %s goes", test.reason, claim.Name)
			}
		}
		if diff := cmp.Diff(test.deleted, deleted); diff != "" {
			t.Errorf("%s: deleted (-want +got):\n%s", test.reason, diff)
		}
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(node), node); err != nil {
			t.Fatal(err)
		}
		if going := node.Annotations[karpv1.RemovalReasonAnnotationKey] == "Overprovisioned"; going != (got.Removed > 0) {
			t.Errorf("%s: the Node is marked %v", test.reason, node.Annotations)
		}
	}
}
