package plan_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// A pod was evicted from n3, which is leaving. Its successor fits on n1 or n2, and the pod of n1 fits on n2, but not
// both pods. n1 is needed until the successor has its place.
func TestArrivingPodsKeepTheirRoom(t *testing.T) {
	t.Parallel()
	made := func(at time.Duration, change func(*corev1.Pod)) *corev1.Pod {
		pod := newPod("new", "1300m", "1Gi", ownedByReplicaSet("web"), annotated(karpv1.DoNotDisruptAnnotationKey, "true"))
		pod.CreationTimestamp = metav1.NewTime(now.Add(at))
		change(pod)
		return pod
	}
	unseen := func(pod *corev1.Pod) { pod.Status.Conditions = nil }
	for _, test := range []struct {
		name, reason string
		evicted      time.Duration
		bare         bool
		successor    *corev1.Pod
		elsewhere    bool // the successor runs on n4
		want         []string
		next         time.Duration // from now; zero if there is none
	}{
		{name: "to come", reason: "the controller has not made the successor yet", evicted: -time.Second, next: 14 * time.Second},
		{name: "unseen", reason: "the successor is there, and the kube-scheduler has not looked at it", evicted: -time.Second,
			successor: made(0, unseen)},
		{name: "settled", reason: "the successor runs elsewhere", evicted: -time.Second, successor: made(0, unseen), elsewhere: true, want: []string{"n1 ->"}},
		{name: "never", reason: "a controller that has made none for so long makes none", evicted: -15 * time.Second, want: []string{"n1 ->"}},
		{name: "another", reason: "a pod that was made before is not the successor", evicted: -time.Second, successor: made(-time.Minute, unseen), elsewhere: true, next: 14 * time.Second},
		{name: "bare", reason: "nobody makes a successor", evicted: -time.Second, bare: true, want: []string{"n1 ->"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			old := newPod("old", "1300m", "1Gi")
			if !test.bare {
				ownedByReplicaSet("web")(old)
			}
			old.DeletionTimestamp = &metav1.Time{Time: now.Add(test.evicted).Add(30 * time.Second)}
			old.Spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
			tn := townOf(nodePool("p", onDemand(), requires("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m6i")),
				onNode("m6i.large", newPod("a", "500m", "1Gi")),
				onNode("m6i.xlarge", newPod("b", "2300m", "1Gi")),
				onNode("m6i.xlarge", old).but(func(n *plan.Node) { n.Deleting, n.Disrupted = true, true }),
				onNode("m6i.large"))
			switch n4 := tn.nodeNamed("n4"); {
			case test.elsewhere:
				tn.settle(test.successor, n4)
			default:
				tn.settle(newPod("full", "1500m", "1Gi", annotated(karpv1.DoNotDisruptAnnotationKey, "true")), n4)
				if test.successor != nil {
					tn.pods = append(tn.pods, test.successor)
				}
			}
			found := plan.Disrupt(tn.input())
			var got []string
			for i := range found.Commands {
				got = append(got, describe(&found.Commands[i]))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: commands %q, want %q; %+v", test.reason, got, test.want, found.Verdicts)
			}
			var next time.Duration
			if !found.NextLook.IsZero() {
				next = found.NextLook.Sub(now)
			}
			if next != test.next {
				t.Errorf("%s: the next look is in %v, want %v", test.reason, next, test.next)
			}
		})
	}
}
