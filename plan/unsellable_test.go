package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

func TestUnsellablePools(t *testing.T) {
	t.Parallel()
	const family = "karpenter.k8s.aws/instance-family"
	all := map[cloud.OfferingKey]time.Time{}
	for _, typ := range smallCatalogue() {
		for _, o := range typ.Offerings {
			all[cloud.OfferingKey{InstanceType: typ.Name, Zone: o.Zone, CapacityType: o.CapacityType}] = now.Add(time.Minute)
		}
	}
	for name, test := range map[string]struct {
		reason      string
		pool        func(*karpv1.NodePool)
		unavailable map[cloud.OfferingKey]time.Time
		bestEffort  bool
		want        []plan.Unsellable
	}{
		"Plain":       {reason: "something can be launched", pool: onDemand()},
		"Unmatched":   {reason: "no instance type meets the requirements", pool: requires(family, corev1.NodeSelectorOpIn, "z9"), want: []plan.Unsellable{{NodePool: "p"}}},
		"MinValues":   {reason: "there are fewer families than minValues asks for", pool: minValues(family, corev1.NodeSelectorOpExists, 50), want: []plan.Unsellable{{NodePool: "p", MinValues: true}}},
		"BestEffort":  {reason: "minValues may be missed", pool: minValues(family, corev1.NodeSelectorOpExists, 50), bestEffort: true},
		"Unavailable": {reason: "EC2 has just refused all offerings", pool: onDemand(), unavailable: all, want: []plan.Unsellable{{NodePool: "p"}}},
		"Limited":     {reason: "what a limit leaves is a matter of the pods", pool: limit(karpv1.ResourceNodes, "0")},
		"NotReady":    {reason: "nothing is known of what a NodePool offers that is not Ready", pool: notReady("no subnets")},
		"Static":      {reason: "a static NodePool serves no pods", pool: func(p *karpv1.NodePool) { p.Spec.Replicas = new(int64(1)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{pods: manyPods(1, "a", "1", "1Gi"), pools: []plan.Pool{inPool(nodePool("p", test.pool), smallCatalogue())}}
			in := w.input()
			in.Unavailable = test.unavailable
			if test.bestEffort {
				in.MinValues = plan.MinValuesBestEffort
			}
			if diff := cmp.Diff(test.want, plan.Pack(in).Unsellable); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.reason, diff)
			}
		})
	}
}
