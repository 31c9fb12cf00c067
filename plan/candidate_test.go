package plan_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

const (
	overprovisioned = plan.DisruptionReasonOverprovisioned
	empty           = karpv1.DisruptionReasonEmpty
	expired         = plan.DisruptionReasonExpired
	drifted         = karpv1.DisruptionReasonDrifted
	underutilized   = karpv1.DisruptionReasonUnderutilized
)

// annotatedPool puts an annotation on a pool.
func annotatedPool(key, value string) func(*karpv1.NodePool) {
	return func(pool *karpv1.NodePool) {
		if pool.Annotations == nil {
			pool.Annotations = map[string]string{}
		}
		pool.Annotations[key] = value
	}
}

func graceful() func(*karpv1.NodePool) {
	return annotatedPool(karpv1.ExpirationAnnotationKey, karpv1.ExpirationGraceful)
}

// hasDrifted marks a node as drifted an hour ago, later by minutes.
func hasDrifted(minutes int) func(*plan.Node) {
	return func(n *plan.Node) {
		n.Drifted, n.DriftedFor, n.DriftedAt = true, "NodePoolDrifted", now.Add(-time.Hour+time.Duration(minutes)*time.Minute)
	}
}

func graceOf(d time.Duration) func(*plan.Node) {
	return func(n *plan.Node) { n.TerminationGracePeriod = &d }
}

func markedExpired(n *plan.Node) { n.ExpireOrder = &karpv1.ExpireOrder{By: "alice"} }

func expiresAfter(d time.Duration) func(*plan.Node) {
	return func(n *plan.Node) { n.ExpireAfter = d }
}

func changes(change ...func(*plan.Node)) func(*plan.Node) {
	return func(n *plan.Node) {
		for _, c := range change {
			c(n)
		}
	}
}

// shifts says that traffic is shifted away from the zone of node n until a time.
func shifts(until time.Time) func(*plan.Input) {
	return func(in *plan.Input) {
		for _, node := range in.Snapshot.Nodes {
			in.Pools[0].Types = append(in.Pools[0].Types, &cloud.InstanceType{Name: "shifted", Offerings: []cloud.Offering{{CapacityType: "on-demand", Zone: node.Zone, ShiftedUntil: until}}})
		}
	}
}

func ready(is bool) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		status := corev1.ConditionFalse
		if is {
			status = corev1.ConditionTrue
		}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: status})
	}
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Labels = map[string]string{key: value} }
}

func protects(value string, started time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: value}
		pod.Status.StartTime = &metav1.Time{Time: now.Add(-started)}
	}
}

func ofDaemonSet(pod *corev1.Pod) {
	yes := true
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
}

func mirrored(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[corev1.MirrorPodAnnotationKey] = "x"
}

// pdb makes a PodDisruptionBudget for the pods with label app=name in namespace default.
func pdb(name string, allows int32, options ...func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allows, DesiredHealthy: 3, CurrentHealthy: 3 + allows - 1},
	}
	for _, option := range options {
		option(budget)
	}
	return budget
}

// verdictsOf returns the verdicts for a node, by reason.
func verdictsOf(d plan.Disruption, node string) map[karpv1.DisruptionReason]plan.Verdict {
	found := map[karpv1.DisruptionReason]plan.Verdict{}
	for _, v := range d.Verdicts {
		if v.Node == node {
			found[v.Reason] = v
		}
	}
	return found
}

