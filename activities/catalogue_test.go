package activities

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// shop is a cluster with NodePools and classes, and a cloud that offers one type for the classes it knows.
type shop struct {
	Mirror
	cloud.Provider
	pools    []*karpv1.NodePool
	classes  map[string]cloud.NodeClass
	overlays []*karpv1alpha1.NodeOverlay
	kinds    []*cloud.InstanceType
	excluded []cloud.Exclusion
}

func (s *shop) NodeOverlays() []*karpv1alpha1.NodeOverlay  { return s.overlays }
func (s *shop) NodePools() []*karpv1.NodePool              { return s.pools }
func (s *shop) Kind() cloud.Kind                           { return nodeclass.Kind() }
func (s *shop) NodeClass(name string) cloud.NodeClass      { return s.classes[name] }
func (s *shop) VolumePrice(cloud.NodeClass) float64        { return 0.002 }
func (s *shop) Excluded(cloud.NodeClass) []cloud.Exclusion { return s.excluded }
func (s *shop) InstanceTypes(_ context.Context, class cloud.NodeClass) ([]*cloud.InstanceType, error) {
	if class.GetName() == "broken" {
		return nil, errors.New("no subnets")
	}
	return s.kinds, nil
}

// poolOf returns a NodePool that refers to a class.
func poolOf(name, class string, annotations map[string]string) *karpv1.NodePool {
	pool := &karpv1.NodePool{}
	pool.Name, pool.Annotations = name, annotations
	pool.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class}
	return pool
}

func (s *shop) NodePool(name string) *karpv1.NodePool {
	for _, pool := range s.pools {
		if pool.Name == name {
			return pool
		}
	}
	return nil
}

func TestPools(t *testing.T) {
	t.Parallel()
	class := func(name string) *awsv1.EC2NodeClass {
		c := &awsv1.EC2NodeClass{}
		c.Name = name
		return c
	}
	place := &shop{kinds: []*cloud.InstanceType{{Name: "m5.large"}}, excluded: []cloud.Exclusion{{InstanceType: "a1.large", Why: "are too old"}}, classes: map[string]cloud.NodeClass{"default": class("default"), "broken": class("broken")}, pools: []*karpv1.NodePool{
		poolOf("plain", "default", nil), poolOf("tight", "default", map[string]string{karpv1.PackingAnnotationKey: karpv1.PackingCheapest}),
		poolOf("mistaken", "default", map[string]string{karpv1.PackingAnnotationKey: "tight"}), poolOf("lost", "none", nil), poolOf("broken", "broken", nil),
	}}
	acts := New(Config{Mirror: place, Cloud: place, NodePrice: 0.01, Packing: plan.PackingSpread})
	type made struct {
		Types     int
		Excluded  int
		Problem   string
		NodePrice float64
		Packing   plan.Packing
	}
	want := map[string]made{
		"plain":    {Types: 1, Excluded: 1, NodePrice: 0.012, Packing: plan.PackingSpread},
		"tight":    {Types: 1, Excluded: 1, NodePrice: 0.012, Packing: plan.PackingCheapest},
		"mistaken": {Types: 1, Excluded: 1, NodePrice: 0.012, Packing: plan.PackingSpread},
		"lost":     {Problem: `EC2NodeClass "none" does not exist`, NodePrice: 0.01, Packing: plan.PackingSpread},
		"broken":   {Problem: `EC2NodeClass "broken": no subnets`, NodePrice: 0.01, Packing: plan.PackingSpread},
	}
	got := map[string]made{}
	for _, pool := range acts.launcher.catalogue.pools(t.Context()) {
		got[pool.NodePool.Name] = made{len(pool.Types), len(pool.Excluded), pool.Problem, pool.NodePrice, pool.Packing}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the planner is told of NodePools (-want +got):\n%s", diff)
	}
}
