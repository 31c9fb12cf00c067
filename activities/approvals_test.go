package activities

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// approving is a cluster with NodePools as the activities of an Approval see it.
type approving struct{ *replacing }

func (a approving) Node(name string) *corev1.Node { return a.node(name) }

func (a approving) NodePools() []*karpv1.NodePool { return []*karpv1.NodePool{a.NodePool("p")} }

func (a approving) Snapshot() *plan.Snapshot {
	snapshot := a.replacing.Snapshot()
	snapshot.NodePools = a.NodePools()
	return snapshot
}

// newApproving has one node, whose claim carries approvals. Its NodePool consolidates, and wants approval for some reasons.
func newApproving(t *testing.T, needs string, approvals []karpv1.Approval, running []string, more ...client.Object) approving {
	t.Helper()
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid-p", Annotations: map[string]string{karpv1.ApprovalAnnotationKey: needs}}}
	pool.Spec.Disruption = karpv1.Disruption{ConsolidateAfter: karpv1.NewNillableDuration(0), Budgets: []karpv1.Budget{{Nodes: "100%"}}}
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Kind: "EC2NodeClass", Name: "default"}
	claim, node := serving("a")
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.ApprovalsAnnotationKey, karpv1.FormatApprovals(approvals))
	a := approving{newReplacing(t, running, append(more, pool, claim, node)...)}
	a.acts = New(Config{Cluster: "c", Kube: a.WithWatch, Mirror: a, Temporal: &sweptTemporal{running: running}, Events: a.events, Log: zap.NewNop()})
	return a
}

// proposed is the decision to remove the node for being empty.
func (a approving) proposed() workflows.Proposal {
	claim := a.claims()[0]
	return workflows.Proposal{ID: "a1", Reason: "Empty", Does: "remove a", SavesPerHour: 0.25, Nodes: []workflows.RemovedNode{{Node: "node-a", NodeUID: "uid-node", NodePool: "p",
		Claim: workflows.ClaimRef{Name: claim.Name, UID: string(claim.UID)}}}}
}

func (a approving) approvals() []karpv1.Approval { return readApprovals(&a.claims()[0]) }

func (a approving) said() string {
	var all []string
	for {
		select {
		case event := <-a.events.Events:
			all = append(all, event)
		default:
			return strings.Join(all, "\n")
		}
	}
}

// emptied is what people have decided, or are asked, about the removal of the empty node.
func emptied(state karpv1.ApprovalState, lasts time.Duration) karpv1.Approval {
	return karpv1.Approval{ID: "a1", State: state, Reason: karpv1.DisruptionReasonEmpty, Claims: []string{"a"}, By: "bob", Until: time.Now().Add(lasts)}
}

func TestAskApproval(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		reason   string
		before   []karpv1.Approval
		uid      string
		reminder int
		outdated string
		says     string
	}{
		"Asks":     {reason: "the claim is marked, and people are told", says: "Normal ApprovalRequired Empty: waits for approval until"},
		"Reminds":  {reason: "people are reminded", before: []karpv1.Approval{emptied(karpv1.ApprovalWaiting, time.Hour)}, reminder: 2, says: "reminder 2: Empty: waits for approval"},
		"Decided":  {reason: "who has rejected it a moment ago is not asked", before: []karpv1.Approval{emptied(karpv1.ApprovalRejected, time.Hour)}, outdated: "NodeClaim a: bob has decided about it already (Rejected)"},
		"LongAgo":  {reason: "but is asked again later", before: []karpv1.Approval{emptied(karpv1.ApprovalRejected, -time.Hour)}, says: "ApprovalRequired"},
		"Replaced": {reason: "another claim of that name is not meant", uid: "other", outdated: "NodeClaim a is gone or is being removed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApproving(t, "empty", test.before, nil)
			in := workflows.AskApprovalInput{Proposal: a.proposed(), Since: now, Until: now.Add(time.Hour), Reminder: test.reminder}
			if test.uid != "" {
				in.Nodes[0].Claim.UID = test.uid
			}
			checked, err := run(t, a.acts.AskApproval, in)
			if err != nil || checked.Outdated != test.outdated {
				t.Fatalf("%s: %+v, %v", test.reason, checked, err)
			}
			waits := slices.ContainsFunc(a.approvals(), func(a karpv1.Approval) bool {
				return a.State == karpv1.ApprovalWaiting && a.ID == "a1" && a.SavesPerHour == 0.25 && a.Does == "remove a" && slices.Equal(a.Claims, []string{"a"})
			})
			said := a.said()
			if waits != (test.outdated == "") || !strings.Contains(said, test.says) || test.outdated == "" && strings.Count(said, "\n") != 1 || test.outdated != "" && said != "" {
				t.Errorf("%s: the claim says %+v, people are told %s", test.reason, a.approvals(), said)
			}
		})
	}
}

