package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestExpiry(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const after, grace = 24 * time.Hour, time.Hour
	expired := born.Add(after)
	for _, row := range []struct {
		why, annotation string
		approval        string
		grace           *metav1.Duration
		deleting        bool
		at              time.Time
		want            plan.Expiry
	}{
		{why: "expiry is a matter of force unless the pool says otherwise", annotation: "", grace: &metav1.Duration{Duration: grace},
			deleting: false, at: expired, want: plan.Expiry{}},
		{why: "a word nobody knows says nothing", annotation: "slow", deleting: false, at: expired, want: plan.Expiry{}},
		{why: "without a grace period the node may serve for ever", annotation: "graceful", deleting: false, at: expired, want: plan.Expiry{Postponed: true}},
		{why: "with one, until that has passed as well", annotation: "graceful", grace: &metav1.Duration{Duration: grace}, deleting: false,
			at: expired, want: plan.Expiry{Postponed: true, Again: expired.Add(grace)}},
		{why: "then it goes, and its pods have their last grace", annotation: "graceful", grace: &metav1.Duration{Duration: grace}, deleting: false, at: expired.Add(grace),
			want: plan.Expiry{Deadline: expired.Add(grace).Add(30 * time.Second)}},
		{why: "what needs approval is never ended by force", approval: "expired", grace: &metav1.Duration{Duration: grace}, at: expired.Add(grace), want: plan.Expiry{Postponed: true}},
		{why: "approval for something else does not matter", approval: "drift", grace: &metav1.Duration{Duration: grace}, at: expired.Add(grace), want: plan.Expiry{}},
		{why: "a person who deletes the pool has decided", approval: "expired", deleting: true, at: expired, want: plan.Expiry{}},
		{why: "a pool that is being deleted replaces nothing", annotation: "graceful", deleting: true, at: expired, want: plan.Expiry{}},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{karpv1.ExpirationAnnotationKey: row.annotation, karpv1.ApprovalAnnotationKey: row.approval}}}
		if row.deleting {
			pool.DeletionTimestamp = &metav1.Time{Time: row.at}
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)},
			Spec: karpv1.NodeClaimSpec{ExpireAfter: karpv1.NewNillableDuration(after), TerminationGracePeriod: row.grace}}
		if diff := cmp.Diff(row.want, plan.ExpiryOf(claim, pool, row.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.why, diff)
		}
	}
}
