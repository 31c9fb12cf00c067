package plan_test

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/market"
)

// distinct counts the values of a label among instance types.
func distinct(types []*cloud.InstanceType, names []string, key string) int {
	values := map[string]bool{}
	for _, typ := range types {
		for _, name := range names {
			if typ.Name == name {
				values[typ.Labels[key]] = true
			}
		}
	}
	return len(values)
}

// However a minimum is stated, the launch keeps that much choice, or reports that it cannot.
func TestChoiceOfMinValues(t *testing.T) {
	t.Parallel()
	const (
		family = "karpenter.k8s.aws/instance-family"
		size   = "karpenter.k8s.aws/instance-size"
		cpu    = "karpenter.k8s.aws/instance-cpu"
	)
	plain := requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r")
	tests := []struct {
		name, reason string
		pool         func(*karpv1.NodePool)
		pod          *corev1.Pod
		policy       plan.MinValuesPolicy
		want         map[string]int // least number of values by label; nil if nothing is launched
		relaxed      bool
	}{
		{name: "exists", reason: "any families", pool: minValues(family, corev1.NodeSelectorOpExists, 4), pod: newPod("a", "1", "1Gi"),
			policy: "", want: map[string]int{family: 4}, relaxed: false},
		{name: "in", reason: "of these families", pool: minValues(family, corev1.NodeSelectorOpIn, 2, "c5", "r6i", "m6g"),
			pod: newPod("a", "1", "1Gi"), policy: "", want: map[string]int{family: 2}, relaxed: false},
		{name: "not in", reason: "of all families but these", pool: minValues(family, corev1.NodeSelectorOpNotIn, 3, "c5", "g5"),
			pod: newPod("a", "1", "1Gi"), policy: "", want: map[string]int{family: 3}, relaxed: false},
		{name: "gt", reason: "of numbers", pool: minValues(cpu, corev1.NodeSelectorOpGt, 3, "3"), pod: newPod("a", "1", "1Gi"), policy: "",
			want: map[string]int{cpu: 3}, relaxed: false},
		{
			name: "two labels", reason: "both at once", pool: several(minValues(family, corev1.NodeSelectorOpExists, 3), minValues(size, corev1.NodeSelectorOpExists, 3)),
			pod: newPod("a", "1", "1Gi"), policy: "", want: map[string]int{family: 3, size: 3}, relaxed: false,
		},
		{
			name: "instance types", reason: "the label every type has a value of its own for", pool: minValues(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpExists, 12),
			pod: newPod("a", "1", "1Gi"), policy: "", want: map[string]int{corev1.LabelInstanceTypeStable: 12}, relaxed: false,
		},
		{
			name: "capacity types", reason: "that spot and on-demand are there is choice enough; a launch takes one", pool: minValues(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, 2, "spot", "on-demand"),
			pod: newPod("a", "1", "1Gi"), policy: "", want: map[string]int{}, relaxed: false,
		},
		{name: "zones", reason: "a launch that may go to all zones has three",
			pool: minValues(corev1.LabelTopologyZone, corev1.NodeSelectorOpExists, 3), pod: newPod("a", "1", "1Gi"), policy: "",
			want: map[string]int{}, relaxed: false},
		{name: "strict", reason: "with too little choice nothing is launched", pool: minValues(family, corev1.NodeSelectorOpExists, 3),
			pod: newPod("a", "1", "300Gi"), policy: plan.MinValuesStrict, relaxed: false},
		{name: "best effort", reason: "with too little choice the best there is", pool: minValues(family, corev1.NodeSelectorOpExists, 3),
			pod: newPod("a", "1", "300Gi"), policy: plan.MinValuesBestEffort, want: map[string]int{family: 1}, relaxed: true},
		{
			name: "best effort, two labels", reason: "what can be met is met", pool: several(minValues(family, corev1.NodeSelectorOpExists, 9), minValues(size, corev1.NodeSelectorOpExists, 4)),
			pod: newPod("a", "1", "1Gi"), policy: plan.MinValuesBestEffort, want: map[string]int{family: 5, size: 4}, relaxed: true,
		},
		{name: "best effort and enough", reason: "who has choice enough is not marked",
			pool: minValues(family, corev1.NodeSelectorOpExists, 3), pod: newPod("a", "1", "1Gi"), policy: plan.MinValuesBestEffort,
			want: map[string]int{family: 3}, relaxed: false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			pool := nodePool("p", plain, test.pool)
			w := world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{inPool(pool, smallCatalogue())}}
			in := w.input()
			in.MinValues = test.policy
			p := plan.Pack(in)
			if test.want == nil {
				if len(p.Claims) > 0 {
					t.Fatalf("claim %v: %s", p.Claims[0].InstanceTypes, test.reason)
				}
				return
			}
			if len(p.Claims) != 1 {
				t.Fatalf("%d claims: %v", len(p.Claims), p.Unplaced)
			}
			for key, least := range test.want {
				if got := distinct(smallCatalogue(), p.Claims[0].InstanceTypes, key); got < least {
					t.Errorf("choice of %d values of %s, want %d: %s", got, key, least, test.reason)
				}
			}
			claim, err := p.Claims[0].NodeClaim(pool, "c")
			if err != nil {
				t.Fatal(err)
			}
			if _, marked := claim.Annotations[karpv1.NodeClaimMinValuesRelaxedAnnotationKey]; marked != test.relaxed || p.Claims[0].MinValuesRelaxed != test.relaxed {
				t.Errorf("claim is marked as relaxed: %v, want %v", marked, test.relaxed)
			}
			if _, err := plan.Offerings(nodeclass.Labels(), claim, smallCatalogue(), nil, now, plan.MinValuesStrict); err != nil {
				t.Errorf("the launch does not find what was planned: %v", err)
			}
		})
	}
}

