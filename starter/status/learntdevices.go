package status

import (
	"context"

	"go.uber.org/zap"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// keepDevices writes to a pool what drivers have published for its nodes, so that another process knows it when no such node
// exists any more. With the feature gate off nothing is known of devices, and the annotation stays as it is.
func (s *NodePools) keepDevices(ctx context.Context, pool *karpv1.NodePool, published plan.DeviceTemplates) error {
	if published == nil {
		return nil
	}
	before, err := plan.ParseLearntDevices(pool.Annotations[karpv1.LearntDevicesAnnotationKey])
	if err != nil {
		s.log.Warn("the devices of a NodePool are learnt anew", zap.String("nodePool", pool.Name), zap.Error(err))
	}
	text, err := before.Renewed(published, pool.Name, s.now()).Text()
	if err != nil {
		return err
	}
	return patch(ctx, s.kube, pool, func() {
		if text == "" {
			delete(pool.Annotations, karpv1.LearntDevicesAnnotationKey)
			return
		}
		if pool.Annotations == nil {
			pool.Annotations = map[string]string{}
		}
		pool.Annotations[karpv1.LearntDevicesAnnotationKey] = text
	})
}
