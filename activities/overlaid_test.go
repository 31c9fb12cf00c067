package activities

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// overlayOf returns an overlay that sets the price of a type in a pool, and gives it a device.
func overlayOf(name, pool, price string) *karpv1alpha1.NodeOverlay {
	overlay := &karpv1alpha1.NodeOverlay{}
	overlay.Name = name
	overlay.Spec.Requirements = []karpv1alpha1.NodeSelectorRequirement{{Key: karpv1.NodePoolLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{pool}}}
	overlay.Spec.Price = &price
	overlay.Spec.Capacity = corev1.ResourceList{"example.com/fuse": resource.MustParse("1")}
	return overlay
}

// overlaidShop returns a shop that offers m5.large for two pools of one class.
func overlaidShop(overlays ...*karpv1alpha1.NodeOverlay) (*shop, *Activities) {
	class := &awsv1.EC2NodeClass{}
	class.Name = "default"
	place := &shop{
		classes: map[string]cloud.NodeClass{"default": class}, pools: []*karpv1.NodePool{poolOf("one", "default", nil), poolOf("two", "default", nil)},
		kinds: []*cloud.InstanceType{{Name: "m5.large", Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: "a", Price: 1, Available: true}}}}, overlays: overlays,
	}
	return place, New(Config{Mirror: place, Cloud: place})
}

// TestOverlaidPools checks that planning sees overlays, and sees the same instance types until something changes.
func TestOverlaidPools(t *testing.T) {
	t.Parallel()
	place, acts := overlaidShop()
	price := func(pools []plan.Pool, n int) float64 { return pools[n].Types[0].Offerings[0].Price }
	plain := acts.launcher.catalogue.pools(t.Context())
	if plain[0].Types[0] != place.kinds[0] {
		t.Error("without overlays the types are not the cloud's own")
	}
	place.overlays = []*karpv1alpha1.NodeOverlay{overlayOf("a", "one", "0.5")}
	first := acts.launcher.catalogue.pools(t.Context())
	if price(first, 0) != 0.5 || price(first, 1) != 1 || place.kinds[0].Offerings[0].Price != 1 {
		t.Errorf("prices are %g and %g, and the cloud's %g; want 0.5, 1 and 1", price(first, 0), price(first, 1), place.kinds[0].Offerings[0].Price)
	}
	counted := place.pools[0].DeepCopy()
	counted.Status.Nodes = new(int64(7))
	place.pools[0] = counted
	second := acts.launcher.catalogue.pools(t.Context())
	if second[0].Types[0] != first[0].Types[0] || second[0].NodePool != counted {
		t.Error("a pool that counts other nodes has other instance types, or is the one of before")
	}
	place.overlays = []*karpv1alpha1.NodeOverlay{overlayOf("a", "two", "0.25")}
	if third := acts.launcher.catalogue.pools(t.Context()); price(third, 0) != 1 || price(third, 1) != 0.25 {
		t.Errorf("another overlay makes the prices %g and %g, want 1 and 0.25", price(third, 0), price(third, 1))
	}
	place.kinds = []*cloud.InstanceType{{Name: "m5.large", Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: "a", Price: 3, Available: true}}}}
	if fourth := acts.launcher.catalogue.pools(t.Context()); price(fourth, 0) != 3 || price(fourth, 1) != 0.25 {
		t.Errorf("another price of the cloud makes them %g and %g, want 3 and 0.25", price(fourth, 0), price(fourth, 1))
	}
}

// TestSold checks that a launch sees what planning has seen.
func TestSold(t *testing.T) {
	t.Parallel()
	place, acts := overlaidShop(overlayOf("a", "one", "0.5"))
	for name, test := range map[string]struct {
		reason, pool string
		price        float64
		overlaid     bool
	}{
		"Overlaid": {reason: "the overlay is about the pool", pool: "one", price: 0.5, overlaid: true},
		"Other":    {reason: "and not about another one", pool: "two", price: 1},
		"ByHand":   {reason: "a claim of no pool has the cloud's prices", price: 1},
		"Gone":     {reason: "and so has one whose pool is gone", pool: "three", price: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{}
			claim.Labels = map[string]string{karpv1.NodePoolLabelKey: test.pool}
			kinds, err := acts.launcher.catalogue.sold(t.Context(), claim, place.classes["default"])
			if err != nil {
				t.Fatal(err)
			}
			key := cloud.OfferingKey{InstanceType: "m5.large", Zone: "a", CapacityType: "on-demand"}
			want := map[cloud.OfferingKey]float64{}
			if test.overlaid {
				want[key] = test.price
			}
			if got := kinds[0].Offerings[0].Price; got != test.price {
				t.Errorf("%s: price %g, want %g", test.reason, got, test.price)
			}
			if diff := cmp.Diff(want, overlaidPrices(kinds, []cloud.OfferingKey{key})); diff != "" {
				t.Errorf("%s: prices of the launch (-want +got):\n%s", test.reason, diff)
			}
			if _, has := kinds[0].Capacity["example.com/fuse"]; has != test.overlaid {
				t.Errorf("%s: the node's device is counted: %t", test.reason, has)
			}
		})
	}
}

// TestClaimsSayThatTheyWereOverlaid checks that claims carry Karpenter's annotations.
func TestClaimsSayThatTheyWereOverlaid(t *testing.T) {
	t.Parallel()
	_, acts := overlaidShop(overlayOf("a", "one", "0.5"))
	acts.launcher.catalogue.pools(t.Context())
	for pool, want := range map[string]map[string]string{
		"one": {karpv1alpha1.PriceOverlayAppliedAnnotationKey: "true", karpv1alpha1.CapacityOverlayAppliedAnnotationKey: "true"},
		"two": nil,
	} {
		claim := &karpv1.NodeClaim{}
		acts.launcher.catalogue.overlaid.annotate(claim, plan.Claim{NodePool: pool, InstanceTypes: []string{"m5.large"}})
		if diff := cmp.Diff(want, claim.Annotations); diff != "" {
			t.Errorf("annotations of a claim of pool %s (-want +got):\n%s", pool, diff)
		}
	}
}
