package activities

import (
	"context"
	"fmt"

	"github.com/tenon-sh/tenon/plan"
)

// pools returns every NodePool with what can be launched for it, or why nothing can, as NodeOverlays have it.
func (a *Activities) pools(ctx context.Context) []plan.Pool {
	pools, _ := a.overlaid.apply(a.Mirror.NodeOverlays(), a.offered(ctx))
	return pools
}

// offered returns every NodePool with what the cloud sells for it.
func (a *Activities) offered(ctx context.Context) []plan.Pool {
	var pools []plan.Pool
	for _, nodePool := range a.Mirror.NodePools() {
		pool := plan.Pool{NodePool: nodePool, NodePrice: a.NodePrice, Packing: a.Packing.For(nodePool)}
		ref := nodePool.Spec.Template.Spec.NodeClassRef
		class := a.Mirror.NodeClass(ref.Name)
		if class == nil {
			pool.Problem = fmt.Sprintf("%s %q does not exist", ref.Kind, ref.Name)
		} else if types, err := a.Cloud.InstanceTypes(ctx, class); err != nil {
			pool.Problem = fmt.Sprintf("%s %q: %v", ref.Kind, ref.Name, err)
		} else {
			pool.Types = types
			pool.NodePrice += a.Cloud.VolumePrice(class)
		}
		pools = append(pools, pool)
	}
	return pools
}