// Which cause is the one that keeps a node from being removed for a reason, and until when?
func TestCandidateRules(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	app := labelled("app", "web")
	always := policyv1.AlwaysAllow
	runs := func(pods ...*corev1.Pod) func(*plan.Node) { return running(in, pods...) }
	web := func(options ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("web", "1", "1Gi", append([]func(*corev1.Pod){app}, options...)...)
	}
	for _, tc := range []struct {
		reason string
		of     karpv1.DisruptionReason
		node   func(*plan.Node)
		pool   []func(*karpv1.NodePool)
		pdbs   []*policyv1.PodDisruptionBudget
		change func(*plan.Input)
		// cause is empty if the node is removed.
		cause plan.Cause
		says  string
		next  time.Duration
	}{
		{reason: "a drifted node goes", of: drifted, node: changes(hasDrifted(0), runs(web()))},
		{reason: "one that has not does not", of: drifted, node: runs(web()), cause: plan.CauseNone, says: "it has not drifted"},
		{reason: "a node that leaves is left alone", of: drifted, node: changes(hasDrifted(0), leaves), cause: plan.CauseLeaving},
		{reason: "one that is not initialized is waited for", of: drifted, node: changes(hasDrifted(0), func(n *plan.Node) { n.Initialized = false }), cause: plan.CauseNode, says: "not initialized"},
		{reason: "a protected node", of: drifted, node: changes(hasDrifted(0), graceOf(time.Hour), func(n *plan.Node) { n.DoNotDisrupt = true }), cause: plan.CauseNode, says: "do-not-disrupt=true"},
		{
			reason: "a node protected for a while", of: drifted, cause: plan.CauseNode, says: "2026-03-01T12:07:00Z", next: 7 * time.Minute,
			node: changes(hasDrifted(0), func(n *plan.Node) { n.DoNotDisrupt, n.DoNotDisruptUntil = true, now.Add(7*time.Minute) }),
		},
		{reason: "whose time is over", of: drifted, node: changes(hasDrifted(0), runs(web()), func(n *plan.Node) { n.DoNotDisrupt, n.DoNotDisruptUntil = true, now })},
		{reason: "a protected pod", of: drifted, node: changes(hasDrifted(0), runs(web(protects("true", 0)))), cause: plan.CausePod, says: "pod default/web"},
		{reason: "a protected pod, for consolidation", of: underutilized, node: runs(web(protects("true", 0))), cause: plan.CausePod, says: "pod default/web"},
		{reason: "a pod protected for a while", of: drifted, node: changes(hasDrifted(0), runs(web(protects("10m", time.Minute)))), cause: plan.CausePod, says: "until 2026-03-01T12:09:00Z", next: 9 * time.Minute},
		{reason: "whose time is over", of: drifted, node: changes(hasDrifted(0), runs(web(protects("10m", time.Hour))))},
		{reason: "nonsense protects nothing", of: drifted, node: changes(hasDrifted(0), runs(web(protects("soon", time.Hour))))},
		{reason: "a protected daemon counts", of: drifted, node: changes(hasDrifted(0), runs(web(ofDaemonSet, protects("true", 0)))), cause: plan.CausePod},
		{reason: "so does a pod of the kubelet's own", of: drifted, node: changes(hasDrifted(0), runs(web(protects("true", 0), mirrored))), cause: plan.CausePod},
		{reason: "a protected pod that has ended does not", of: drifted, node: changes(hasDrifted(0), runs(newPod("other", "1", "1Gi")), runs(web(protects("true", 0), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })))},
		{reason: "drift does not wait for pods whose drain has an end", of: drifted, node: changes(hasDrifted(0), graceOf(time.Hour), runs(web(protects("true", 0))))},
		{reason: "consolidation does", of: underutilized, node: changes(graceOf(time.Hour), runs(web(protects("true", 0)))), cause: plan.CausePod},
		{reason: "a budget that lets none go", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0)}, cause: plan.CausePDB, says: "PodDisruptionBudget default/web allows no eviction of pod default/web"},
		{reason: "one that lets one go", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 1)}},
		{reason: "one of other pods", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), pdbs: []*policyv1.PodDisruptionBudget{pdb("api", 0)}},
		{
			reason: "one of another namespace", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))),
			pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Namespace = "other" })},
		},
		{
			reason: "one of all pods of the namespace", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), cause: plan.CausePDB,
			pdbs: []*policyv1.PodDisruptionBudget{pdb("all", 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} })},
		},
		{
			reason: "one without selector is of none", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))),
			pdbs: []*policyv1.PodDisruptionBudget{pdb("none", 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil })},
		},
		{reason: "two budgets are one too many, whatever they allow", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), cause: plan.CausePDB, says: "more than one PodDisruptionBudget (web and web-too)", pdbs: []*policyv1.PodDisruptionBudget{
			pdb("web", 5), pdb("web-too", 5, func(b *policyv1.PodDisruptionBudget) {
				b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
			})}},
		{
			reason: "pods that are not Ready go where the budget says always", of: drifted, node: changes(hasDrifted(0), runs(web(ready(false)))),
			pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always })},
		},
		{
			reason: "Ready ones do not", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), cause: plan.CausePDB,
			pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Spec.UnhealthyPodEvictionPolicy = &always })},
		},
		{reason: "nor ones that are not, where too few are", of: drifted, node: changes(hasDrifted(0), runs(web(ready(false)))), cause: plan.CausePDB, pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0)}},
		{
			reason: "but where enough are", of: drifted, node: changes(hasDrifted(0), runs(web(ready(false)))),
			pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0, func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 3 })},
		},
		{
			reason: "a budget that was just changed is waited for", of: drifted, node: changes(hasDrifted(0), runs(web(ready(true)))), cause: plan.CausePDB,
			pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 3, func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 })},
		},
		{
			reason: "pods that stay where they are need no budget", of: drifted, pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0)},
			node: changes(hasDrifted(0), runs(web(ready(true), func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}))),
		},
		{reason: "drift does not wait for budgets where a drain has an end", of: drifted, node: changes(hasDrifted(0), graceOf(time.Hour), runs(web(ready(true)))), pdbs: []*policyv1.PodDisruptionBudget{pdb("web", 0)}},
		{reason: "pods were planned for it", of: drifted, node: changes(hasDrifted(0), func(n *plan.Node) { n.NominatedUntil = now.Add(20 * time.Second) }), cause: plan.CauseNominated, next: 20 * time.Second},
		{
			reason: "a replacement serves while others leave for it", of: empty, node: func(n *plan.Node) { n.Replacement = "r-1" }, cause: plan.CauseNominated, says: "still leaving",
			change: func(in *plan.Input) {
				in.Snapshot.Nodes = append(in.Snapshot.Nodes, existing("old", "m6i.large", changes(leaves, func(n *plan.Node) { n.Replacement = "r-1" })))
			},
		},
		{reason: "and goes as any other afterwards", of: empty, node: func(n *plan.Node) { n.Replacement = "r-1" }},
		{
			reason: "a node whose replacement failed rests", of: drifted, node: changes(hasDrifted(0), runs(web())), cause: plan.CauseQuiet, says: "no capacity", next: time.Minute,
			change: func(in *plan.Input) {
				in.Held = map[string]plan.Hold{"claim-n": {Until: now.Add(time.Minute), Why: "no capacity"}}
			},
		},
		{
			reason: "which keeps no empty node", of: empty,
			change: func(in *plan.Input) {
				in.Held = map[string]plan.Hold{"claim-n": {Until: now.Add(time.Minute), Why: "no capacity"}}
			},
		},
		{reason: "traffic is shifted away from its zone", of: drifted, node: changes(hasDrifted(0), runs(web())), cause: plan.CauseNode, says: "ARC zonal shift", next: time.Hour, change: shifts(now.Add(time.Hour))},
		{reason: "which keeps an empty node as well", of: empty, cause: plan.CauseNode, says: "ARC zonal shift", next: time.Hour, change: shifts(now.Add(time.Hour))},
		{reason: "a shift that is over keeps none", of: empty, change: shifts(now)},
		{
			reason: "moved pods are to be Ready first", of: drifted, node: changes(hasDrifted(0), runs(web())), cause: plan.CauseQuiet, says: "not Ready yet",
			change: func(in *plan.Input) { in.Settling = map[string]bool{"p": true} },
		},
		{reason: "consolidateAfter is no matter of drift", of: drifted, node: changes(hasDrifted(0), runs(web())), pool: []func(*karpv1.NodePool){consolidates("", 2*time.Hour)}},
		{reason: "but of consolidation", of: underutilized, node: runs(web()), pool: []func(*karpv1.NodePool){consolidates("", 2*time.Hour)}, cause: plan.CauseQuiet, says: "consolidateAfter (2h0m0s)", next: time.Hour},
		{reason: "a pool that never consolidates", of: underutilized, node: runs(web()), pool: []func(*karpv1.NodePool){func(p *karpv1.NodePool) { p.Spec.Disruption.ConsolidateAfter = karpv1.NillableDuration{} }}, cause: plan.CausePolicy, says: "Never"},
		{reason: "one that only takes empty nodes", of: underutilized, node: runs(web()), pool: []func(*karpv1.NodePool){consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0)}, cause: plan.CausePolicy, says: "WhenEmpty"},
		{reason: "an empty node is not underutilized", of: underutilized, pool: []func(*karpv1.NodePool){budgets(karpv1.Budget{Nodes: "0"})}, cause: plan.CauseNone},
		{reason: "too young to be empty", of: empty, pool: []func(*karpv1.NodePool){annotatedPool(karpv1.MinimumNodeAgeAnnotationKey, "3h")}, cause: plan.CauseQuiet, says: "younger than 3h", next: 2 * time.Hour},
		{reason: "old enough", of: empty, pool: []func(*karpv1.NodePool){annotatedPool(karpv1.MinimumNodeAgeAnnotationKey, "1h")}},
		{reason: "no age is too young to drift", of: drifted, node: hasDrifted(0), pool: []func(*karpv1.NodePool){annotatedPool(karpv1.MinimumNodeAgeAnnotationKey, "300h")}},
		{reason: "an age that cannot be read keeps", of: empty, pool: []func(*karpv1.NodePool){annotatedPool(karpv1.MinimumNodeAgeAnnotationKey, "old")}, cause: plan.CausePolicy, says: `"old"`},
		{reason: "nodes that expire by force are nobody's to decide about", of: expired, node: changes(expiresAfter(time.Minute), runs(web())), cause: plan.CauseNone, says: "whatever runs on it"},
		{reason: "those of graceful pools go", of: expired, node: changes(expiresAfter(time.Minute), runs(web())), pool: []func(*karpv1.NodePool){graceful()}},
		{reason: "when it is time", of: expired, node: changes(expiresAfter(90*time.Minute), runs(web())), pool: []func(*karpv1.NodePool){graceful()}, cause: plan.CauseNone, says: "2026-03-01T12:30:00Z", next: 30 * time.Minute},
		{reason: "those that never do not", of: expired, pool: []func(*karpv1.NodePool){graceful(), budgets(karpv1.Budget{Nodes: "0"})}, cause: plan.CauseNone, says: "never expires"},
		{reason: "somebody has marked it as expired, and no NodePool has to be graceful for that", of: expired, node: changes(markedExpired, runs(web()))},
		{reason: "it may be of a NodePool whose nodes never expire", of: expired, node: changes(expiresAfter(0), markedExpired, runs(web()))},
		{reason: "budgets hold for it", of: expired, node: changes(markedExpired, runs(web())), pool: []func(*karpv1.NodePool){budgets(karpv1.Budget{Nodes: "0"})}, cause: plan.CauseBudget, says: "for being expired"},
		{reason: "so does what protects it", of: expired, node: changes(markedExpired, func(n *plan.Node) { n.DoNotDisrupt = true }), cause: plan.CauseNode, says: "do-not-disrupt"},
		{reason: "a mark that nobody can read removes nothing, and says so", of: expired, node: changes(runs(web()), func(n *plan.Node) { n.ExpireMisread = "must be true" }), cause: plan.CausePolicy, says: "must be true"},
		{reason: "a budget keeps expired nodes", of: expired, node: changes(expiresAfter(time.Minute), runs(web())), pool: []func(*karpv1.NodePool){graceful(), budgets(karpv1.Budget{Nodes: "0"})}, cause: plan.CauseBudget, says: "allow 0 of 1 nodes to be disrupted at once for being expired"},
		{
			reason: "a zone nobody knows keeps everything that is scheduled in it", of: drifted, node: hasDrifted(0), cause: plan.CauseBudget, says: "Europe/Zuerich",
			pool: []func(*karpv1.NodePool){annotatedPool(karpv1.BudgetTimezoneAnnotationKey, "Europe/Zuerich"), nightly("0")},
		},
		{
			reason: "a window in the pool's own zone", of: drifted, node: hasDrifted(0), cause: plan.CauseBudget, next: 30 * time.Minute,
			pool: []func(*karpv1.NodePool){annotatedPool(karpv1.BudgetTimezoneAnnotationKey, "Asia/Tokyo"), nightly("0")},
		},
		{reason: "no static pool has a node too many", of: overprovisioned, node: runs(web(protects("true", 0))), cause: plan.CauseNone, says: "not static"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			t.Parallel()
			n := existing("n", "m6i.large")
			if tc.node != nil {
				tc.node(n)
			}
			w := world{nodes: []*plan.Node{n}, pools: []plan.Pool{{NodePool: nodePool("p", tc.pool...), Types: smallCatalogue()}}}
			input := w.input()
			for _, budget := range tc.pdbs {
				input.Snapshot.DisruptionBudgets = append(input.Snapshot.DisruptionBudgets, in.DisruptionBudget(budget))
			}
			if tc.change != nil {
				tc.change(&input)
			}
			d := plan.Disrupt(input)
			v := verdictsOf(d, "claim-n")[tc.of]
			if tc.cause == "" {
				if len(d.Commands) != 1 || d.Commands[0].Reason != tc.of || d.Commands[0].Nodes[0] != "claim-n" {
					t.Fatalf("commands %+v, verdict %+v", d.Commands, v)
				}
				return
			}
			if v.Cause != tc.cause || !strings.Contains(v.Message, tc.says) {
				t.Errorf("verdict %+v, want %s: %q; commands %+v", v, tc.cause, tc.says, d.Commands)
			}
			if want := now.Add(tc.next); tc.next > 0 && (!v.Until.Equal(want) || d.NextLook.IsZero() || d.NextLook.After(want)) {
				t.Errorf("until %v, next look %v, want %v", v.Until, d.NextLook, want)
			}
		})
	}
}

