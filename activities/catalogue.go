package activities

import (
	"context"
	"fmt"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// catalogue knows what can be launched for each NodePool and each claim, with NodeOverlays applied.
type catalogue struct {
	mirror Mirror
	cloud  cloud.Provider
	// nodePrice is the cost of a node besides its instance and its volumes, and packing how pods are packed for NodePools
	// that do not specify it themselves; see Config.
	nodePrice float64
	packing   plan.Packing
	// overlaid caches the pools with NodeOverlays applied.
	overlaid overlaid
}

// pools returns every NodePool with what can be launched for it, or why nothing can, with NodeOverlays applied.
func (c *catalogue) pools(ctx context.Context) []plan.Pool {
	pools, _ := c.overlaid.apply(c.cloud, c.mirror.NodeOverlays(), c.offered(ctx))
	return pools
}

// offered returns every NodePool with what the cloud offers for it.
func (c *catalogue) offered(ctx context.Context) []plan.Pool {
	var pools []plan.Pool
	for _, nodePool := range c.mirror.NodePools() {
		pool := plan.Pool{NodePool: nodePool, NodePrice: c.nodePrice, Packing: c.packing.For(nodePool)}
		ref := nodePool.Spec.Template.Spec.NodeClassRef
		class := c.mirror.NodeClass(ref.Name)
		if class == nil {
			pool.Problem = fmt.Sprintf("%s %q does not exist", ref.Kind, ref.Name)
		} else if types, err := c.cloud.InstanceTypes(ctx, class); err != nil {
			pool.Problem = fmt.Sprintf("%s %q: %v", ref.Kind, ref.Name, err)
		} else {
			pool.Types, pool.Excluded = types, c.cloud.Excluded(class)
			pool.NodePrice += c.cloud.VolumePrice(class)
		}
		pools = append(pools, pool)
	}
	return pools
}

// targets identify what the nodes of those NodePools are made from now that have a rollout.
func (c *catalogue) targets(pools []*karpv1.NodePool) map[string]string {
	targets := map[string]string{}
	for _, pool := range pools {
		if _, some := pool.Annotations[karpv1.RolloutAnnotationKey]; some {
			targets[pool.Name] = plan.RolloutTarget(pool, c.mirror.NodeClass(pool.Spec.Template.Spec.NodeClassRef.Name), c.cloud.Kind())
		}
	}
	return targets
}

// sold returns the instance types that a claim can be launched as, as planning sees them. Overlays do not apply to a claim
// without a NodePool.
func (c *catalogue) sold(ctx context.Context, claim *karpv1.NodeClaim, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
	kinds, err := c.cloud.InstanceTypes(ctx, class)
	objects := c.mirror.NodeOverlays()
	if err != nil || len(objects) == 0 {
		return kinds, err
	}
	pool := c.mirror.NodePool(claim.Labels[karpv1.NodePoolLabelKey])
	if pool == nil {
		return kinds, nil
	}
	_, overlays := c.overlaid.apply(c.cloud, objects, c.offered(ctx))
	return overlays.Apply(pool, kinds), nil
}

// nodeClass returns the claim's node class from the mirror, nil where there is none.
func (c *catalogue) nodeClass(claim *karpv1.NodeClaim) cloud.NodeClass {
	if claim.Spec.NodeClassRef == nil {
		return nil
	}
	return c.mirror.NodeClass(claim.Spec.NodeClassRef.Name)
}

// instanceType returns what the provider says about a launched type. The instance runs even if its node class cannot be
// launched from any longer; if the provider no longer knows the type, the result has nothing but the name.
func (c *catalogue) instanceType(ctx context.Context, claim *karpv1.NodeClaim, name string) (*cloud.InstanceType, error) {
	unknown := &cloud.InstanceType{Name: name}
	class := c.nodeClass(claim)
	if class == nil {
		return unknown, nil
	}
	kinds, err := c.sold(ctx, claim, class)
	switch cloud.KindOf(err) {
	case cloud.Transient, cloud.Throttled:
		return nil, cloudFailure("instance types of "+claim.Spec.NodeClassRef.Kind+" "+class.GetName(), err)
	}
	for _, kind := range kinds {
		if kind.Name == name {
			return kind, nil
		}
	}
	return unknown, nil
}
