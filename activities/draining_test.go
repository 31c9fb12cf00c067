package activities

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

// drainingClaim returns the claim of node "n", being deleted or not.
func drainingClaim(deleted bool) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "claim-uid", Finalizers: []string{karpv1.TerminationFinalizer}},
		Status: karpv1.NodeClaimStatus{NodeName: "n"}}
	if deleted {
		claim.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	}
	return claim
}

// claimsClient returns an API server that holds the claims.
func claimsClient(t *testing.T, claims ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpv1.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(claims...).WithStatusSubresource(&karpv1.NodeClaim{}).Build()
}

func TestTellDraining(t *testing.T) {
	t.Parallel()
	pods := workflows.EvictResult{Left: 1, Blockers: []workflows.Blocker{{Pod: "team/web", Message: "PodDisruptionBudget web needs 2 healthy pods and has 2"}}}
	volumes := workflows.EvictResult{Blockers: []workflows.Blocker{{Message: "volume pv-1 is attached"}}}
	for _, test := range []struct {
		reason  string
		deleted bool
		node    string
		result  workflows.EvictResult
		want    map[string]metav1.ConditionStatus
		message string
	}{
		{reason: "a pod that cannot go holds up the drain of a claim that has to", deleted: true, node: "n", result: pods,
			want: map[string]metav1.ConditionStatus{karpv1.ConditionTypeDrained: metav1.ConditionUnknown, karpv1.ConditionTypeDisruptionReason: metav1.ConditionTrue}, message: "1 pod is left: team/web"},
		{reason: "volumes are waited for once the pods are gone", deleted: true, node: "n", result: volumes,
			want: map[string]metav1.ConditionStatus{karpv1.ConditionTypeDrained: metav1.ConditionTrue, karpv1.ConditionTypeVolumesDetached: metav1.ConditionUnknown}, message: "volume pv-1"},
		{reason: "a drain that may be taken back leaves no trace on the claim", deleted: false, node: "n", result: pods,
			want: map[string]metav1.ConditionStatus{}, message: ""},
		{reason: "the claim of another node of that name is not this one", deleted: true, node: "m", result: pods,
			want: map[string]metav1.ConditionStatus{}, message: ""},
	} {
		kube := claimsClient(t, drainingClaim(test.deleted))
		a := New(Config{Kube: kube, Log: zap.NewNop()})
		if err := a.tellDraining(context.Background(), workflows.EvictInput{Node: test.node, Claim: "claim", Reason: workflows.ReasonEmpty}, test.result); err != nil {
			t.Fatalf("%s: %v", test.reason, err)
		}
		var claim karpv1.NodeClaim
		if err := kube.Get(context.Background(), client.ObjectKey{Name: "claim"}, &claim); err != nil {
			t.Fatal(err)
		}
		messages := ""
		for _, condition := range claim.Status.Conditions {
			messages += condition.Message
		}
		for kind, status := range test.want {
			if got := claim.Condition(kind); got == nil || got.Status != status {
				t.Errorf("%s: condition %s is %+v, want %s", test.reason, kind, got, status)
			}
		}
		if len(test.want) == 0 && len(claim.Status.Conditions) > 0 {
			t.Errorf("%s: conditions %+v", test.reason, claim.Status.Conditions)
		}
		if !strings.Contains(messages, test.message) {
			t.Errorf("%s: messages %q, want %q among them", test.reason, messages, test.message)
		}
	}
}

func TestReleaseSaysWhyAClaimIsGone(t *testing.T) {
	t.Parallel()
	kube, events := claimsClient(t, drainingClaim(false)), record.NewFakeRecorder(4)
	a := New(Config{Kube: kube, Events: events, Log: zap.NewNop()})
	in := workflows.ReleaseClaimsInput{Claims: []workflows.ClaimRef{{Name: "claim", UID: "claim-uid"}}, Reason: workflows.ReasonInsufficient, Message: "no instance type allows zz.large"}
	var suite testsuite.WorkflowTestSuite
	environment := suite.NewTestActivityEnvironment()
	environment.RegisterActivity(a.ReleaseClaims)
	if _, err := environment.ExecuteActivity(a.ReleaseClaims, in); err != nil {
		t.Fatal(err)
	}
	select {
	case event := <-events.Events:
		if event != "Warning InsufficientCapacityError no instance type allows zz.large" {
			t.Errorf("event %q", event)
		}
	default:
		t.Error("nobody was told")
	}
	if err := kube.Get(context.Background(), client.ObjectKey{Name: "claim"}, &karpv1.NodeClaim{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the claim: %v, want it gone", err)
	}
}
