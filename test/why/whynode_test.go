package why_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/test/world"
)

// protectedPod keeps its node.
const protectedPod = `
apiVersion: v1
kind: Pod
metadata: {namespace: default, name: protected, annotations: {karpenter.sh/do-not-disrupt: "true"}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m}}}]
`

// nodeStory is the part of `tenon why node -o json` that the test reads.
type nodeStory struct {
	State, Summary, Node, NodeClaim, NodePool string
	Verdicts                                  []struct{ Reason, Cause, Message string }
	Past                                      *struct{ Reason, Node, NodeClaim string }
}

// TestWhyNode asks about one node throughout its life: while it stays, by its node name and its claim name, and when it is
// gone.
func TestWhyNode(t *testing.T) {
	t.Parallel()
	w := world.Start(t, world.Options{})
	w.Apply(protectedPod)
	node, claim := "", ""
	w.Await("the pod runs on a node that serves", 3*time.Minute, func() (bool, string) {
		var pod corev1.Pod
		if err := w.Get(w.Context(), client.ObjectKey{Namespace: "default", Name: "protected"}, &pod); err != nil {
			return false, err.Error()
		}
		var claims karpv1.NodeClaimList
		if err := w.List(w.Context(), &claims); err != nil {
			return false, err.Error()
		}
		for i := range claims.Items {
			if claims.Items[i].IsTrue(karpv1.ConditionTypeInitialized) && claims.Items[i].Status.NodeName == pod.Spec.NodeName && pod.Spec.NodeName != "" {
				node, claim = pod.Spec.NodeName, claims.Items[i].Name
			}
		}
		return node != "", string(pod.Status.Phase)
	})
	why := func(name string) nodeStory {
		out, err := w.Tenon("why", "node", name, "-o", "json")
		if err != nil {
			t.Fatalf("tenon why node %s: %v\n%s", name, err, out)
		}
		var s nodeStory
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		t.Logf("%s %s %v", name, s.Summary, s.Verdicts)
		return s
	}
	for _, name := range []string{node, claim} {
		w.Await("the pod is what keeps "+name, time.Minute, func() (bool, string) {
			s := why(name)
			binds := slices.ContainsFunc(s.Verdicts, func(v struct{ Reason, Cause, Message string }) bool {
				return v.Reason == "Underutilized" && v.Cause == "Pod" && strings.Contains(v.Message, "default/protected")
			})
			return s.State == "Stays" && s.Node == node && s.NodeClaim == claim && binds && len(s.Verdicts) == 5, s.Summary
		})
	}
	if out, err := w.Tenon("why", "node", "none"); err == nil || !strings.Contains(out, "no node or NodeClaim none") {
		t.Errorf("a wrong name is to be said to be one: %v\n%s", err, out)
	}
	out, err := w.Tenon("why", "node", node)
	t.Log(out)
	if err != nil || !strings.Contains(out, "IT STAYS BECAUSE") {
		t.Errorf("people get a table: %v\n%s", err, out)
	}

	for _, object := range []client.Object{
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "protected"}}, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim}},
	} {
		if err := w.Delete(w.Context(), object); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{claim, node} {
		w.Await("the reason outlives "+name, 3*time.Minute, func() (bool, string) {
			s := why(name)
			return s.State == "Gone" && s.Past != nil && s.Past.Reason != "" && s.NodeClaim == claim, s.Summary
		})
	}
}
