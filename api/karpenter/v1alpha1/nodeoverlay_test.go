package v1alpha1_test

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

func TestAdjustedPrice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, price, adjustment string
		want                      float64
	}{
		"Nothing":    {reason: "an overlay of capacity leaves prices", want: 2},
		"Price":      {reason: "a price replaces another", price: "0.5", want: 0.5},
		"Nil":        {reason: "what is paid for is free", price: "0", want: 0},
		"More":       {reason: "a licence is paid by the hour", adjustment: "+0.25", want: 2.25},
		"Less":       {reason: "a discount is an amount", adjustment: "-.5", want: 1.5},
		"Floor":      {reason: "nobody is paid for a node", adjustment: "-5", want: 0},
		"Percent":    {reason: "or a share", adjustment: "-30%", want: 1.4},
		"Surcharge":  {reason: "of either sign", adjustment: "+150%", want: 5},
		"Everything": {reason: "all of it", adjustment: "-100%", want: 0},
		"Unread":     {reason: "what cannot be read changes nothing", adjustment: "10%", want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overlay := &v1alpha1.NodeOverlay{}
			if test.price != "" {
				overlay.Spec.Price = &test.price
			}
			if test.adjustment != "" {
				overlay.Spec.PriceAdjustment = &test.adjustment
			}
			if got := overlay.AdjustedPrice(2); math.Abs(got-test.want) > 1e-12 {
				t.Errorf("%s: 2 becomes %g, want %g", test.reason, got, test.want)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	requirement := func(key string, operator corev1.NodeSelectorOperator, values ...string) v1alpha1.NodeOverlaySpec {
		return v1alpha1.NodeOverlaySpec{Requirements: []v1alpha1.NodeSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
	}
	capacity := func(name corev1.ResourceName, quantity string) v1alpha1.NodeOverlaySpec {
		return v1alpha1.NodeOverlaySpec{Capacity: corev1.ResourceList{name: resource.MustParse(quantity)}}
	}
	for name, test := range map[string]struct {
		reason string
		spec   v1alpha1.NodeOverlaySpec
		fails  string
	}{
		"Empty":     {reason: "nothing is wrong with nothing"},
		"Family":    {reason: "well-known labels are known", spec: requirement("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "m5")},
		"Custom":    {reason: "and so are those of templates", spec: requirement("example.com/team", corev1.NodeSelectorOpExists)},
		"NotIn":     {reason: "a list of nothing", spec: requirement("a", corev1.NodeSelectorOpNotIn), fails: "spec.requirements[0].values: Required value"},
		"Domain":    {reason: "nobody chooses Karpenter's labels", spec: requirement("karpenter.sh/registered", corev1.NodeSelectorOpExists), fails: "spec.requirements[0].key: Forbidden"},
		"Gt":        {reason: "only numbers compare", spec: requirement("a", corev1.NodeSelectorOpGt, "b"), fails: "spec.requirements[0].values[0]"},
		"Price":     {reason: "files have seen no API server", spec: v1alpha1.NodeOverlaySpec{Price: new("1$")}, fails: "spec.price: Invalid value"},
		"Negative":  {reason: "a price below zero", spec: v1alpha1.NodeOverlaySpec{Price: new("-1")}, fails: "spec.price: Invalid value"},
		"Adjust":    {reason: "a sign is missing", spec: v1alpha1.NodeOverlaySpec{PriceAdjustment: new("1")}, fails: "spec.priceAdjustment: Invalid value"},
		"Both":      {reason: "one source of a price", spec: v1alpha1.NodeOverlaySpec{Price: new("1"), PriceAdjustment: new("+1")}, fails: "spec.priceAdjustment: Forbidden"},
		"Device":    {reason: "an extended resource", spec: capacity("smarter-devices/fuse", "1")},
		"Memory":    {reason: "memory is what it is", spec: capacity(corev1.ResourceMemory, "1Gi"), fails: "spec.capacity[memory]: Forbidden"},
		"NoDevices": {reason: "less than none", spec: capacity("smarter-devices/fuse", "-1"), fails: "spec.capacity[smarter-devices/fuse]: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := (&v1alpha1.NodeOverlay{Spec: test.spec}).Validate().ToAggregate()
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.fails)
			}
		})
	}
}

func TestReadyFollowsValidation(t *testing.T) {
	t.Parallel()
	overlay := &v1alpha1.NodeOverlay{}
	overlay.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonConflict})
	if ready := overlay.Condition(karpv1.ConditionTypeReady); ready == nil || ready.Status != metav1.ConditionFalse {
		t.Errorf("an overlay that does not apply is Ready: %+v", ready)
	}
}