// nightly is a budget that starts at 21:00 and lasts half an hour.
func nightly(nodes string) func(*karpv1.NodePool) {
	nine := "0 21 * * *"
	return budgets(karpv1.Budget{Nodes: nodes, Schedule: &nine, Duration: &metav1.Duration{Duration: 30 * time.Minute}})
}

// Every node of a pool has one verdict for each reason, or is removed by one command.
func TestEveryNodeIsJudged(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	w := world{pools: []plan.Pool{{NodePool: nodePool("p", budgets(karpv1.Budget{Nodes: "2"})), Types: smallCatalogue()}}}
	for i := range 12 {
		w.nodes = append(w.nodes, existing(fmt.Sprintf("n%02d", i), "m6i.large", func(n *plan.Node) {
			if i%3 > 0 {
				running(in, newPod(fmt.Sprintf("p%d", i), "1", "1Gi"))(n)
			}
			if i%4 == 0 {
				hasDrifted(i)(n)
			}
		}))
	}
	d := plan.Disrupt(w.input())
	going := map[string]int{}
	for _, command := range d.Commands {
		for _, node := range command.Nodes {
			going[node]++
		}
	}
	for _, n := range w.nodes {
		verdicts := verdictsOf(d, n.Key())
		if going[n.Key()] == 1 && len(verdicts) > 0 || going[n.Key()] == 0 && len(verdicts) != len(plan.DisruptionReasons()) || going[n.Key()] > 1 {
			t.Errorf("%s goes %d times and has verdicts %v", n.Key(), going[n.Key()], verdicts)
		}
	}
	if len(going) != 2 {
		t.Errorf("%v go, and the budget is 2", going)
	}
}

