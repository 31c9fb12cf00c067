package activities

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	deleted := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	minute := &metav1.Duration{Duration: time.Minute}
	for _, test := range []struct {
		reason string
		noted  string
		grace  *metav1.Duration
		want   time.Time
	}{
		{"without a grace period a drain may take for ever", "", nil, time.Time{}},
		{"the grace period counts from the deletion", "", minute, deleted.Add(time.Minute)},
		{"a grace period of zero is one that is over", "", &metav1.Duration{}, deleted},
		{"what is noted on the claim wins, also where it is later", "2026-03-01T13:00:00Z", minute, deleted.Add(time.Hour)},
		{"what is noted counts without a grace period", "2026-03-01T12:00:30Z", nil, deleted.Add(30 * time.Second)},
		{"a note that cannot be read is no note", "tomorrow", minute, deleted.Add(time.Minute)},
	} {
		claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{TerminationGracePeriod: test.grace}}
		if test.noted != "" {
			claim.Annotations = map[string]string{karpv1.NodeClaimTerminationTimestampAnnotationKey: test.noted}
		}
		if got := DrainDeadline(claim, deleted); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
}

func TestExpireAt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		reason string
		after  string
		want   time.Time
	}{
		{"a claim expires as long after its creation as it says", "720h", created.Add(720 * time.Hour)},
		{"Never is no moment", "Never", time.Time{}},
	} {
		after, err := karpv1.ParseNillableDuration(test.after)
		if err != nil {
			t.Fatal(err)
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, Spec: karpv1.NodeClaimSpec{ExpireAfter: after}}
		if got := expireAt(claim); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
}
