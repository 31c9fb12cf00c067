package scheduling_test

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	awsv1 "github.com/tenon-sh/tenon/api/aws/v1"
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

// reservedScenarios are about reserved capacity.
func reservedScenarios() []scenario {
	return []scenario{{
		name: "reserved", rule: "reserved capacity is used first, as far as it goes, and the rest is bought on demand in the same plan",
		steps: []step{{
			act: func(p *play) {
				p.reserve(pool{suffix: "own", capacity: []string{"reserved", "on-demand"}, spec: []string{"weight: 10"}}, 1)
			},
			pods: []workload{{name: "web", count: 6}}}},
		expect: []expectation{nodes(3), on("web", poolKey, "reserved-own"), nodesWith(1, capacityKey, "reserved"), nodesWith(2, capacityKey, "on-demand"),
			nodesWith(1, awsv1.LabelCapacityReservationType, "default"), nodesWith(1, awsv1.LabelCapacityReservationInterruptible, "false")},
	}, {
		name: "reserved-only", rule: "pods that insist on reserved capacity wait when it is used up, and those that do not leave it to them",
		steps: []step{{
			act: func(p *play) {
				p.reserve(pool{suffix: "own", capacity: []string{"reserved", "on-demand"}, spec: []string{"weight: 10"}}, 1)
			},
			pods: []workload{{name: "any", count: 2}, {name: "only", count: 4, bound: 2, selector: capacityKey + ": reserved", stays: "is used up"}}}},
		expect: []expectation{nodes(2), on("any", capacityKey, "on-demand")},
	}}
}

// reserve creates a capacity reservation of m5.large machines, and a NodePool with its own node class that selects it.
func (p *play) reserve(own pool, count int) {
	p.T.Helper()
	p.Sim(http.MethodPost, "/_sim/reserve", ec2sim.Reservation{
		Type: "m5.large", Zone: "us-east-1a", Count: count, Targeted: true, Tags: map[string]string{"scene": p.name}}, nil)
	p.poolOfClass(own, `capacityReservationSelectorTerms: [{tags: {scene: "`+p.name+`"}}]`)
}

// poolOfClass creates a NodePool with its own node class.
func (p *play) poolOfClass(own pool, over string) {
	p.T.Helper()
	p.ownClass(over)
	own.class = p.name
	p.create(own.manifest(p.name))
	p.Await("NodePool "+own.name(p.name)+" ready", settleWithin, func() (bool, string) {
		var found karpv1.NodePool
		if err := p.view.Get(p.Context(), client.ObjectKey{Name: own.name(p.name)}, &found); err != nil {
			return false, err.Error()
		}
		return found.IsTrue(karpv1.ConditionTypeReady), fmt.Sprint(found.Status.Conditions)
	})
}

// ownClass creates the scenario's own EC2NodeClass: the default one with a specification, in YAML, put over its own.
func (p *play) ownClass(over string) {
	p.T.Helper()
	class := &unstructured.Unstructured{}
	class.SetAPIVersion("karpenter.k8s.aws/v1")
	class.SetKind("EC2NodeClass")
	if err := p.Get(p.Context(), client.ObjectKey{Name: "default"}, class); err != nil {
		p.T.Fatal(err)
	}
	spec, _, err := unstructured.NestedMap(class.Object, "spec")
	if err != nil {
		p.T.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(over), &spec); err != nil {
		p.T.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetAPIVersion("karpenter.k8s.aws/v1")
	made.SetKind("EC2NodeClass")
	made.SetName(p.name)
	if err := p.Create(p.Context(), made); err != nil {
		p.T.Fatal(err)
	}
}
