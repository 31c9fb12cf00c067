package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/model"
)

// A claim without a machine has resources that are attached on request only if it asked for them: its machine will not
// have them otherwise.
func TestWhatIsAttachedOnRequest(t *testing.T) {
	t.Parallel()
	const efa = "vpc.amazonaws.com/efa"
	for reason, test := range map[string]struct {
		onRequest []corev1.ResourceName
		requests  plan.Resources
		claims    int
	}{
		"the claim asked for it": {onRequest: []corev1.ResourceName{efa},
			requests: plan.Resources{CPU: 100, Extended: []plan.Amount{{Name: efa, Value: 1}}}, claims: 0},
		"the claim did not":                         {onRequest: []corev1.ResourceName{efa}, requests: plan.Resources{CPU: 100}, claims: 1},
		"it is attached to every machine of a type": {onRequest: nil, requests: plan.Resources{CPU: 100}, claims: 0},
	} {
		typ := machineSpec{name: "c5n.18xlarge", cores: 72, memory: 192, price: 3.888, gpus: 4, devices: efa}.instanceType()
		typ.OnRequest = test.onRequest
		inFlight := &plan.Node{Claim: "waiting", Pool: "p", Labels: map[string]string{karpv1.NodePoolLabelKey: "p"}, Created: now, Requests: test.requests,
			Requirements: model.Term{among(corev1.LabelInstanceTypeStable, typ.Name), among(karpv1.CapacityTypeLabelKey, "on-demand"), among(corev1.LabelTopologyZone, "us-east-1a")}}
		w := world{pods: []*corev1.Pod{newPod("a", "500m", "1Gi", asks(efa, "2"))}, nodes: []*plan.Node{inFlight},
			pools: []plan.Pool{inPool(nodePool("p", onDemand()), []*cloud.InstanceType{typ})}}
		p := plan.Pack(w.input())
		if len(p.Claims) != test.claims || len(p.Unplaced) != 0 {
			t.Errorf("%s: %d claims, want %d; %v", reason, len(p.Claims), test.claims, p.Unplaced)
		}
		for _, claim := range p.Claims {
			if asked := claim.Requests[efa]; asked.Value() < 2 {
				t.Errorf("%s: the new claim asks for %+v", reason, claim.Requests)
			}
		}
	}
}
