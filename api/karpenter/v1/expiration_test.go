package v1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestExpiresAt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		reason string
		after  string
		want   time.Time
	}{
		{reason: "a claim expires as long after its creation as it says", after: "720h", want: created.Add(720 * time.Hour)},
		{reason: "Never is no moment", after: "Never", want: time.Time{}},
	} {
		after, err := karpv1.ParseNillableDuration(test.after)
		if err != nil {
			t.Fatal(err)
		}
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, Spec: karpv1.NodeClaimSpec{ExpireAfter: after}}
		if got := claim.ExpiresAt(); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
}