func TestSettleApproval(t *testing.T) {
	t.Parallel()
	approved := workflows.ApprovalResult{Outcome: workflows.ApprovalApproved, By: "alice", Why: "fine"}
	for name, test := range map[string]struct {
		reason, needs string
		result        workflows.ApprovalResult
		pods          []client.Object
		outdated      string
		state         karpv1.ApprovalState
		says          string
	}{
		"Approved": {reason: "the claim says who approved it", result: approved, state: karpv1.ApprovalGranted, says: "Normal ApprovalGranted Empty (a1): approved by alice: fine"},
		"Used":     {reason: "a node that is used by now stays", result: approved, pods: []client.Object{aPod("web", "node-a")}, outdated: "NodeClaim a stays: it runs pod default/web", says: "ApprovalOutdated"},
		"Unneeded": {reason: "nobody need approve it any more", needs: "drift", result: approved, outdated: "approval is not needed any more for empty", says: "ApprovalOutdated"},
		"Rejected": {reason: "the claim says who rejected it", result: workflows.ApprovalResult{Outcome: workflows.ApprovalRejected, By: "alice", Why: "no"}, state: karpv1.ApprovalRejected, says: "Normal ApprovalRejected Empty (a1): rejected by alice, not proposed again before"},
		"Expired":  {reason: "nobody has decided", result: workflows.ApprovalResult{Outcome: workflows.ApprovalExpired}, says: "Warning ApprovalExpired"},
		"Outdated": {reason: "nobody need decide", result: workflows.ApprovalResult{Outcome: workflows.ApprovalOutdated, Why: "it runs"}, outdated: "it runs", says: "needs no approval any more: it runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needs := test.needs
			if needs == "" {
				needs = "empty"
			}
			a := newApproving(t, needs, []karpv1.Approval{emptied(karpv1.ApprovalWaiting, time.Hour)}, nil, test.pods...)
			in := workflows.SettleApprovalInput{Proposal: a.proposed(), ApprovalResult: test.result, At: time.Now(), Until: time.Now().Add(time.Hour)}
			for attempt := range 2 { // the second as after the loss of the first one's answer
				checked, err := run(t, a.acts.SettleApproval, in)
				if err != nil || !strings.Contains(checked.Outdated, test.outdated) || (checked.Outdated == "") != (test.outdated == "") {
					t.Fatalf("%s, attempt %d: %+v, %v", test.reason, attempt, checked, err)
				}
				if said := a.said(); !strings.Contains(said, test.says) {
					t.Errorf("%s: people are told %s", test.reason, said)
				}
			}
			got := a.approvals()
			if len(got) > 1 || (len(got) == 1) != (test.state != "") || len(got) == 1 && (got[0].State != test.state || got[0].By != "alice") {
				t.Errorf("%s: the claim says %+v", test.reason, got)
			}
		})
	}
}

// aPod is a pod of a ReplicaSet on a node.
func aPod(name, node string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, Controller: new(true)}}}}
	pod.Spec.NodeName, pod.Status.Phase = node, corev1.PodRunning
	return pod
}

