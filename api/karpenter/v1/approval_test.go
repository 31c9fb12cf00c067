package v1_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// approvable are all reasons that may need approval.
var approvable = []v1.DisruptionReason{v1.DisruptionReasonDrifted, v1.DisruptionReasonUnderutilized, v1.DisruptionReasonEmpty, "Expired"}

func TestNeedsApproval(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, approval, expires string
		needs                     []v1.DisruptionReason
		lasts                     time.Duration
		stops                     string
	}{
		"None":    {reason: "without the annotation nobody is asked", lasts: 72 * time.Hour},
		"Two":     {reason: "words are separated by commas, in any case", approval: "Drift, underutilized", needs: []v1.DisruptionReason{"Drifted", "Underutilized"}, lasts: 72 * time.Hour},
		"All":     {reason: "all stands for every reason", approval: "all", needs: approvable, lasts: 72 * time.Hour},
		"Wrong":   {reason: "a misspelt word stops disruption, and says so", approval: "drift,idle", needs: approvable, lasts: 72 * time.Hour, stops: `"idle" must be drift, underutilized, empty, expired or all`},
		"Repair":  {reason: "what may not need approval is misspelt", approval: "unhealthy", needs: approvable, lasts: 72 * time.Hour, stops: `"unhealthy" must be`},
		"Expires": {reason: "a pool has its own time", approval: "empty", expires: "2h", needs: []v1.DisruptionReason{"Empty"}, lasts: 2 * time.Hour},
		"Never":   {reason: "an expiry that cannot be read stops disruption", approval: "empty", expires: "soon", needs: []v1.DisruptionReason{"Empty"}, lasts: 72 * time.Hour, stops: `tenon.sh/approval-expires: "soon" must be a positive duration`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{v1.ApprovalAnnotationKey: test.approval, v1.ApprovalExpiresAnnotationKey: test.expires}}}
			for _, reason := range append(slices.Clone(approvable), "Overprovisioned", "Unhealthy") {
				if got := pool.NeedsApproval(reason); got != slices.Contains(test.needs, reason) {
					t.Errorf("%s: %s needs approval: %t", test.reason, reason, got)
				}
			}
			if lasts, _ := pool.ApprovalExpiry(); lasts != test.lasts {
				t.Errorf("%s: it waits for %s, want %s", test.reason, lasts, test.lasts)
			}
			stop := v1.StopOf(v1.PauseDisruption, nil, pool, pauseNow)
			if (stop != nil) != (test.stops != "") || stop != nil && !strings.Contains(stop.String(), test.stops) {
				t.Errorf("%s: it is stopped by %v, want %q", test.reason, stop, test.stops)
			}
			if other := v1.StopOf(v1.PauseProvisioning, nil, pool, pauseNow); other != nil {
				t.Errorf("%s: it stops provisioning: %v", test.reason, other)
			}
		})
	}
}

