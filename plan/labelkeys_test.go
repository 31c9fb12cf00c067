package plan_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// TestLabelsOfAnotherProvider plans with instance types whose labels Karpenter's API does not list, of a provider without
// tenancies, reservations and ids of zones.
func TestLabelsOfAnotherProvider(t *testing.T) {
	t.Parallel()
	const rack = "cloud.example.com/rack"
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
		keys  cloud.LabelKeys
		pod   *corev1.Pod
		waits bool
	}{
		"types have the label":                     {keys: cloud.LabelKeys{OfType: []string{rack}}, pod: newPod("a", "1", "1Gi", selects(rack, "high"))},
		"the label is one that no NodePool offers": {pod: newPod("a", "1", "1Gi", selects(rack, "high")), waits: true},
		"the provider knows no tenancy": {keys: cloud.LabelKeys{OfType: []string{rack}}, waits: true,
			pod: newPod("a", "1", "1Gi", selects("karpenter.k8s.aws/instance-tenancy", "default"))},
	} {
		w := &world{pods: []*corev1.Pod{test.pod}, pools: []plan.Pool{inPool(nodePool("p"), types)}}
		in := w.input()
		in.Snapshot.LabelKeys = test.keys
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
			keys, err := plan.Offerings(test.keys, object, types, nil, now, plan.MinValuesStrict)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range append([]string{keys[0].InstanceType}, packed.Claims[i].InstanceTypes...) {
				if typ := types[slices.IndexFunc(types, func(typ *cloud.InstanceType) bool { return typ.Name == name })]; typ.Labels[rack] != "high" {
					t.Errorf("%s: %s is in the wrong rack", reason, name)
				}
			}
			if _, wrong := object.Labels[""]; wrong || plan.Tenancy(test.keys, object) != "" {
				t.Errorf("%s: the claim has the labels %v", reason, object.Labels)
			}
		}
	}
}
