package status

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestShortfall(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	onlyCPU := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	for _, test := range []struct {
		reason   string
		requests corev1.ResourceList
		has      plan.Resources
		starting bool
		want     string
	}{
		{reason: "all that was bought", requests: list("1", "1Gi"), has: plan.ResourcesOf(list("4", "16Gi")), starting: false, want: ""},
		{reason: "the kernel keeps some memory for itself", requests: list("1", "1Gi"), has: plan.ResourcesOf(list("4", "15Gi")), starting: false, want: ""},
		{reason: "clearly less", requests: list("1", "1Gi"), has: plan.ResourcesOf(list("4", "8Gi")), starting: false,
			want: "expected 16Gi of resource memory, but found 8Gi (50.0% of expected)"},
		{reason: "nobody asked for it", requests: onlyCPU, has: plan.ResourcesOf(list("4", "8Gi")), starting: false, want: ""},
		{reason: "a node that does not serve yet reports what it knows so far", requests: list("1", "1Gi"),
			has: plan.ResourcesOf(list("4", "8Gi")), starting: true, want: ""},
	} {
		claim := &karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{Capacity: list("4", "16Gi")}}
		claim.Spec.Resources.Requests = test.requests
		if got := shortfall(claim, &plan.Node{Initialized: !test.starting, Capacity: test.has}); got != test.want {
			t.Errorf("%s: %q, want %q", test.reason, got, test.want)
		}
	}
}

// TestConditionsTellOfShortfalls checks that the condition of a node that lacks something is set once, and removed when
// the node has it.
func TestConditionsTellOfShortfalls(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{}
	v := verdict{}
	karpenters := &karpv1.NodeClaim{}
	karpenters.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeConsistentStateFound, Status: metav1.ConditionTrue})
	if v.consistent().news(karpenters) {
		t.Error("what Karpenter has found to be well is left as it is")
	}
	for _, step := range []struct {
		reason, shortfall string
		news              bool
	}{
		{reason: "nothing is lacking, and nothing is written", shortfall: "", news: false}, {reason: "something is",
			shortfall: "little memory", news: true}, {reason: "still", shortfall: "little memory", news: false}, {reason: "no more",
			shortfall: "", news: true}, {reason: "and no more", shortfall: "", news: false},
	} {
		v.shortfall = step.shortfall
		wish := v.consistent()
		if got := wish.put(claim); got != step.news {
			t.Errorf("%s: written %v", step.reason, got)
		}
		is := claim.Condition(karpv1.ConditionTypeConsistentStateFound)
		if (is != nil) != (step.shortfall != "") || is != nil && (is.Status != "False" || is.Message != step.shortfall) {
			t.Errorf("%s: the condition is %+v", step.reason, is)
		}
	}
}