// TestApprovalsReadBack checks that approvals are read as they were written, that the last word on a reason holds, and that
// nothing holds beyond its end.
func TestApprovalsReadBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var approvals []v1.Approval
		now := pauseNow
		last := map[v1.DisruptionReason]v1.Approval{}
		for range rapid.IntRange(0, 8).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3600).Draw(t, "passes")) * time.Second)
			a := v1.Approval{ID: rapid.SampledFrom([]string{"a1", "a2"}).Draw(t, "id"), Reason: rapid.SampledFrom(approvable).Draw(t, "reason"), For: rapid.SampledFrom([]string{"", "x"}).Draw(t, "for"),
				State: rapid.SampledFrom([]v1.ApprovalState{v1.ApprovalWaiting, v1.ApprovalGranted, v1.ApprovalRejected}).Draw(t, "state"), Note: rapid.StringMatching(`[a-z",\[ ]{0,8}`).Draw(t, "note"),
				Since: now, Until: now.Add(time.Duration(rapid.IntRange(1, 7200).Draw(t, "lasts")) * time.Second)}
			if rapid.Bool().Draw(t, "drop") {
				approvals = v1.DropApproval(approvals, a.ID, now)
				for reason, was := range last {
					if was.ID == a.ID && was.State == v1.ApprovalWaiting {
						delete(last, reason)
					}
				}
			} else {
				approvals = v1.SetApproval(approvals, a, now)
				last[a.Reason] = a
			}
			for _, reason := range approvable {
				for _, drift := range []string{"", "x"} {
					want, known := last[reason]
					known = known && now.Before(want.Until) && (reason != v1.DisruptionReasonDrifted || want.For == drift)
					got := v1.ApprovalOf(approvals, reason, drift, now)
					if (got != nil) != known || known && !cmp.Equal(*got, want) {
						t.Fatalf("for %s %q: %v, want %v", reason, drift, got, want)
					}
				}
			}
			if diff := cmp.Diff(approvals, v1.ReadApprovals(v1.FormatApprovals(approvals))); len(approvals) > 0 && diff != "" {
				t.Fatalf("approvals (-written +read):\n%s", diff)
			}
		}
	})
}

func TestMayGo(t *testing.T) {
	t.Parallel()
	drifted := func(message string) *v1.NodeClaim {
		claim := &v1.NodeClaim{}
		claim.SetCondition(metav1.Condition{Type: v1.ConditionTypeDrifted, Status: metav1.ConditionTrue, Reason: "AMIDrift", Message: message})
		return claim
	}
	old := drifted("ami-1").DriftHash()
	for name, test := range map[string]struct {
		reason, annotation string
		is                 v1.DisruptionReason
		approvals          []v1.Approval
		claim              *v1.NodeClaim
		may                bool
	}{
		"NotAsked":  {reason: "its pool asks for nothing", is: "Drifted", claim: drifted("ami-1"), may: true},
		"Missing":   {reason: "nobody has approved it", annotation: "drift", is: "Drifted", claim: drifted("ami-1")},
		"Approved":  {reason: "somebody has", annotation: "drift", is: "Drifted", claim: drifted("ami-1"), may: true, approvals: []v1.Approval{{Reason: "Drifted", For: old, State: v1.ApprovalGranted, Until: pauseNow.Add(1)}}},
		"Over":      {reason: "too long ago", annotation: "drift", is: "Drifted", claim: drifted("ami-1"), approvals: []v1.Approval{{Reason: "Drifted", For: old, State: v1.ApprovalGranted, Until: pauseNow}}},
		"Waiting":   {reason: "who is asked has not approved", annotation: "drift", is: "Drifted", claim: drifted("ami-1"), approvals: []v1.Approval{{Reason: "Drifted", For: old, State: v1.ApprovalWaiting, Until: pauseNow.Add(1)}}},
		"Further":   {reason: "it has drifted further since", annotation: "drift", is: "Drifted", claim: drifted("ami-2"), approvals: []v1.Approval{{Reason: "Drifted", For: old, State: v1.ApprovalGranted, Until: pauseNow.Add(1)}}},
		"Otherwise": {reason: "another reason was approved", annotation: "all", is: "Empty", claim: drifted("ami-1"), approvals: []v1.Approval{{Reason: "Drifted", For: old, State: v1.ApprovalGranted, Until: pauseNow.Add(1)}}},
		"Surplus":   {reason: "replicas are a person's own order", annotation: "all", is: "Overprovisioned", claim: drifted("ami-1"), may: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.claim.Annotations = map[string]string{v1.ApprovalsAnnotationKey: v1.FormatApprovals(test.approvals)}
			pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.ApprovalAnnotationKey: test.annotation}}}
			if got := test.claim.MayGo(pool, test.is, pauseNow); got != test.may {
				t.Errorf("%s: it may go: %t", test.reason, got)
			}
		})
	}
}