// Budgets are counted over all reasons and commands, by pool. The reasons of a budget only say what it applies to.
func TestBudgetsAreShared(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	for _, tc := range []struct {
		reason  string
		budgets []karpv1.Budget
		want    map[karpv1.DisruptionReason]int
	}{
		{reason: "one budget for all", budgets: []karpv1.Budget{{Nodes: "3"}}, want: map[karpv1.DisruptionReason]int{empty: 3}},
		{reason: "what is left is for drift", budgets: []karpv1.Budget{{Nodes: "6"}}, want: map[karpv1.DisruptionReason]int{empty: 4, drifted: 2}},
		{reason: "none for empty nodes", budgets: []karpv1.Budget{{Nodes: "6"}, {Nodes: "0", Reasons: []karpv1.DisruptionReason{empty}}},
			want: map[karpv1.DisruptionReason]int{drifted: 4}},
		{reason: "what other reasons have taken counts",
			budgets: []karpv1.Budget{{Nodes: "100%"}, {Nodes: "5", Reasons: []karpv1.DisruptionReason{drifted}}},
			want:    map[karpv1.DisruptionReason]int{empty: 4, drifted: 1}},
		{reason: "per cent are rounded up", budgets: []karpv1.Budget{{Nodes: "11%"}}, want: map[karpv1.DisruptionReason]int{empty: 1}},
		{reason: "nothing", budgets: []karpv1.Budget{{Nodes: "0"}}, want: map[karpv1.DisruptionReason]int{}},
	} {
		w := world{pools: []plan.Pool{{NodePool: nodePool("p", budgets(tc.budgets...), consolidates(karpv1.ConsolidationPolicyWhenEmpty, 0)), Types: smallCatalogue()}}}
		for i := range 4 {
			w.nodes = append(w.nodes, existing(fmt.Sprintf("e%d", i), "m6i.large"),
				existing(fmt.Sprintf("d%d", i), "m6i.large", hasDrifted(i), running(in, newPod(fmt.Sprintf("%s-%d", tc.reason, i), "1800m", "1Gi"))))
		}
		w.nodes = append(w.nodes, existing("left", "m6i.large", func(n *plan.Node) { n.Terminating, n.Deleting = true, true }))
		got := map[karpv1.DisruptionReason]int{}
		for _, command := range plan.Disrupt(w.input()).Commands {
			got[command.Reason] += len(command.Nodes)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
		}
	}
}

