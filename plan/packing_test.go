package plan_test

import (
	"testing"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

func TestPackingOf(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, annotation string
		want               plan.Packing
	}{
		"None":    {reason: "the default holds", want: plan.PackingCheapest},
		"Own":     {reason: "the pool knows better", annotation: "spread", want: plan.PackingSpread},
		"Mistake": {reason: "a mistake is as good as nothing", annotation: "tight", want: plan.PackingCheapest},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &karpv1.NodePool{}
			pool.Annotations = map[string]string{karpv1.PackingAnnotationKey: test.annotation}
			if got := plan.PackingCheapest.For(pool); got != test.want {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
		})
	}
}
