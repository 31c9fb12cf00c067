package scheduling_test

import (
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	karpv1alpha1 "github.com/tenon-sh/tenon/api/karpenter/v1alpha1"
)

// overlayScenarios are about prices that people know better than the cloud's lists. Of the two types, c5.large is the
// cheaper one in those lists.
func overlayScenarios() []scenario {
	pools := []pool{{types: []string{"m5.large", "c5.large"}}}
	web := []workload{{name: "web", count: 2}}
	return []scenario{{
		name: "overlay-price", rule: "what a NodeOverlay makes the cheapest is planned, and launched though EC2 has another price",
		pools: pools,
		steps: []step{
			{objects: overlay("overlay-price", "overlay-price", "m5.large", "0.01"), then: func(p *play) { p.awaitOverlay("overlay-price", "True") }},
			{pods: web},
		},
		expect: []expectation{on("web", typeKey, "m5.large"), nodes(1), overlaidClaims},
	}, {
		name: "overlay-conflict", rule: "of two NodeOverlays of one weight that set the same price one applies, and the other says why it does not",
		pools: pools,
		steps: []step{
			{
				objects: overlay("overlay-conflict-a", "overlay-conflict", "c5.large", "9") + "\n---\n" + overlay("overlay-conflict-b", "overlay-conflict", "c5.large", "0.02"),
				then: func(p *play) {
					p.awaitOverlay("overlay-conflict-a", "False NodeOverlay overlay-conflict-b has the same weight")
					p.awaitOverlay("overlay-conflict-b", "True")
				},
			},
			{pods: web},
		},
		expect: []expectation{on("web", typeKey, "c5.large"), nodes(1)},
	}}
}

// overlay returns a NodeOverlay that sets the price of an instance type in a scenario's pool.
func overlay(name, pool, instanceType, price string) string {
	return fmt.Sprintf(`{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, metadata: {name: %s}, spec: {price: "%s", requirements: [`+
		`{key: karpenter.sh/nodepool, operator: In, values: [%s]}, {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}]}}`, name, price, pool, instanceType)
}

// awaitOverlay waits until the worker has reported whether an overlay applies.
func (p *play) awaitOverlay(name, want string) {
	p.T.Helper()
	p.Await("NodeOverlay "+name+" "+want, settleWithin, func() (bool, string) {
		var found karpv1alpha1.NodeOverlay
		if err := p.Get(p.Context(), client.ObjectKey{Name: name}, &found); err != nil {
			return false, err.Error()
		}
		valid := found.Condition(karpv1.ConditionTypeValidationSucceeded)
		if valid == nil {
			return false, "it has no condition yet"
		}
		said := string(valid.Status) + " " + valid.Message
		return strings.HasPrefix(said, want), said
	})
}

// overlaidClaims expects the claims to say that an overlay affected their prices.
func overlaidClaims(o *outcome) error {
	for i := range o.claimed {
		if claim := &o.claimed[i]; claim.Annotations[karpv1alpha1.PriceOverlayAppliedAnnotationKey] != "true" {
			return fmt.Errorf("NodeClaim %s has the annotations %v", claim.Name, claim.Annotations)
		}
	}
	return nil
}
