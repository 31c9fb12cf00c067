package activities

import (
	"context"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// overlaid remembers what NodeOverlays made of the pools, since everything that is planned asks for it. It is worked out again
// when the overlays, or what the cloud sells, have changed.
type overlaid struct {
	mu       sync.Mutex
	objects  []*karpv1alpha1.NodeOverlay
	before   []plan.Pool
	after    []plan.Pool
	overlays *plan.Overlays
}

// apply returns pools as the overlays have them, and the overlays that apply.
func (o *overlaid) apply(objects []*karpv1alpha1.NodeOverlay, pools []plan.Pool) ([]plan.Pool, *plan.Overlays) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(objects) == 0 {
		o.objects, o.before, o.after, o.overlays = nil, nil, nil, nil
		return pools, nil
	}
	if !slices.Equal(o.objects, objects) || !slices.EqualFunc(o.before, pools, sameToOverlays) {
		o.overlays, _ = plan.NewOverlays(objects, pools) // what is wrong with the others is for the starter to say
		o.objects, o.before, o.after = objects, pools, slices.Clone(pools)
		for i := range o.after {
			o.after[i].Types = o.overlays.Apply(pools[i].NodePool, pools[i].Types)
		}
	}
	current := slices.Clone(pools)
	for i := range current {
		current[i].Types = o.after[i].Types
	}
	return current, o.overlays
}

// sameToOverlays says that overlays make the same of two pools.
func sameToOverlays(a, b plan.Pool) bool {
	one, other := &a.NodePool.Spec.Template, &b.NodePool.Spec.Template
	return a.NodePool.Name == b.NodePool.Name && slices.Equal(a.Types, b.Types) && maps.Equal(one.Labels, other.Labels) &&
		(one.Spec.NodeClassRef == other.Spec.NodeClassRef || *one.Spec.NodeClassRef == *other.Spec.NodeClassRef)
}

// annotate marks a planned claim whose instance types have prices or capacities of overlays.
func (o *overlaid) annotate(claim *karpv1.NodeClaim, planned plan.Claim) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, pool := range o.after {
		if pool.NodePool.Name != planned.NodePool {
			continue
		}
		for _, kind := range pool.Types {
			if !slices.Contains(planned.InstanceTypes, kind.Name) {
				continue
			}
			if len(kind.Overlaid) > 0 {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1alpha1.CapacityOverlayAppliedAnnotationKey, "true")
			}
			if slices.ContainsFunc(kind.Offerings, func(o cloud.Offering) bool { return o.Overlaid }) {
				metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1alpha1.PriceOverlayAppliedAnnotationKey, "true")
			}
		}
	}
}

// sold are the instance types that a claim can be launched as, as planning has them. No overlay is about a claim that is of
// no NodePool.
func (c *catalogue) sold(ctx context.Context, claim *karpv1.NodeClaim, class *awsv1.EC2NodeClass) ([]*cloud.InstanceType, error) {
	kinds, err := c.cloud.InstanceTypes(ctx, class)
	objects := c.mirror.NodeOverlays()
	if err != nil || len(objects) == 0 {
		return kinds, err
	}
	pool := c.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey])
	if pool == nil {
		return kinds, nil
	}
	_, overlays := c.overlaid.apply(objects, c.offered(ctx))
	return overlays.Apply(pool, kinds), nil
}

// overlaidPrices are the prices of those offerings that overlays have set a price of.
func overlaidPrices(kinds []*cloud.InstanceType, offerings []cloud.OfferingKey) map[cloud.OfferingKey]float64 {
	prices := map[cloud.OfferingKey]float64{}
	for _, kind := range kinds {
		for i := range kind.Offerings {
			if o := &kind.Offerings[i]; o.Overlaid {
				prices[o.Key(kind)] = o.Price
			}
		}
	}
	maps.DeleteFunc(prices, func(key cloud.OfferingKey, _ float64) bool { return !slices.Contains(offerings, key) })
	return prices
}
