package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// A claim's requirements carry what its pods ask of the machine, and still allow the launch every type it could use.
func TestClaimsCarryWhatPodsAsk(t *testing.T) {
	t.Parallel()
	const category, family = "karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-family"
	both := func(options ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			for _, option := range options {
				option(pod)
			}
		}
	}
	tests := []struct {
		name, reason string
		pods         []*corev1.Pod
		pool         func(*karpv1.NodePool)
		reservation  bool
		want         []string // beyond instance type, capacity type and zone
	}{
		{name: "nothing", reason: "who asks for nothing adds nothing", pods: manyPods(1, "a", "1", "1Gi"), pool: several()},
		{name: "a reservation of a kind", reason: "it is told beside the reservation that was found", pods: manyPods(1, "a", "1", "1Gi", selects(awsv1.LabelCapacityReservationType, "default")), pool: several(),
			reservation: true, want: []string{awsv1.LabelCapacityReservationID + " In cr-1", awsv1.LabelCapacityReservationType + " In default"}},
		{name: "a label of the type", reason: "as it was asked for", pods: manyPods(1, "a", "1", "1Gi", needs(expr(category, corev1.NodeSelectorOpNotIn, "c"))), pool: several(),
			want: []string{category + " NotIn c"}},
		{name: "beside the pool's", reason: "what both ask for is one list", pods: manyPods(1, "a", "1", "1Gi", needs(expr(family, corev1.NodeSelectorOpIn, "m6i", "c5"))),
			pool: requires(family, corev1.NodeSelectorOpIn, "m6i", "m6g"), want: []string{family + " In m6i"}},
		{name: "of several pods", reason: "all that share a node ask", pods: append(manyPods(1, "a", "1", "1Gi", selects(corev1.LabelArchStable, "amd64")), newPod("b", "500m", "1Gi", needs(expr(family, corev1.NodeSelectorOpNotIn, "c5", "c6i")))),
			pool: limit(karpv1.ResourceNodes, "1"), want: []string{family + " NotIn c5,c6i", corev1.LabelArchStable + " In amd64"}},
		{name: "by an old name", reason: "the label is called by its new one", pods: manyPods(1, "a", "1", "1Gi", selects("beta.kubernetes.io/arch", "arm64")), pool: several(),
			want: []string{corev1.LabelArchStable + " In arm64"}},
		{name: "alternatives", reason: "only what holds in all of them", pods: manyPods(1, "a", "1", "1Gi", both(selects(corev1.LabelOSStable, "linux"), needs(expr(family, corev1.NodeSelectorOpIn, "m6i"), expr(family, corev1.NodeSelectorOpIn, "c5")))), pool: several(),
			want: []string{corev1.LabelOSStable + " In linux"}},
		{name: "minValues", reason: "what the pool wants a choice of stays a choice", pods: manyPods(1, "a", "1", "1Gi", needs(expr(family, corev1.NodeSelectorOpNotIn, "c5"))),
			pool: minValues(family, corev1.NodeSelectorOpExists, 2), want: []string{family + " Exists "}},
		{name: "a custom label", reason: "it is settled already", pods: manyPods(1, "a", "1", "1Gi", selects("team", "x")), pool: requires("team", corev1.NodeSelectorOpExists), want: []string{"team In x"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool, types := nodePool("p", test.pool), smallCatalogue()
			if test.reservation {
				types = reserved(types, "m6i.xlarge", "us-east-1a", "cr-1", 2)
			}
			w := world{pods: test.pods, pools: []plan.Pool{inPool(pool, types)}}
			p := plan.Pack(w.input())
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims, want 1; left %v", len(p.Claims), p.Unplaced)
			}
			var got []string
			for _, r := range p.Claims[0].Requirements {
				switch r.Key {
				case corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone, karpv1.CapacityTypeLabelKey:
				default:
					got = append(got, r.Key+" "+string(r.Operator)+" "+strings.Join(r.Values, ","))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("requirements %q, want %q: %s", got, test.want, test.reason)
			}
			claim, err := p.Claims[0].NodeClaim(pool, "c")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := plan.Offerings(nodeclass.Labels(), claim, types, nil, now, plan.MinValuesStrict)
			if err != nil {
				t.Fatal(err)
			}
			launched := map[string]bool{}
			for _, key := range keys {
				launched[key.InstanceType] = true
			}
			if len(launched) != len(p.Claims[0].InstanceTypes) {
				t.Errorf("%d types can be launched, and %d are listed", len(launched), len(p.Claims[0].InstanceTypes))
			}
		})
	}
}
