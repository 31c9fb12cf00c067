package activities

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// TestTaintsOfOthers patches a Node from the taint with which it booted to the one that reserves it for its pods, after
// Kubernetes has changed other taints since the Node was read.
func TestTaintsOfOthers(t *testing.T) {
	t.Parallel()
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	booting, ours := taint(karpv1.UnregisteredTaintKey), karpv1.ExpectingNoScheduleTaint()
	starting, away := taint(corev1.TaintNodeNotReady), taint(corev1.TaintNodeUnreachable)
	for _, test := range []struct {
		reason    string
		seen, now []corev1.Taint
		want      []corev1.Taint
		refused   bool
	}{
		{reason: "nobody else has done anything", seen: []corev1.Taint{booting, starting}, now: []corev1.Taint{booting, starting},
			want: []corev1.Taint{starting, ours}, refused: false},
		{reason: "one has come behind, which stays", seen: []corev1.Taint{booting, starting}, now: []corev1.Taint{booting, starting, away},
			want: []corev1.Taint{starting, away, ours}, refused: false},
		{reason: "one that comes last has gone, and stays away", seen: []corev1.Taint{booting, starting}, now: []corev1.Taint{booting},
			want: []corev1.Taint{ours}, refused: false},
		{reason: "one has gone before it: it is another's place now", seen: []corev1.Taint{starting, booting}, now: []corev1.Taint{booting}, refused: true},
		{reason: "none was seen, and one has come", now: []corev1.Taint{starting}, refused: true},
		{reason: "none was seen, and there is none", want: []corev1.Taint{ours}, refused: false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: test.now}}
		kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(node).Build()
		before := node.DeepCopy()
		before.Spec.Taints = test.seen
		after := before.DeepCopy()
		after.Spec.Taints = append(slices.DeleteFunc(after.Spec.Taints, func(t corev1.Taint) bool { return t.Key == booting.Key }), ours)
		patch, err := nodePatch(before, after)
		if err != nil {
			t.Fatal(err)
		}
		err = kube.Patch(context.Background(), after, client.RawPatch(types.JSONPatchType, patch))
		if refused := err != nil; refused != test.refused {
			t.Errorf("%s: %s: %v", test.reason, patch, err)
		}
		want := test.want
		if test.refused {
			want = test.now
		}
		var got corev1.Node
		if err := kube.Get(context.Background(), client.ObjectKeyFromObject(node), &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Spec.Taints, want) {
			t.Errorf("%s: taints %v, want %v", test.reason, got.Spec.Taints, want)
		}
	}
}
