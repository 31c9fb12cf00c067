package starter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// TestANodeThatIsGoneEndsItsClaim removes Nodes without a drain, while the mirror may be behind the API server.
func TestANodeThatIsGoneEndsItsClaim(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	kinds := runtime.NewSchemeBuilder(karpv1.AddToScheme, corev1.AddToScheme)
	if err := kinds.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := metav1.Now()
	for reason, test := range map[string]struct {
		claim    func(*karpv1.NodeClaim)                    // as the mirror shows it
		mirrored func(*corev1.Node)                         // no Node in the mirror where it is nil
		there    func(*corev1.Node)                         // no Node in the API server where it is nil
		fresher  func(claim *karpv1.NodeClaim) (there bool) // what the API server has of the claim
		ends     bool
	}{
		"both are there":                        {mirrored: func(*corev1.Node) {}, there: func(*corev1.Node) {}},
		"the Node is gone":                      {ends: true},
		"the mirror shows a Node late":          {there: func(*corev1.Node) {}},
		"another machine has the Node's name":   {mirrored: another, there: another, ends: true},
		"a kubelet has made its Node anew":      {mirrored: unregistered, there: unregistered, ends: true},
		"the mirror shows a registration late":  {mirrored: unregistered, there: func(*corev1.Node) {}},
		"the claim has not registered":          {claim: func(claim *karpv1.NodeClaim) { claim.Status.Conditions = nil }},
		"the claim leaves":                      {claim: func(claim *karpv1.NodeClaim) { claim.DeletionTimestamp = &now }},
		"the mirror does not show that it does": {fresher: func(claim *karpv1.NodeClaim) bool { claim.DeletionTimestamp = &now; return true }},
		"the mirror shows a claim that is gone": {fresher: func(*karpv1.NodeClaim) bool { return false }},
		"another claim has its name":            {fresher: func(claim *karpv1.NodeClaim) bool { claim.UID = "another"; return true }},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			e := newEdge(t)
			claim := interruptedClaim("a", "i-a")
			claim.Finalizers = []string{karpv1.TerminationFinalizer}
			claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeRegistered, Status: metav1.ConditionTrue})
			if test.claim != nil {
				test.claim(claim)
			}
			server := fake.NewClientBuilder().WithScheme(scheme)
			delete(e.mirror.nodes, "node-a")
			node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: corev1.NodeSpec{ProviderID: claim.Status.ProviderID}}
			if test.mirrored != nil {
				e.mirror.nodes["node-a"] = node.DeepCopy()
				test.mirrored(e.mirror.nodes["node-a"])
			}
			if test.there != nil {
				there := node.DeepCopy()
				test.there(there)
				server.WithObjects(there)
			}
			if fresh := claim.DeepCopy(); test.fresher == nil || test.fresher(fresh) {
				server.WithObjects(fresh)
			}
			e.changes.claims.gone.kube, e.mirror.claimNamed, e.mirror.claims = server.Build(), claim, map[string]*karpv1.NodeClaim{"i-a": claim}
			want := map[string][]workflows.Ending{}
			if test.ends {
				want["c/nodeclaim/a"] = []workflows.Ending{{Reason: workflows.ReasonNodeDeleted}}
			}
			for range 2 { // it is signalled once
				if claim.DeletionTimestamp == nil {
					if _, err := e.changes.claims.changed(t.Context(), "a"); err != nil {
						t.Error(err)
					}
				}
				if test.mirrored == nil {
					if err := e.changes.nodes.changed(t.Context(), "node-a"); err != nil {
						t.Error(err)
					}
					if event, _ := e.changes.queue.Get(); event.Name != "a" {
						t.Errorf("%+v is to be looked at, want the claim", event)
					} else {
						e.changes.queue.Done(event)
					}
				}
			}
			if diff := cmp.Diff(want, e.temporal.endings()); diff != "" {
				t.Errorf("endings (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNotAllNodesAreEndedAtOnce removes more and more Nodes within two minutes, of three nodes and of fifty.
func TestNotAllNodesAreEndedAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for nodes, want := range map[int]int{3: minGone, 50: 5} {
		var lately endedLately
		ended := 0
		for range nodes {
			if lately.may(now, max(minGone, nodes/maxGone)) {
				ended++
			}
		}
		if ended != want {
			t.Errorf("of %d nodes %d are ended at once, want %d", nodes, ended, want)
		}
		if !lately.may(now.Add(goneWithin), 1) {
			t.Errorf("of %d nodes none is ended later", nodes)
		}
	}
}

func another(node *corev1.Node) { node.Spec.ProviderID = "aws:///us-east-1b/i-0" }

func unregistered(node *corev1.Node) {
	node.Spec.Taints = []corev1.Taint{{Key: karpv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}}
}
