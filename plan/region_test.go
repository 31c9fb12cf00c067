package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

// The region of a zone is what the provider says. It cannot be derived from a Local Zone's name by dropping a letter.
func TestRegionOfALocalZone(t *testing.T) {
	t.Parallel()
	local := machineSpec{name: "m5.large", cores: 2, memory: 8, pods: 29, price: 0.1, zones: []string{"us-west-2-lax-1a"}}.instanceType()
	local.Labels[corev1.LabelTopologyRegion] = "us-west-2"
	types := []*cloud.InstanceType{local}
	inRegion := func(name string) plan.Plan {
		w := world{pods: manyPods(1, "a", "1", "1Gi", selects(corev1.LabelTopologyRegion, name)), pools: []plan.Pool{inPool(nodePool("p", onDemand()), types)}}
		return plan.Pack(w.input())
	}
	if p := inRegion("us-west-2"); len(p.Claims) != 1 {
		t.Errorf("a pod that asks for the region gets %d claims, want 1: %v", len(p.Claims), p.Unplaced)
	}
	if p := inRegion("us-west-2-lax-1"); len(p.Claims) != 0 {
		t.Error("a node is bought in a region that is none")
	}
	claim := &karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Resources: karpv1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		Requirements: []karpv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyRegion, Operator: corev1.NodeSelectorOpIn, Values: []string{"us-west-2"}}}}}
	if keys, err := plan.Offerings(nodeclass.Labels(), claim, types, nil, now, plan.MinValuesStrict); err != nil || len(keys) == 0 {
		t.Errorf("a claim for the region has %d offerings: %v", len(keys), err)
	}
}
