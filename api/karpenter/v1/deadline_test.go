package v1

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		claim := &NodeClaim{Spec: NodeClaimSpec{TerminationGracePeriod: test.grace}}
		if test.noted != "" {
			claim.Annotations = map[string]string{NodeClaimTerminationTimestampAnnotationKey: test.noted}
		}
		if got := claim.DrainDeadline(deleted); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", test.reason, got, test.want)
		}
	}
}

func TestEndsAt(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for _, test := range []struct {
		reason    string
		deleted   *metav1.Time
		announced string
		grace     time.Duration
		want      time.Duration // after deleted
	}{
		{"a claim that is wanted has no end", nil, "", time.Minute, -1},
		{"what the cloud announces counts at once", nil, "2026-03-01T12:02:00Z", 0, 2 * time.Minute},
		{"without a grace period a drain may take for ever", &deleted, "", 0, -1},
		{"the deadline of the drain", &deleted, "", time.Hour, time.Hour},
		{"the cloud does not wait for the drain's deadline", &deleted, "2026-03-01T12:02:00Z", time.Hour, 2 * time.Minute},
		{"nor for a drain without one", &deleted, "2026-03-01T12:02:00Z", 0, 2 * time.Minute},
		{"the drain may be over before", &deleted, "2026-03-01T12:02:00Z", time.Minute, time.Minute},
		{"what cannot be read has not been announced", &deleted, "soon", 0, -1},
	} {
		claim := &NodeClaim{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: test.deleted, Annotations: map[string]string{InstanceEndsAnnotationKey: test.announced}}}
		if test.grace > 0 {
			claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: test.grace}
		}
		want := deleted.Add(test.want)
		if test.want < 0 {
			want = time.Time{}
		}
		if got := claim.EndsAt(); !got.Equal(want) {
			t.Errorf("%s: got %s, want %s", test.reason, got, want)
		}
	}
}
