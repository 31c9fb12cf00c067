package plan_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// TestLabelsOfAnotherProvider plans with instance types whose labels Karpenter's API does not list, of a provider without
// tenancies, reservations and ids of zones.
func TestLabelsOfAnotherProvider(t *testing.T) {
	t.Parallel()
	const rack = "cloud.example.com/rack"
	keys := cloud.LabelKeys{OfType: []string{rack}}
	types := smallCatalogue()
	for i, typ := range types {
		typ.Labels = maps.Clone(typ.Labels)
		typ.Labels[rack] = []string{"low", "high"}[i%2]
		typ.Offerings = slices.Clone(typ.Offerings)
		for o := range typ.Offerings {
			typ.Offerings[o].ZoneID = ""
		}
	}
	for reason, test := range map[string]struct {
		pod   *corev1.Pod
		pool  *karpv1.NodePool
		waits bool
	}{
		"the pod selects by the label":     {pod: newPod("a", "1", "1Gi", selects(rack, "high")), pool: nodePool("p")},
		"the NodePool requires the label":  {pod: newPod("a", "1", "1Gi"), pool: nodePool("p", requires(rack, corev1.NodeSelectorOpIn, "high"))},
		"no machine has what is asked for": {pod: newPod("a", "1", "1Gi", selects(rack, "top")), pool: nodePool("p"), waits: true},
		"the provider knows no tenancy":    {pod: newPod("a", "1", "1Gi", selects("karpenter.k8s.aws/instance-tenancy", "default")), pool: nodePool("p"), waits: true},
	} {
		w := &world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{inPool(test.pool, types)}}
		in := w.input()
		in.Snapshot.LabelKeys = keys
		packed := plan.Pack(in)
		if waits := len(packed.Claims) == 0; waits != test.waits {
			t.Errorf("%s: the plan is %+v", reason, packed)
			continue
		}
		for i := range packed.Claims {
			object, err := packed.Claims[i].NodeClaim(w.pools[0].NodePool, "c")
			if err != nil {
				t.Fatal(err)
			}
			offered, err := plan.Offerings(keys, object, types, nil, now, plan.MinValuesStrict)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range append([]string{offered[0].InstanceType}, packed.Claims[i].InstanceTypes...) {
				if typ := types[slices.IndexFunc(types, func(typ *cloud.InstanceType) bool { return typ.Name == name })]; typ.Labels[rack] != "high" {
					t.Errorf("%s: %s is in the wrong rack", reason, name)
				}
			}
			if _, wrong := object.Labels[""]; wrong || plan.Tenancy(keys, object) != "" {
				t.Errorf("%s: the claim has the labels %v", reason, object.Labels)
			}
		}
	}
}
