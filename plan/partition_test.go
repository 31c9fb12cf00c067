package plan_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
)

const partitionKey = "karpenter.k8s.aws/placement-group-partition"

// inGroup makes types those of a node class in a placement group.
func inGroup(group string, partitions []string, types ...*cloud.InstanceType) []*cloud.InstanceType {
	for _, typ := range types {
		typ.PlacementGroup, typ.Partitions = group, partitions
		typ.Labels["karpenter.k8s.aws/placement-group-id"] = group
	}
	return types
}

// TestPartitions plans for a node class in a placement group with three partitions, and reads which partition the launch of each
// claim will ask for.
func TestPartitions(t *testing.T) {
	t.Parallel()
	three := []string{"1", "2", "3"}
	web := func(n int, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, "web", "1", "1Gi", append([]func(*corev1.Pod){app("web")}, options...)...)
	}
	partitions := func(operator corev1.NodeSelectorOperator, values ...string) []func(*karpv1.NodePool) {
		return []func(*karpv1.NodePool){requires(partitionKey, operator, values...)}
	}
	in := func(partition string) func(*plan.Node) {
		return func(n *plan.Node) { n.Labels[partitionKey] = partition }
	}
	full := func(n *plan.Node) { n.Allocatable.CPU = 100 }
	for reason, test := range map[string]struct {
		pool  []func(*karpv1.NodePool)
		group []string
		pods  []*corev1.Pod
		nodes []*plan.Node
		bound map[string][]*corev1.Pod
		// want has the partition of each claim, "-" where that is left to EC2. left is how many pods get no node.
		want string
		left int
	}{
		"nobody asks: EC2 distributes":               {group: three, pods: web(1), want: "-"},
		"the pool names two: the first":              {group: three, pool: partitions(corev1.NodeSelectorOpIn, "3", "2"), pods: web(1), want: "2"},
		"the pool excludes one: the first other":     {group: three, pool: partitions(corev1.NodeSelectorOpNotIn, "1"), pods: web(1), want: "2"},
		"the pool names one that is not there":       {group: three, pool: partitions(corev1.NodeSelectorOpIn, "9"), pods: web(1), left: 1},
		"the pool asks for one, and has none":        {pool: partitions(corev1.NodeSelectorOpIn, "1"), pods: web(1), left: 1},
		"a pod asks for one":                         {group: three, pods: web(1, selects(partitionKey, "3")), want: "3"},
		"a pod asks for one, and there are none":     {pods: web(1, selects(partitionKey, "3")), left: 1},
		"a pod asks for one that is not there":       {group: three, pods: web(1, selects(partitionKey, "4")), left: 1},
		"the pod and the pool disagree":              {group: three, pool: partitions(corev1.NodeSelectorOpIn, "1"), pods: web(1, selects(partitionKey, "2")), left: 1},
		"pods are spread":                            {group: three, pods: web(3, spreads(partitionKey, 1)), want: "1 2 3"},
		"pods are spread over those of the pool":     {group: three, pool: partitions(corev1.NodeSelectorOpIn, "1", "3"), pods: web(2, spreads(partitionKey, 1)), want: "1 3"},
		"pods are spread over partitions and zones":  {group: three, pods: web(3, spreads(partitionKey, 1), spreads(zone, 1)), want: "1 2 3"},
		"pods are apart":                             {group: three, pods: web(4, avoids(partitionKey, "")), want: "1 2 3", left: 1},
		"pods are together":                          {group: three, pods: web(2, joins(partitionKey, "")), want: "1"},
		"pods are spread, and there are none":        {pods: web(2, spreads(partitionKey, 1)), left: 2},
		"others do not care and join":                {group: three, pods: append(web(3, spreads(partitionKey, 1)), newPod("plain", "200m", "100Mi")), want: "1 2 3"},
		"a node in one partition has a pod of these": {group: three, nodes: []*plan.Node{existing("n", "m6i.large", in("1"), full)}, bound: map[string][]*corev1.Pod{"claim-n": web(1)}, pods: manyPods(2, "more", "1", "1Gi", app("web"), spreads(partitionKey, 1)), want: "2 3"},
		"a node in the partition has room":           {group: three, nodes: []*plan.Node{existing("n", "m6i.xlarge", in("2"))}, pods: web(1, selects(partitionKey, "2"))},
	} {
		types := []*cloud.InstanceType{machineSpec{name: "m5.large", cores: 2, memory: 8, price: 0.096}.instanceType(), machineSpec{name: "m5.xlarge", cores: 4, memory: 16, price: 0.192}.instanceType()}
		if test.group != nil {
			types = inGroup("pg-1", test.group, types...)
		}
		pool := inPool(nodePool("p", append([]func(*karpv1.NodePool){onDemand()}, test.pool...)...), types)
		w := world{pods: test.pods, pools: []plan.Pool{pool}, nodes: test.nodes, bound: test.bound}
		p := plan.Pack(w.input())
		var got []string
		for _, planned := range p.Claims {
			claim, err := planned.NodeClaim(pool.NodePool, "claim")
			if err != nil {
				t.Fatal(err)
			}
			if _, labelled := claim.Labels[partitionKey]; labelled {
				t.Errorf("%s: the claim is labelled before its machine is known", reason)
			}
			keys, err := plan.Offerings(nodeclass.Labels(), claim, pool.Types, nil, now, "")
			if err != nil {
				t.Errorf("%s: the claim cannot be launched: %v", reason, err)
				continue
			}
			if keys[0].PlacementGroup != pool.Types[0].PlacementGroup {
				t.Errorf("%s: the offering is %+v", reason, keys[0])
			}
			got = append(got, orNone(plan.Partition(nodeclass.Labels(), claim, pool.Types)))
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != test.want || len(p.Unplaced) != test.left {
			t.Errorf("%s: partitions %q, want %q; left %v", reason, text, test.want, p.Unplaced)
		}
	}
}

func orNone(partition string) string {
	if partition == "" {
		return "-"
	}
	return partition
}

// TestRefusalsInAPlacementGroup plans for a class in a placement group and one outside while an offering is refused.
func TestRefusalsInAPlacementGroup(t *testing.T) {
	t.Parallel()
	key := cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: "on-demand"}
	inside := key
	inside.PlacementGroup = "pg-1"
	for reason, test := range map[string]struct {
		refused         cloud.OfferingKey
		grouped, others int // claims
	}{
		"in the group: it is left to others":       {refused: inside, others: 1},
		"outside: there is none for the group too": {refused: key},
		"elsewhere": {refused: cloud.OfferingKey{InstanceType: "m5.large", Zone: "us-east-1b", CapacityType: "on-demand"}, grouped: 1, others: 1},
	} {
		for _, grouped := range []bool{true, false} {
			types := []*cloud.InstanceType{machineSpec{name: "m5.large", cores: 2, memory: 8, price: 0.096, zones: []string{"us-east-1a"}}.instanceType()}
			want := test.others
			if grouped {
				types, want = inGroup("pg-1", nil, types...), test.grouped
			}
			w := world{pods: []*corev1.Pod{newPod("a", "1", "1Gi")}, pools: []plan.Pool{inPool(nodePool("p", onDemand()), types)}}
			in := w.input()
			in.Unavailable = map[cloud.OfferingKey]time.Time{test.refused: now.Add(time.Minute)}
			if p := plan.Pack(in); len(p.Claims) != want {
				t.Errorf("%s, grouped %t: %d claims, want %d", reason, grouped, len(p.Claims), want)
			}
		}
	}
}
