package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/plan/lifecycle"
)

// static makes a static pool with some replicas.
func static(replicas int64, options ...func(*karpv1.NodePool)) *karpv1.NodePool {
	return nodePool("static", append(options, func(pool *karpv1.NodePool) { pool.Spec.Replicas = &replicas })...)
}

func limitNodes(count string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		pool.Spec.Limits = karpv1.Limits{karpv1.ResourceNodes: resource.MustParse(count)}
	}
}

// ofStatic makes a node of the static pool.
func ofStatic(name string, change ...func(*plan.Node)) *plan.Node {
	n := existing(name, "m6i.large")
	n.Pool = "static"
	for _, c := range change {
		c(n)
	}
	return n
}

func leaves(n *plan.Node) { n.Deleting = true }

func TestShortages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		pool   *karpv1.NodePool
		nodes  []*plan.Node
		want   []plan.Shortage
	}{
		{reason: "all of them", pool: static(2), want: []plan.Shortage{{Pool: "static", Nodes: 2}}},
		{reason: "enough", pool: static(1), nodes: []*plan.Node{ofStatic("a")}},
		{reason: "too many", pool: static(1), nodes: []*plan.Node{ofStatic("a"), ofStatic("b")}},
		{reason: "none are wanted", pool: static(0)},
		{reason: "one is lost", pool: static(2), nodes: []*plan.Node{ofStatic("a"), ofStatic("b", leaves)}, want: []plan.Shortage{{Pool: "static", Nodes: 1}}},
		{
			reason: "one without a machine yet counts", pool: static(2),
			nodes: []*plan.Node{ofStatic("a", func(n *plan.Node) { n.Name, n.Launched, n.ProviderID = "", false, "" })}, want: []plan.Shortage{{Pool: "static", Nodes: 1}},
		},
		{reason: "nodes of others do not count", pool: static(1), nodes: []*plan.Node{existing("a", "m6i.large")},
			want: []plan.Shortage{{Pool: "static", Nodes: 1}}},
		{reason: "up to the limit", pool: static(5, limitNodes("3")), nodes: []*plan.Node{ofStatic("a")},
			want: []plan.Shortage{{Pool: "static", Nodes: 2, Forbidden: "limit nodes 3 leaves 2"}}},
		{
			reason: "what leaves counts for the limit until it is gone", pool: static(2, limitNodes("2")), nodes: []*plan.Node{ofStatic("a"), ofStatic("b", leaves)},
			want: []plan.Shortage{{Pool: "static", Forbidden: "limit nodes 2 leaves 0"}},
		},
		{
			reason: "a pool that is not Ready", pool: static(1, func(pool *karpv1.NodePool) {
				pool.Status.Conditions[0].Status, pool.Status.Conditions[0].Message = "False", "no subnets"
			}),
			want: []plan.Shortage{{Pool: "static", Forbidden: "it is not Ready: no subnets"}},
		},
		{reason: "a pool that is being deleted", pool: static(1, func(pool *karpv1.NodePool) { pool.DeletionTimestamp = &metav1.Time{Time: now} })},
		{reason: "a pool that follows the pods", pool: nodePool("static")},
	} {
		got := plan.Shortages(&plan.Snapshot{Time: now, LabelKeys: nodeclass.Labels(), NodePools: []*karpv1.NodePool{tc.pool}, Nodes: tc.nodes})
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
		}
	}
}

