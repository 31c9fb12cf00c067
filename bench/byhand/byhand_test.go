package byhand_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tenon-sh/tenon/bench/byhand"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/workload"
	"github.com/tenon-sh/tenon/cloud"
)

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse("10")}
}

func sold(name, cpu, memory string, price float64) *cloud.InstanceType {
	return &cloud.InstanceType{Name: name, Allocatable: resources(cpu, memory), Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: "us-east-1a", Price: price, Available: true}}}
}

func asking(name, cpu string, apart bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workload.AppLabel: "app"}}}
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: resources(cpu, "1Gi")}}}
	if apart {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}}}
	}
	return p
}

// Three pods of 2, 1 and 1 cores; machines of 2 cores cost $1, machines of 4 cores $3. Two small machines would do, but
// first fit takes a large one.
func TestPrice(t *testing.T) {
	t.Parallel()
	types := []*cloud.InstanceType{sold("small", "2", "100Gi", 1), sold("large", "4", "100Gi", 3)}
	for _, test := range []struct {
		reason string
		pods   []*corev1.Pod
		want   byhand.Answer
	}{
		{reason: "first fit takes a large one", pods: []*corev1.Pod{asking("a", "2", false), asking("b", "1", false), asking("c", "1", false)},
			want: byhand.Answer{FirstFit: 3, Nodes: 1, OneType: 2, Type: "small", Bound: 2}},
		{reason: "pods of one app apart", pods: []*corev1.Pod{asking("a", "1", true), asking("b", "1", true), asking("c", "1", true)},
			want: byhand.Answer{FirstFit: 3, Nodes: 3, OneType: 3, Type: "small", Bound: 1.5}},
	} {
		got, ok := byhand.Price(workload.Ask("q", test.pods, types, workload.Pool("p")))
		if !ok {
			t.Fatalf("%s: no answer", test.reason)
		}
		if math.Abs(got.Bound-test.want.Bound) > 0.01*test.want.Bound || got.Bound > test.want.Bound*1.000001 {
			t.Errorf("%s: the bound is %v, want %v", test.reason, got.Bound, test.want.Bound)
		}
		got.Bound = test.want.Bound
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", test.reason, got, test.want)
		}
	}
}

// Where pods have no rules, first fit by hand is what Karpenter plans.
func TestFirstFitIsKarpenters(t *testing.T) {
	t.Parallel()
	catalogue, err := market.EC2(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range workload.Unprepared(catalogue) {
		if b.Name != "distinct-100-on-demand" && b.Name != "distinct-300-spot" && b.Name != "recommended-20-on-demand" {
			continue
		}
		q := b.Ask()
		theirs, err := karpenter.Plan(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		ours, ok := byhand.Price(q)
		if !ok || math.Abs(ours.FirstFit-theirs.Cost()) > 0.03*theirs.Cost() || ours.Bound > min(theirs.Cost(), ours.Least()) {
			t.Errorf("%s: by hand %+v, and Karpenter's plan costs $%.3f/h", b.Name, ours, theirs.Cost())
		}
	}
}

// Questions with other rules are not answered.
func TestOtherRulesAreNotForHands(t *testing.T) {
	t.Parallel()
	types := []*cloud.InstanceType{sold("small", "2", "100Gi", 1)}
	spread := asking("a", "1", false)
	spread.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone}}
	q := workload.Ask("q", []*corev1.Pod{spread}, types, workload.Pool("p"))
	if _, ok := byhand.Price(q); ok {
		t.Error("a question with spread is answered")
	}
	q.Pods, q.Nodes = []*corev1.Pod{asking("a", "1", false)}, make([]compare.Node, 1)
	if _, ok := byhand.Price(q); ok {
		t.Error("a question with nodes is answered")
	}
}
