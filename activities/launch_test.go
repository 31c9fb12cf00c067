package activities

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/workflows"
)

// classMirror knows one EC2NodeClass.
type classMirror struct {
	Mirror
	class *awsv1.EC2NodeClass
}

func (m classMirror) Attached(string) []string { return nil }
func (m classMirror) NodeClass(string) cloud.NodeClass {
	if m.class == nil {
		return nil
	}
	return m.class
}

// ec2Kind is a provider of which only the kind of its node classes is known.
type ec2Kind struct{ cloud.Provider }

func (ec2Kind) Kind() cloud.Kind { return nodeclass.Kind() }

// TestAClassThatIsNotReadyLaunchesNothing checks when a launch is given up and when it is retried. It must not ask for
// instance types, because there is no cloud here.
func TestAClassThatIsNotReadyLaunchesNothing(t *testing.T) {
	t.Parallel()
	for reason, test := range map[string]struct {
		status metav1.ConditionStatus
		gone   bool
		fails  string
		gives  bool
	}{
		"it is not Ready, and says why":    {status: metav1.ConditionFalse, fails: "is not Ready: no subnet", gives: true},
		"it has not been looked up yet":    {fails: "has not been resolved yet"},
		"nobody knows whether it is Ready": {status: metav1.ConditionUnknown, fails: "has not been resolved yet"},
		"it is gone":                       {gone: true, fails: "does not exist", gives: true},
	} {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
		if test.status != "" {
			class.Status.Conditions = []metav1.Condition{{Type: karpv1.ConditionTypeReady, Status: test.status, Message: "no subnet"}}
		}
		if test.gone {
			class = nil
		}
		claim := launchedClaim()
		claim.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
		acts := New(Config{Cluster: "c", Kube: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(claim).Build(), Mirror: classMirror{class: class}, Log: zap.NewNop()})
		_, err := run(t, acts.PrepareLaunch, workflows.LaunchGroup{Group: "g", Claims: []workflows.ClaimRef{{Name: claim.Name, UID: string(claim.UID)}}})
		var failure *temporal.ApplicationError
		if err == nil || !strings.Contains(err.Error(), test.fails) || !errors.As(err, &failure) {
			t.Errorf("%s: error %v, want %q", reason, err, test.fails)
			continue
		}
		if gives := failure.Type() == workflows.FailureNodeClassNotReady && failure.NonRetryable(); gives != test.gives {
			t.Errorf("%s: given up %v, want %v", reason, gives, test.gives)
		}
	}
}

// TestALaunchThatIsSentLateReadsItsClaimsAgain sends launches that were recorded a while ago, as those of a restored backup are.
func TestALaunchThatIsSentLateReadsItsClaimsAgain(t *testing.T) {
	t.Parallel()
	kube := fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(groupClaim("waits", "g", ""), groupClaim("launched", "g", "i-1")).Build()
	acts := New(Config{Cluster: "c", Kube: kube, Log: zap.NewNop()})
	ref := func(name string) workflows.ClaimRef { return workflows.ClaimRef{Name: name, UID: "uid-" + name} }
	for reason, test := range map[string]struct {
		claims []workflows.ClaimRef
		ago    time.Duration
		moved  bool
	}{
		"all wait":                        {claims: []workflows.ClaimRef{ref("waits")}, ago: time.Hour},
		"one has an instance":             {claims: []workflows.ClaimRef{ref("waits"), ref("launched")}, ago: time.Hour, moved: true},
		"one is gone":                     {claims: []workflows.ClaimRef{ref("waits"), ref("gone")}, ago: time.Hour, moved: true},
		"another one has its name now":    {claims: []workflows.ClaimRef{{Name: "waits", UID: "earlier"}}, ago: time.Hour, moved: true},
		"just recorded: nothing is asked": {claims: []workflows.ClaimRef{ref("gone")}, ago: time.Second},
	} {
		now := time.Now()
		if moved, err := acts.launcher.movedOn(t.Context(), test.claims, now.Add(-test.ago), now); moved != test.moved || err != nil {
			t.Errorf("%s: moved on %v (%v), want %v", reason, moved, err, test.moved)
		}
	}
}
