package v1_test

import (
	"strings"
	"testing"

	v1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestPacking(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason, annotation, want, fails string
	}{
		"None":     {reason: "what the worker was told holds"},
		"Cheapest": {reason: "people with batch jobs want it", annotation: "cheapest", want: v1.PackingCheapest},
		"Spread":   {reason: "a pool may differ from a worker that packs", annotation: "spread", want: v1.PackingSpread},
		"Unknown":  {reason: "the mistake names the annotation and what it may say", annotation: "Cheapest", fails: `annotation tenon.sh/packing: "Cheapest" must be cheapest or spread`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &v1.NodePool{}
			if test.annotation != "" {
				pool.Annotations = map[string]string{v1.PackingAnnotationKey: test.annotation}
			}
			got, err := pool.Packing()
			if got != test.want {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
			if (err != nil) != (test.fails != "") || err != nil && !strings.Contains(err.Error(), test.fails) {
				t.Errorf("%s: error %v, want %q", test.reason, err, test.fails)
			}
		})
	}
}