// TestNothingBeginsUnapproved carries out decisions that were made before their NodePool wanted approval, or whose approval is
// over.
func TestNothingBeginsUnapproved(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason, needs string
		approvals     []karpv1.Approval
		goes          bool
	}{
		{reason: "the NodePool wants no approval", goes: true},
		{reason: "it wants approval for something else", needs: "drift", goes: true},
		{reason: "nobody was asked", needs: "empty"},
		{reason: "nobody has decided", needs: "empty", approvals: []karpv1.Approval{emptied(karpv1.ApprovalWaiting, time.Hour)}},
		{reason: "somebody has rejected it", needs: "empty", approvals: []karpv1.Approval{emptied(karpv1.ApprovalRejected, time.Hour)}},
		{reason: "the approval is over", needs: "empty", approvals: []karpv1.Approval{emptied(karpv1.ApprovalGranted, -time.Hour)}},
		{reason: "it is approved", needs: "empty", approvals: []karpv1.Approval{emptied(karpv1.ApprovalGranted, time.Hour)}, goes: true},
	} {
		a := newApproving(t, test.needs, test.approvals, nil)
		nodes := a.proposed().Nodes
		err := a.acts.replacer.checkNotStopped(t.Context(), workflows.ReplacementCommand{ID: "r", Reason: "Empty", Nodes: nodes})
		if begins := err == nil; begins != test.goes || err != nil && workflows.FailureType(err) != workflows.FailureChanged {
			t.Errorf("%s: a replacement begins: %v", test.reason, err)
		}
		removed, err := a.acts.removeNodes(t.Context(), workflows.Removal{Reason: "Empty", Nodes: nodes}, false)
		if err != nil || (removed.Removed == 1) != test.goes || (len(removed.Kept) == 0) != test.goes {
			t.Errorf("%s: %+v, %v", test.reason, removed, err)
		}
		if gone := !a.claims()[0].DeletionTimestamp.IsZero(); gone != test.goes || !test.goes && disrupted(a.node("node-a")) {
			t.Errorf("%s: the claim is deleted: %t", test.reason, gone)
		}
	}
}

// TestSweepForgetsApprovals removes that people are asked where no workflow waits for them, and nothing that they have decided.
func TestSweepForgetsApprovals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason  string
		running []string
		state   karpv1.ApprovalState
		left    int
	}{
		{reason: "Temporal's database was lost", state: karpv1.ApprovalWaiting},
		{reason: "the workflow waits", state: karpv1.ApprovalWaiting, running: []string{"c/approval/a1"}, left: 1},
		{reason: "an approval outlives its workflow", state: karpv1.ApprovalGranted, left: 1},
		{reason: "a rejection too", state: karpv1.ApprovalRejected, left: 1},
	} {
		a := newApproving(t, "empty", []karpv1.Approval{emptied(test.state, time.Hour)}, test.running)
		claim := a.claims()[0]
		s := sweep{sweeper: a.acts.sweeper, now: time.Now()}
		s.unasked(t.Context(), []*karpv1.NodeClaim{&claim})
		if left := len(a.approvals()); left != test.left || len(s.result.Unasked) != 1-test.left || s.result.Failures > 0 {
			t.Errorf("%s: %d are left, forgotten on %v, failed %v", test.reason, left, s.result.Unasked, s.result.Failed)
		}
	}
}

// TestExpiryByForceWaitsForApproval ends an expired claim that the starter has told to end before its NodePool wanted approval.
func TestExpiryByForceWaitsForApproval(t *testing.T) {
	t.Parallel()
	for needs, goes := range map[string]bool{"": true, "drift": true, "expired": false, "all": false} {
		a := newApproving(t, needs, nil, nil)
		claim := a.claims()[0]
		ending, err := run(t, a.acts.DeleteClaim, workflows.DeleteClaimInput{Claim: claim.Name, UID: string(claim.UID), Reason: workflows.ReasonExpired, Pausable: true})
		if gone := !a.claims()[0].DeletionTimestamp.IsZero(); err != nil || gone != goes || ending.Postponed == goes || ending.Again.IsZero() != goes {
			t.Errorf("approval for %q: deleted %t, %+v, %v", needs, gone, ending, err)
		}
	}
}
