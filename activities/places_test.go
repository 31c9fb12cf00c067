package activities

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

// TestPodsWaitForAPlace checks which pods are evicted now from a node that ends with notice.
func TestPodsWaitForAPlace(t *testing.T) {
	t.Parallel()
	now := time.Now()
	pods := []plan.DrainPod{
		{Pod: &plan.Pod{UID: "placed", Namespace: "team", Name: "placed", OwnerKind: "ReplicaSet", GracePeriod: 30 * time.Second}},
		{Pod: &plan.Pod{UID: "quick", Namespace: "team", Name: "quick", OwnerKind: "ReplicaSet", GracePeriod: 30 * time.Second}},
		{Pod: &plan.Pod{UID: "slow", Namespace: "team", Name: "slow", OwnerKind: "ReplicaSet", GracePeriod: 100 * time.Second}},
	}
	all := []string{"placed", "quick", "slow"}
	for reason, test := range map[string]struct {
		ends  time.Time // of the instance, from the claim when the pass began
		noted time.Time // the same, from the claim now
		force bool
		blind bool
		want  []string
	}{
		"a node that goes without notice":        {want: all},
		"there is time":                          {ends: now.Add(4 * time.Minute), want: []string{"placed"}},
		"one needs longer to end":                {ends: now.Add(2*time.Minute - 10*time.Second), want: []string{"placed", "slow"}},
		"the last moment":                        {ends: now.Add(40 * time.Second), want: all},
		"EC2 has said meanwhile that it is soon": {ends: now.Add(10 * time.Minute), noted: now.Add(40 * time.Second), want: all},
		"what was said before was sooner":        {ends: now.Add(40 * time.Second), noted: now.Add(10 * time.Minute), want: all},
		"a person forces the drain":              {ends: now.Add(4 * time.Minute), force: true, want: all},
		"nobody knows of places":                 {ends: now.Add(4 * time.Minute), blind: true, want: all},
	} {
		d := &Drains{Log: zap.NewNop(), Elsewhere: func(string) (map[types.UID]bool, time.Time) { return map[types.UID]bool{"placed": true}, test.noted }}
		if test.blind {
			d.Elsewhere = nil
		}
		p := newPass(d, workflows.EvictInput{Claim: "claim", Force: test.force}, &corev1.Node{}, now, now, evictProgress{})
		p.ends = test.ends
		going, staying := p.awaitPlaces(pods)
		var got []string
		for _, pod := range going {
			got = append(got, pod.Name)
		}
		slices.Sort(got)
		if diff := cmp.Diff(test.want, got); diff != "" || len(going)+len(staying) != len(pods) {
			t.Errorf("%s: evicted now (-want +got):\n%s", reason, diff)
		}
	}
}

// TestOnlyNoticeHasPodsWait checks until when the pods of a claim's node may wait.
func TestOnlyNoticeHasPodsWait(t *testing.T) {
	t.Parallel()
	ended := time.Now().Truncate(time.Second)
	claim := func(name string, edit func(*karpv1.NodeClaim)) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{karpv1.TerminationFinalizer}, DeletionTimestamp: &metav1.Time{Time: ended}}}
		edit(c)
		return c
	}
	announced := claim("announced", func(c *karpv1.NodeClaim) {
		c.Annotations = map[string]string{karpv1.InstanceEndsAnnotationKey: ended.Add(2 * time.Minute).UTC().Format(time.RFC3339)}
	})
	unannounced := claim("unannounced", func(*karpv1.NodeClaim) {})
	for reason, test := range map[string]struct {
		claim, why string
		want       time.Time
	}{
		"EC2 takes a spot instance back":  {claim: "announced", why: workflows.ReasonSpotInterrupted, want: ended.Add(2 * time.Minute)},
		"AWS will work on the machine":    {claim: "unannounced", why: workflows.ReasonScheduledChange, want: ended.Add(waitsUnannounced)},
		"somebody has deleted the claim":  {claim: "announced", why: workflows.ReasonClaimDeleted, want: time.Time{}},
		"the instance is being stopped":   {claim: "announced", why: workflows.ReasonInstanceStopping, want: time.Time{}},
		"EC2 may take the instance back":  {claim: "unannounced", why: workflows.ReasonRebalanceRecommended, want: ended.Add(waitsUnannounced)},
		"a person drains the node itself": {claim: "announced", why: workflows.ReasonManualDrain, want: time.Time{}},
	} {
		d := &Drains{Log: zap.NewNop(), Client: fake.NewClientBuilder().WithScheme(testScheme(t)).WithObjects(announced, unannounced).Build()}
		p := newPass(d, workflows.EvictInput{Claim: test.claim, Reason: test.why}, &corev1.Node{}, time.Now(), time.Now(), evictProgress{})
		if err := p.heedClaim(t.Context()); err != nil || !p.ends.Equal(test.want) {
			t.Errorf("%s: its instance ends at %s, want %s, %v", reason, p.ends, test.want, err)
		}
	}
}
