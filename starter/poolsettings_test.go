package starter

import (
	"testing"
	"time"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason      string
		annotations map[string]string
		want        string
	}{
		"Nothing": {reason: "what can be read is no news", annotations: map[string]string{karpv1.PackingAnnotationKey: karpv1.PackingCheapest, karpv1.MinimumNodeAgeAnnotationKey: "2h"}},
		"Age": {reason: "a mistake that keeps nodes", annotations: map[string]string{karpv1.MinimumNodeAgeAnnotationKey: "old"},
			want: `nodes are kept because of what cannot be read: annotation tenon.sh/minimum-node-age: "old" is not a duration such as 2h`},
		"Packing": {reason: "a mistake that keeps none", annotations: map[string]string{karpv1.PackingAnnotationKey: "tight"},
			want: `pods are packed as the worker's --packing says, because annotation tenon.sh/packing: "tight" must be cheapest or spread`},
		"Both": {reason: "each has its consequence", annotations: map[string]string{karpv1.MinimumNodeAgeAnnotationKey: "old", karpv1.PackingAnnotationKey: "tight"},
			want: `nodes are kept because of what cannot be read: annotation tenon.sh/minimum-node-age: "old" is not a duration such as 2h; ` +
				`pods are packed as the worker's --packing says, because annotation tenon.sh/packing: "tight" must be cheapest or spread`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := &karpv1.NodePool{}
			pool.Annotations = test.annotations
			if got := unreadable(pool, time.Now()); got != test.want {
				t.Errorf("%s: %q, want %q", test.reason, got, test.want)
			}
		})
	}
}
