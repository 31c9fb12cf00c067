package clustermetrics_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/nodeclass"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/metrics"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/worker/clustermetrics"
)

// mirror is a view of a cluster of alike nodes.
type mirror struct {
	nodes    []*corev1.Node
	claims   []*karpv1.NodeClaim
	pods     []cluster.PodSeen
	snapshot *plan.Snapshot
	stale    time.Duration
}

func (m *mirror) Snapshot() *plan.Snapshot             { return m.snapshot }
func (m *mirror) Staleness() time.Duration             { return m.stale }
func (m *mirror) Nodes() []*corev1.Node                { return m.nodes }
func (m *mirror) Claims() []*karpv1.NodeClaim          { return m.claims }
func (m *mirror) ClaimOfNode(string) *karpv1.NodeClaim { return m.claims[0] }
func (m *mirror) NodePools() []*karpv1.NodePool        { return m.snapshot.NodePools }
func (m *mirror) NodeClasses() []cloud.NodeClass       { return nil }
func (m *mirror) PodsSeen() []cluster.PodSeen          { return m.pods }
func (m *mirror) Promises(cluster.PodSeen) bool        { return false }
func (m *mirror) Provisionable() int                   { return 1 }
func noPools(context.Context) []plan.Pool              { return nil }
func amounts(cpu, memory, pods string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory), corev1.ResourcePods: resource.MustParse(pods)}
}

// newMirror returns a cluster with nodes, so many pods on each, and one pod that waits.
func newMirror(nodes, podsOn int) *mirror {
	created := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default", CreationTimestamp: created}}
	pool.Spec.Limits = karpv1.Limits(amounts("100", "1Ti", "1000"))
	pool.Status.Resources = amounts("8", "32Gi", "100")
	pool.SetCondition(metav1.Condition{Type: karpv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionTrue})
	m := &mirror{snapshot: &plan.Snapshot{Time: time.Now(), NodePools: []*karpv1.NodePool{pool}}}
	interner := new(plan.Interner)
	pod := func(name, node string) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: created}}
		p.Spec.NodeName = node
		p.Spec.Containers = []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}}}
		if node == "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}
		m.pods = append(m.pods, cluster.PodSeen{Pod: &cluster.Pod{Pod: interner.Pod(p)}, PodProgress: cluster.PodProgress{Running: node != "", Bound: 1, ReadySince: 1, Served: node != ""}})
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		labels := map[string]string{}
		for key := range metrics.NodeLabels() {
			labels[key] = "a-value"
		}
		labels[karpv1.NodePoolLabelKey], labels[karpv1.CapacityTypeLabelKey] = "default", "spot"
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: created}}
		node.Status.Capacity, node.Status.Allocatable = amounts("8", "32Gi", "100"), amounts("7500m", "30Gi", "100")
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: created}}
		if i == 0 {
			node.Annotations = map[string]string{karpv1.DrainBlockedAnnotationKey: time.Now().Add(-time.Minute).Format(time.RFC3339)}
		}
		m.nodes = append(m.nodes, node)
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, Labels: labels, CreationTimestamp: created}}
		for _, condition := range claim.ReadyParts() {
			claim.SetCondition(metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
		}
		m.claims = append(m.claims, claim)
		m.snapshot.Nodes = append(m.snapshot.Nodes, interner.Claim(claim).Join(interner.Node(node)))
		for p := range podsOn {
			pod(fmt.Sprintf("web-%d-%d", i, p), name)
		}
	}
	pod("waits", "")
	return m
}

func TestStateSaysWhatTheMirrorShows(t *testing.T) {
	t.Parallel()
	m := newMirror(2, 3)
	m.stale = time.Minute
	state := clustermetrics.NewState(m, nodeclass.Kind(), noPools)
	state.Evaluated(plan.Disruption{Verdicts: []plan.Verdict{{Node: "a", Reason: karpv1.DisruptionReasonDrifted, Cause: plan.CauseBudget},
		{Node: "b", Reason: karpv1.DisruptionReasonDrifted, Cause: plan.CausePod}}})
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(unchecked{state}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				switch label.GetName() {
				case "nodepool", "node_name", "resource_type", "reason", "type", "phase", "zone", "capacity_type":
					labels = append(labels, label.GetName()+"="+label.GetValue())
				}
			}
			got[family.GetName()+"{"+strings.Join(labels, ",")+"}"] = fmt.Sprintf("%.6g", metric.Gauge.GetValue())
		}
	}
	node := "capacity_type=spot,node_name=node-0001,nodepool=default,"
	for series, want := range map[string]string{
		"karpenter_cluster_state_synced{}":                                                   "0",
		"karpenter_cluster_state_unsynced_time_seconds{}":                                    "60",
		"karpenter_cluster_state_node_count{}":                                               "2",
		"karpenter_nodes_allocatable{" + node + "resource_type=cpu,zone=a-value}":            "7.5",
		"karpenter_nodes_system_overhead{" + node + "resource_type=cpu,zone=a-value}":        "0.5",
		"karpenter_nodes_total_pod_requests{" + node + "resource_type=cpu,zone=a-value}":     "0.75",
		"karpenter_nodes_total_pod_requests{" + node + "resource_type=pods,zone=a-value}":    "3",
		"karpenter_nodes_total_daemon_requests{" + node + "resource_type=pods,zone=a-value}": "0",
		"karpenter_cluster_utilization_percent{resource_type=cpu}":                           "10",
		"karpenter_nodepools_limit{nodepool=default,resource_type=cpu}":                      "100",
		"karpenter_nodepools_usage{nodepool=default,resource_type=cpu}":                      "8",
		"karpenter_scheduler_unschedulable_pods_count{}":                                     "1",
		"karpenter_scheduler_pending_pods_by_effective_zone_count{zone=flexible}":            "1",
		"karpenter_voluntary_disruption_eligible_nodes{reason=drifted}":                      "1",
		"karpenter_voluntary_disruption_eligible_nodes{reason=empty}":                        "0",
		"operator_node_status_condition_count{reason=KubeletReady,type=Ready}":               "1",
		"tenon_blocked_drains{}":                      "1",
		"tenon_nodes_without_price{nodepool=default}": "2",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, want %s", series, got[series], want)
		}
	}
}

// unchecked hides what a collector says about its metrics: those of State leave out labels without a value.
type unchecked struct{ prometheus.Collector }

func (unchecked) Describe(chan<- *prometheus.Desc) {}

func TestOnlyTheLeaderTellsTheState(t *testing.T) {
	t.Parallel()
	registry, leads := prometheus.NewRegistry(), false
	set := metrics.NewSet(registry, func(by metrics.By) bool { return by != metrics.Leader || leads })
	set.Collect(metrics.Leader, clustermetrics.NewState(newMirror(1, 1), nodeclass.Kind(), noPools))
	if err := set.Err(); err != nil {
		t.Fatal(err)
	}
	if count, err := testutil.GatherAndCount(registry); err != nil || count != 0 {
		t.Errorf("a worker that does not lead exports %d series (%v), want none", count, err)
	}
	leads = true
	if count, err := testutil.GatherAndCount(registry); err != nil || count < 50 {
		t.Errorf("the leader exports %d series (%v), want many", count, err)
	}
}

// BenchmarkScrape collects and writes the metrics of 2,000 nodes and 20,000 pods.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(clustermetrics.NewState(newMirror(2000, 10), nodeclass.Kind(), noPools))
	var text bytes.Buffer
	for b.Loop() {
		families, err := registry.Gather()
		if err != nil {
			b.Fatal(err)
		}
		text.Reset()
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(text.Len())/(1<<20), "MiB")
}