// Pods that have just arrived are planned for before existing nodes are consolidated.
func TestConsolidationWaitsForPlans(t *testing.T) {
	t.Parallel()
	in := new(plan.Interner)
	for _, tc := range []struct {
		reason   string
		age      time.Duration
		promised bool
		waits    bool
	}{
		{reason: "a pod nobody has planned for", age: time.Second, promised: false, waits: true},
		{reason: "one that is promised a node", age: time.Second, promised: true, waits: false},
		{reason: "one that nobody can plan for", age: time.Hour, promised: false, waits: false},
	} {
		pod := newPod("huge", "60", "1Gi", func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(now.Add(-tc.age)) })
		nodes := []*plan.Node{existing("a", "m6i.large", running(in, newPod("x", "100m", "1Mi"))), existing("b", "m6i.large", running(in, newPod("y", "100m", "1Mi")))}
		if tc.promised {
			nodes = append(nodes, existing("c", "m6i.16xlarge", func(n *plan.Node) { n.Initialized, n.Promised = false, []types.UID{"uid-huge"} }))
		}
		w := world{nodes: nodes, pods: []*corev1.Pod{pod}, pools: []plan.Pool{{NodePool: nodePool("p"), Types: smallCatalogue()}}}
		d := plan.Disrupt(w.input())
		if tc.waits != (len(d.Commands) == 0) {
			t.Errorf("%s: commands %+v, %+v", tc.reason, d.Commands, d.Verdicts)
		}
		if want := now.Add(29 * time.Second); tc.waits && !d.NextLook.Equal(want) {
			t.Errorf("%s: next look %v, want %v", tc.reason, d.NextLook, want)
		}
	}
}