func TestStaticClaims(t *testing.T) {
	t.Parallel()
	pool := static(3, requires(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m6i.xlarge", "m6i.large"))
	in := func(change func(*plan.Input)) plan.Input {
		input := plan.Input{
			Snapshot: &plan.Snapshot{Time: now, LabelKeys: nodeclass.Labels(), NodePools: []*karpv1.NodePool{pool}, Nodes: []*plan.Node{ofStatic("a")}},
			Pools:    []plan.Pool{{NodePool: pool, Types: smallCatalogue()}},
		}
		if change != nil {
			change(&input)
		}
		return input
	}
	refuse := func(kinds ...string) func(*plan.Input) {
		return func(input *plan.Input) {
			input.Unavailable = map[cloud.OfferingKey]time.Time{}
			for _, kind := range kinds {
				for _, zone := range threeZones {
					for _, typ := range []string{"m6i.large", "m6i.xlarge"} {
						input.Unavailable[cloud.OfferingKey{InstanceType: typ, Zone: zone, CapacityType: kind}] = now.Add(time.Minute)
					}
				}
			}
		}
	}
	for _, tc := range []struct {
		reason  string
		change  func(*plan.Input)
		want    []string
		refused []plan.Reason
	}{
		{reason: "two are lacking", want: []string{"spot m6i.large,m6i.xlarge", "spot m6i.large,m6i.xlarge"}},
		{reason: "on demand where spot was refused", change: refuse("spot"), want: []string{"on-demand m6i.large,m6i.xlarge", "on-demand m6i.large,m6i.xlarge"}},
		{reason: "nothing can be had now", change: refuse("spot", "on-demand"),
			refused: []plan.Reason{{NodePool: "static", Message: "no instance type and available offering meets its requirements"}}},
		{reason: "the node class has a problem", change: func(input *plan.Input) { input.Pools[0].Problem = "no such class" },
			refused: []plan.Reason{{NodePool: "static", Message: "no such class"}}},
	} {
		claims, refused := plan.Static(in(tc.change))
		var got []string
		for _, claim := range claims {
			got = append(got, claim.CapacityType+" "+fmt.Sprint(claim.InstanceTypes[0], ",", claim.InstanceTypes[1]))
			if claim.PricePerHour <= 0 || claim.Group != claims[0].Group || len(claim.Pods) > 0 {
				t.Errorf("%s: claim %+v", tc.reason, claim)
			}
			object, err := claim.NodeClaim(pool, "static-1")
			if err != nil {
				t.Fatal(err)
			}
			if len(object.Spec.Requirements) != 2 || len(object.Spec.Resources.Requests) > 0 {
				t.Errorf("%s: the claim requires %v and requests %v, want the template's requirements and a capacity type", tc.reason, object.Spec.Requirements, object.Spec.Resources.Requests)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
		}
		if diff := cmp.Diff(tc.refused, refused); diff != "" {
			t.Errorf("%s: refused: (-want +got)\n%s", tc.reason, diff)
		}
	}
}

func TestOverprovision(t *testing.T) {
	t.Parallel()
	intern := new(plan.Interner)
	runs := func(pods ...*corev1.Pod) func(*plan.Node) {
		return func(n *plan.Node) {
			for _, pod := range pods {
				n.Pods = append(n.Pods, intern.Pod(pod))
			}
		}
	}
	cheap := func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{"controller.kubernetes.io/pod-deletion-cost": "-100000000"}
	}
	stays := func(pod *corev1.Pod) { pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: "true"} }
	old := func(n *plan.Node) { n.Created = now.Add(-700 * time.Hour) }
	nodes := []*plan.Node{
		ofStatic("annotated", func(n *plan.Node) { n.DoNotDisrupt = true }),
		ofStatic("busy", runs(newPod("a", "100m", "1Mi"), newPod("b", "100m", "1Mi"))),
		ofStatic("busy-and-old", runs(newPod("c", "100m", "1Mi"), newPod("d", "100m", "1Mi")), old),
		ofStatic("cheap", runs(newPod("e", "100m", "1Mi", cheap))),
		ofStatic("empty"),
		ofStatic("leaving", leaves),
		ofStatic("not-launched", func(n *plan.Node) { n.Name, n.Launched = "", false }),
		ofStatic("refusing", runs(newPod("f", "100m", "1Mi", stays))),
	}
	order := []string{"not-launched", "empty", "busy-and-old", "cheap", "busy", "annotated", "refusing"}
	for replicas := range int64(8) {
		snapshot := &plan.Snapshot{Time: now, LabelKeys: nodeclass.Labels(), NodePools: []*karpv1.NodePool{static(replicas)}, Nodes: nodes}
		var got []string
		for _, command := range lifecycle.Overprovision(snapshot) {
			for _, node := range command.Nodes {
				got = append(got, strings.TrimPrefix(node, "claim-"))
			}
		}
		if want := order[:len(order)-int(replicas)]; !slices.Equal(got, want) {
			t.Errorf("%d replicas: %v go, want %v", replicas, got, want)
		}
	}
}

// TestStaticPoolsSettle checks that the decisions for a static pool bring it to its replicas and no further: once they
// are carried out nothing is left to decide, and limits.nodes is never exceeded.
func TestStaticPoolsSettle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		replicas, limit := rapid.Int64Range(0, 6).Draw(t, "replicas"), rapid.Int64Range(0, 8).Draw(t, "limit")
		pool := static(replicas, limitNodes(fmt.Sprint(limit)))
		snapshot := &plan.Snapshot{Time: now, LabelKeys: nodeclass.Labels(), NodePools: []*karpv1.NodePool{pool}}
		for i := range rapid.IntRange(0, 8).Draw(t, "nodes") {
			leaving := rapid.Bool().Draw(t, "leaving")
			snapshot.Nodes = append(snapshot.Nodes, ofStatic(fmt.Sprintf("n%d", i), func(n *plan.Node) { n.Deleting = leaving }))
		}
		before := len(snapshot.Nodes)
		claims, _ := plan.Static(plan.Input{Snapshot: snapshot, Pools: []plan.Pool{{NodePool: pool, Types: smallCatalogue()}}})
		commands := lifecycle.Overprovision(snapshot)
		if len(claims) > 0 && len(commands) > 0 {
			t.Fatal("nodes come and go in one decision")
		}
		for i := range claims {
			snapshot.Nodes = append(snapshot.Nodes, ofStatic(fmt.Sprintf("new%d", i)))
		}
		if len(claims) > 0 && int64(len(snapshot.Nodes)) > limit {
			t.Errorf("%d nodes are more than the limit of %d; there were %d", len(snapshot.Nodes), limit, before)
		}
		for _, command := range commands {
			for i, n := range snapshot.Nodes {
				if slices.Contains(command.Nodes, n.Key()) {
					snapshot.Nodes[i] = ofStatic(n.Name, leaves)
				}
			}
		}
		if again := lifecycle.Overprovision(snapshot); len(again) > 0 {
			t.Errorf("then %v go as well", again)
		}
		for _, shortage := range plan.Shortages(snapshot) {
			if shortage.Nodes > 0 {
				t.Errorf("then %d nodes are lacking", shortage.Nodes)
			}
		}
	})
}
