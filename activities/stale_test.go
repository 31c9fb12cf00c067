package activities

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// lagging is a mirror that may be stale, and shows at most one Node.
type lagging struct {
	Mirror
	stale error
	node  *corev1.Node
}

func (b *lagging) Fresh(time.Duration) error               { return b.stale }
func (b *lagging) NodeByProviderID(id string) *corev1.Node { return b.shown(id) }
func (b *lagging) NodePool(string) *karpv1.NodePool        { return nil }
func (b *lagging) shown(id string) *corev1.Node {
	if b.node == nil || b.node.Spec.ProviderID != id {
		return nil
	}
	return b.node
}

func (b *lagging) AwaitNode(ctx context.Context, id string, ok func(*corev1.Node, *karpv1.NodeClaim) bool) (*corev1.Node, *karpv1.NodeClaim, error) {
	if node := b.shown(id); ok(node, nil) {
		return node, nil, nil
	}
	<-ctx.Done()
	return nil, nil, ctx.Err()
}

// TestAStaleViewEndsNoMachine has a mirror that is behind not know the Node of a claim: nothing is concluded from that.
func TestAStaleViewEndsNoMachine(t *testing.T) {
	t.Parallel()
	const id = "aws:///z/i-1"
	cut := errors.New("the API server has not answered since")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n", Labels: map[string]string{karpv1.NodeRegisteredLabelKey: "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "NodeClaim", Name: "blue-1", UID: "claim-uid"}}}, Spec: corev1.NodeSpec{ProviderID: id}}
	another := node.DeepCopy()
	another.Spec.ProviderID = "aws:///z/i-2"
	leaving := func(nodeName string) *karpv1.NodeClaim {
		claim := launchedClaim()
		now := metav1.Now()
		claim.DeletionTimestamp, claim.Finalizers, claim.Status.NodeName = &now, []string{karpv1.TerminationFinalizer}, nodeName
		return claim
	}
	for reason, test := range map[string]struct {
		claim   *karpv1.NodeClaim
		objects []client.Object
		mirror  *lagging
		want    workflows.JoinResult
		fails   bool
	}{
		"what the claim says of its Node is read, whatever the mirror shows": {claim: leaving("n"), objects: []client.Object{node}, mirror: &lagging{stale: cut},
			want: workflows.JoinResult{Failed: workflows.ReasonClaimDeleted, Node: "n", NodeUID: "uid-n"}},
		"a Node that is gone need not be drained":       {claim: leaving("n"), mirror: &lagging{stale: cut}, want: workflows.JoinResult{Failed: workflows.ReasonClaimDeleted}},
		"another machine's Node is not":                 {claim: leaving("n"), objects: []client.Object{another}, mirror: &lagging{}, want: workflows.JoinResult{Failed: workflows.ReasonClaimDeleted}},
		"a stale mirror cannot say that nothing joined": {claim: leaving(""), mirror: &lagging{stale: cut}, fails: true},
		"a fresh one can":                               {claim: leaving(""), mirror: &lagging{}, want: workflows.JoinResult{Failed: workflows.ReasonClaimDeleted}},
		"a Node that joined without the claim knowing it is found": {claim: leaving(""), mirror: &lagging{node: node},
			want: workflows.JoinResult{Failed: workflows.ReasonClaimDeleted, Node: "n", NodeUID: "uid-n"}},
		"nor can it of a claim that is gone": {mirror: &lagging{stale: cut}, fails: true},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			objects := test.objects
			if test.claim != nil {
				objects = append(objects, test.claim)
			}
			acts := New(Config{Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(objects...).Build(), Mirror: test.mirror, Log: zap.NewNop()})
			env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
			env.RegisterActivity(acts.Join)
			value, err := env.ExecuteActivity(acts.Join, workflows.JoinInput{Claim: workflows.ClaimRef{Name: "blue-1", UID: "claim-uid"}, Instance: workflows.Instance{ID: "i-1", ProviderID: id}})
			if (err != nil) != test.fails {
				t.Fatalf("error %v", err)
			}
			if test.fails {
				return
			}
			var got workflows.JoinResult
			if err := value.Get(&got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestANodeTheMirrorLostIsNotGone covers a node that another worker, whose mirror is ahead, has registered: this worker's
// mirror shows nothing yet.
func TestANodeTheMirrorLostIsNotGone(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid-n"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/i-1"}}
	successor := node.DeepCopy()
	successor.UID = "uid-m"
	claim := launchedClaim()
	claim.Status.ProviderID = node.Spec.ProviderID
	for reason, test := range map[string]struct {
		objects []client.Object
		failed  string
		fails   bool
	}{
		"the API server has it":    {objects: []client.Object{node}, fails: true},
		"the API server lost it":   {failed: workflows.ReasonNodeDeleted},
		"another one has its name": {objects: []client.Object{successor}, failed: workflows.ReasonNodeDeleted},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			acts := New(Config{Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(test.objects...).Build(), Mirror: &lagging{}, Log: zap.NewNop()})
			_, failed, err := acts.awaitInitialization(t.Context(), claim, node, time.Now().Add(time.Minute))
			if failed != test.failed || (err != nil) != test.fails {
				t.Errorf("failed %q, error %v", failed, err)
			}
		})
	}
}

// TestWhoeverBeginsToWaitLateGivesTheNodeAWhile has the registration timeout pass while no worker can see the cluster.
func TestWhoeverBeginsToWaitLateGivesTheNodeAWhile(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for reason, test := range map[string]struct{ launched, want time.Duration }{
		"just launched":              {0, workflows.RegistrationTimeout},
		"long ago":                   {-time.Hour, patience},
		"a moment before it is over": {time.Second - workflows.RegistrationTimeout, patience},
	} {
		claim := launchedClaim()
		claim.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeLaunched, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(test.launched))})
		if got := registerBy(claim, now).Sub(now).Round(time.Second); got != test.want.Round(time.Second) {
			t.Errorf("%s: %s, want %s", reason, got, test.want)
		}
	}
}
