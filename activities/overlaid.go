package activities

import (
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// overlaid caches the pools with NodeOverlays applied, since all planning needs them. It recomputes them when the overlays,
// or what the cloud offers, have changed.
type overlaid struct {
	mu       sync.Mutex
	objects  []*karpv1alpha1.NodeOverlay
	before   []plan.Pool
	after    []plan.Pool
	overlays *plan.Overlays
}

// kinded is a provider as far as it describes its node classes.
type kinded interface{ Kind() cloud.Kind }

// apply returns the pools with the overlays applied, and the overlays that apply.
func (o *overlaid) apply(provider kinded, objects []*karpv1alpha1.NodeOverlay, pools []plan.Pool) ([]plan.Pool, *plan.Overlays) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(objects) == 0 {
		o.objects, o.before, o.after, o.overlays = nil, nil, nil, nil
		return pools, nil
	}
	if !slices.Equal(o.objects, objects) || !slices.EqualFunc(o.before, pools, sameToOverlays) {
		o.overlays, _ = plan.NewOverlays(provider.Kind().Labels, objects, pools) // the starter reports what is wrong with the others
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

// sameToOverlays reports whether overlays have the same effect on two pools.
func sameToOverlays(a, b plan.Pool) bool {
	one, other := &a.NodePool.Spec.Template, &b.NodePool.Spec.Template
	return a.NodePool.Name == b.NodePool.Name && slices.Equal(a.Types, b.Types) && maps.Equal(one.Labels, other.Labels) &&
		(one.Spec.NodeClassRef == other.Spec.NodeClassRef || *one.Spec.NodeClassRef == *other.Spec.NodeClassRef)
}

// annotate marks a planned claim if overlays set prices or capacities of its instance types.
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
