package activities

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/workflows"
)

func TestPostponedExpiry(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const after, grace = 24 * time.Hour, time.Hour
	expired := born.Add(after)
	for _, row := range []struct {
		why, annotation string
		grace           *metav1.Duration
		deleting        bool
		at              time.Time
		want            workflows.Ending
	}{
		{"expiry is a matter of force unless the pool says otherwise", "", &metav1.Duration{Duration: grace}, false, expired, workflows.Ending{}},
		{"a word nobody knows says nothing", "slow", nil, false, expired, workflows.Ending{}},
		{"without a grace period the node may serve for ever", "graceful", nil, false, expired, workflows.Ending{Postponed: true}},
		{"with one, until that has passed as well", "graceful", &metav1.Duration{Duration: grace}, false, expired, workflows.Ending{Postponed: true, Again: expired.Add(grace)}},
		{"then it goes, and its pods have their last grace", "graceful", &metav1.Duration{Duration: grace}, false, expired.Add(grace),
			workflows.Ending{Deadline: expired.Add(grace).Add(lastGrace)}},
		{"a pool that is being deleted replaces nothing", "graceful", nil, true, expired, workflows.Ending{}},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{karpv1.ExpirationAnnotationKey: row.annotation}}}
		if row.deleting {
			pool.DeletionTimestamp = &metav1.Time{Time: row.at}
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)},
			Spec: karpv1.NodeClaimSpec{ExpireAfter: karpv1.NewNillableDuration(after), TerminationGracePeriod: row.grace}}
		if diff := cmp.Diff(row.want, postponedExpiry(claim, pool, row.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.why, diff)
		}
	}
}