// A claim written by hand has to meet its minValues too.
func TestMinValuesOfClaimsByHand(t *testing.T) {
	t.Parallel()
	claim := func(key string, n int, annotations map[string]string) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{}
		c.Annotations = annotations
		c.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: "karpenter.k8s.aws/instance-category", Operator: corev1.NodeSelectorOpIn, Values: []string{"c", "m", "r"}},
			{Key: key, Operator: corev1.NodeSelectorOpExists, MinValues: &n},
		}
		return c
	}
	relaxed := map[string]string{karpv1.NodeClaimMinValuesRelaxedAnnotationKey: "true"}
	tests := []struct {
		name, reason string
		claim        *karpv1.NodeClaim
		policy       plan.MinValuesPolicy
		fails        bool
	}{
		{name: "enough", reason: "five families are there", claim: claim("karpenter.k8s.aws/instance-family", 5, nil), policy: plan.MinValuesStrict, fails: false},
		{name: "too few", reason: "there are no six", claim: claim("karpenter.k8s.aws/instance-family", 6, nil), policy: plan.MinValuesStrict, fails: true},
		{name: "best effort", reason: "six would be better, five will do", claim: claim("karpenter.k8s.aws/instance-family", 6, nil),
			policy: plan.MinValuesBestEffort, fails: false},
		{name: "relaxed when it was planned", reason: "the plan has said that it will do",
			claim: claim("karpenter.k8s.aws/instance-family", 6, relaxed), policy: plan.MinValuesStrict, fails: false},
		{name: "capacity types", reason: "both are offered, though one is launched", claim: claim(karpv1.CapacityTypeLabelKey, 2, nil),
			policy: plan.MinValuesStrict, fails: false},
		{name: "zones", reason: "three zones are offered", claim: claim(corev1.LabelTopologyZone, 3, nil), policy: plan.MinValuesStrict, fails: false},
		{name: "label nobody has", reason: "a label without values is no choice",
			claim: claim("karpenter.k8s.aws/instance-gpu-name", 1, nil), policy: plan.MinValuesStrict, fails: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			keys, err := plan.Offerings(nodeclass.Labels(), test.claim, smallCatalogue(), nil, now, test.policy)
			if (err != nil) != test.fails || err != nil && !errors.Is(err, market.ErrNothingToLaunch) {
				t.Fatalf("%d offerings, error %v: %s", len(keys), err, test.reason)
			}
		})
	}
}

// Whatever the minimums, every claim keeps the choice they demand, or is not made.
func TestMinimumsAreKept(t *testing.T) {
	t.Parallel()
	keys := []string{"karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-cpu", corev1.LabelInstanceTypeStable}
	rapid.Check(t, func(t *rapid.T) {
		least := map[string]int{}
		var options []func(*karpv1.NodePool)
		for range rapid.IntRange(1, 2).Draw(t, "minimums") {
			key := rapid.SampledFrom(keys).Draw(t, "key")
			if least[key] == 0 {
				least[key] = rapid.IntRange(2, 5).Draw(t, "least")
				options = append(options, minValues(key, corev1.NodeSelectorOpExists, least[key]))
			}
		}
		if rapid.Bool().Draw(t, "limited") {
			options = append(options, limit(corev1.ResourceCPU, fmt.Sprint(rapid.IntRange(1, 64).Draw(t, "limit"))))
		}
		w := &world{pools: []plan.Pool{inPool(nodePool("p", options...), smallCatalogue())}}
		for s := range rapid.IntRange(1, 3).Draw(t, "shapes") {
			cpu := rapid.SampledFrom([]string{"250m", "1", "1700m", "3", "15"}).Draw(t, "cpu")
			w.pods = append(w.pods, manyPods(rapid.IntRange(1, 8).Draw(t, "count"), fmt.Sprint("s", s), cpu, "2Gi")...)
		}
		p := plan.Pack(w.input())
		check(t, w, p)
		for _, c := range p.Claims {
			for key, n := range least {
				if got := distinct(smallCatalogue(), c.InstanceTypes, key); got < n {
					t.Fatalf("choice of %d values of %s, want %d: %v", got, key, n, c.InstanceTypes)
				}
			}
		}
	})
}
