package plan_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/plan"
)

// Required affinity and anti-affinity between pods.
func TestPodAffinity(t *testing.T) {
	t.Parallel()
	pods := func(n int, name string, options ...func(*corev1.Pod)) []*corev1.Pod {
		return manyPods(n, name, "900m", "1Gi", append([]func(*corev1.Pod){app(name)}, options...)...)
	}
	together := func(groups ...[]*corev1.Pod) []*corev1.Pod {
		var all []*corev1.Pod
		for _, group := range groups {
			all = append(all, group...)
		}
		return all
	}
	one := func(letter string, options ...func(*plan.Node)) []*plan.Node {
		return []*plan.Node{existing("n", "m6i.2xlarge", append([]func(*plan.Node){inZone(letter)}, options...)...)}
	}
	full := func(n *plan.Node) { n.Allocatable.CPU = 300 }
	running := func(n int, options ...func(*corev1.Pod)) map[string][]*corev1.Pod {
		return map[string][]*corev1.Pod{"claim-n": runs("n", n, options...)}
	}
	small := nodePool("p", requires("karpenter.k8s.aws/instance-size", corev1.NodeSelectorOpIn, "large"))
	leaving := func(pod *corev1.Pod) { pod.DeletionTimestamp = &pod.CreationTimestamp }
	tests := []relation{
		// Affinity.
		{name: "zone of its own", reason: "the first pod chooses a zone, the others follow", pods: pods(9, "web", joins(zone, "")), by: zone, want: "a=9"},
		{name: "zone of a pod that runs", reason: "pods join those that run", pods: pods(4, "web", joins(zone, "")), nodes: one("b", full), bound: running(1, app("web")), by: zone, want: "b=4"},
		{name: "zone of others", reason: "pods follow those that are planned together with them", by: zone, want: "c=6",
			pods: together(pods(3, "cart", joins(zone, "web")), pods(3, "web", selects(zone, "us-east-1c")))},
		{name: "zone of others that choose freely", reason: "whoever is followed is given one zone", pods: together(pods(3, "cart", joins(zone, "web")), pods(3, "web")), by: zone, want: "a=6"},
		{name: "a train", reason: "followers of followers come last", by: zone, want: "b=3",
			pods: together(pods(1, "db", joins(zone, "cart")), pods(1, "cart", joins(zone, "web")), pods(1, "web", selects(zone, "us-east-1b")))},
		{name: "nobody there", reason: "who looks for pods that are not there stays", pods: pods(2, "cart", joins(zone, "web")), by: zone, want: "", left: 2, why: "no pod is there"},
		{name: "one node of its own", reason: "pods that have to be together get one node", pods: pods(6, "web", joins(hostname, "")), by: hostname, want: "6"},
		{name: "too many for one node", reason: "as many as the largest machine holds stay together, the rest waits", pods: pods(3, "web", joins(hostname, "")), pools: []*karpv1.NodePool{small},
			by: hostname, want: "2", left: 1, why: "takes no more"},
		{name: "one node that runs", reason: "the node of the running pod is the only one that will do", pods: pods(9, "web", joins(hostname, "")), nodes: one("a"), bound: running(1, app("web")), by: hostname, want: "8", left: 1},
		{name: "beside another app", reason: "each follower shares a node with one it follows", pods: together(pods(1, "cart", joins(hostname, "db")), pods(1, "db")), by: hostname, want: "2"},
		{name: "capacity type", reason: "any label may be the domain", pods: together(pods(2, "cart", joins(capacityType, "web")), pods(1, "web", selects(capacityType, "on-demand"))), by: capacityType, want: "on-demand=3"},
		{name: "other namespace", reason: "a term is about the pod's own namespace", pods: pods(1, "cart", joins(zone, "web")), nodes: one("b"), bound: running(1, app("web"), within("shop")), by: zone, want: "", left: 1},
		{name: "named namespace", reason: "unless it names others", pods: pods(1, "cart", joins(zone, "web", inNamespaces("shop"))), nodes: one("b", full), bound: running(1, app("web"), within("shop")), by: zone, want: "b=1"},
		{name: "selected namespace", reason: "or selects them by their labels", pods: pods(1, "cart", joins(zone, "web", ofTeams("a"))), nodes: one("b", full), bound: running(1, app("web"), within("shop")), by: zone, want: "b=1"},
		{name: "namespace of another team", reason: "labels that do not match select no namespace", pods: pods(1, "cart", joins(zone, "web", ofTeams("b"))), nodes: one("b"), bound: running(1, app("web"), within("shop")), by: zone, want: "", left: 1},
		{name: "matchLabelKeys", reason: "a pod joins its own version only", pods: pods(1, "web", labeled("version", "2"), joins(zone, "", ofVersion)), nodes: one("b", full),
			bound: running(1, app("web"), labeled("version", "1")), by: zone, want: "a=1"},
		{name: "company that leaves", reason: "pods that are being deleted are no company", pods: pods(2, "cart", joins(zone, "web")), nodes: one("b"), bound: running(1, app("web"), leaving), by: zone, want: "", left: 2},
		// Anti-affinity.
		{name: "one on each node", reason: "pods that avoid each other get a node each", pods: pods(3, "web", avoids(hostname, "")), by: hostname, want: "1 1 1"},
		{name: "one in each zone", reason: "there are three zones, so one of four pods waits", pods: pods(4, "web", avoids(zone, "")), by: zone, want: "a=1 b=1 c=1", left: 1, why: "anti-affinity over " + zone},
		{name: "away from a pod that runs", reason: "zone b has one already", pods: pods(2, "web", avoids(zone, "")), nodes: one("b"), bound: running(1, app("web")), by: zone, want: "a=1 c=1"},
		{name: "inverse, running", reason: "who runs may keep others away, who do not mind themselves", pods: pods(2, "web"), nodes: one("a"), bound: running(1, app("db"), avoids(hostname, "web")), by: hostname, want: "2"},
		{name: "inverse, running, zone", reason: "and away from its whole zone", pods: pods(2, "web", needs(in(zone, "us-east-1a", "us-east-1b"))), nodes: one("a"), bound: running(1, app("db"), avoids(zone, "web")), by: zone, want: "b=2"},
		{name: "inverse, planned", reason: "the same among pods that are planned together", pods: together(pods(1, "db", avoids(hostname, "web")), pods(1, "web")), by: hostname, want: "1 1"},
		{name: "inverse, planned, zone", reason: "a whole zone is closed by one pod", pods: together(pods(1, "db", avoids(zone, "web"), selects(zone, "us-east-1a")), pods(3, "web", needs(in(zone, "us-east-1a", "us-east-1b")))), by: zone, want: "a=1 b=3"},
		{name: "mismatchLabelKeys", reason: "no other version of the app is in the zone", pods: pods(2, "web", labeled("version", "2"), avoids(zone, "", ofOtherVersions)), nodes: one("a"),
			bound: running(1, app("web"), labeled("version", "1")), by: zone, want: "b=2"},
		{name: "anti-affinity to another namespace", reason: "pods of all namespaces may be meant", pods: pods(1, "web", avoids(zone, "web", ofTeams())), nodes: one("a"), bound: running(1, app("web"), within("ops")), by: zone, want: "b=1"},
		{name: "open label", reason: "each value of a label the pool leaves open is one domain", pods: pods(4, "web", avoids("slot", "")), pools: []*karpv1.NodePool{nodePool("p", requires("slot", corev1.NodeSelectorOpIn, "1", "2", "3"))},
			by: "slot", want: "1=1 2=1 3=1", left: 1},
		{name: "those that move", reason: "a pod of a node that goes away keeps nobody away", pods: pods(1, "web", avoids(zone, "")), nodes: one("a", func(n *plan.Node) { n.Deleting = true }),
			bound: running(1, app("web"), avoids(zone, "")), by: zone, want: "a=1 b=1"},
		{name: "together and apart", reason: "one of each on every node", pods: together(pods(3, "web", avoids(hostname, "")), pods(3, "cart", avoids(hostname, ""), joins(hostname, "web"))), by: hostname, want: "2 2 2"},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

// The API server rejects such a label, but manifests that are planned for without one may have it.
func TestAffinityToAValueThatIsNone(t *testing.T) {
	t.Parallel()
	w := world{pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}, pods: manyPods(1, "web", "1", "1Gi", app("web"),
		labeled("version", ")("), avoids(zone, "", ofOtherVersions))}
	if p := plan.Pack(w.input()); len(p.Claims) != 1 || len(p.Unplaced) != 0 {
		t.Errorf("%d claims, %d pods left", len(p.Claims), len(p.Unplaced))
	}
}
