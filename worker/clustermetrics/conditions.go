package clustermetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// The kinds of objects whose conditions are exported, as names of metrics have them. Karpenter's node class is an EC2NodeClass.
const (
	kindClaim = "nodeclaim"
	kindNode  = "node"
	kindPool  = "nodepool"
	kindClass = "ec2nodeclass"
)

// conditioned is an object with conditions, as metrics see it.
type conditioned struct {
	kind string
	// gvk is what the deprecated metrics call the kind; empty for Nodes, which they do not have.
	gvk                   schema.GroupKind
	name                  string
	labels                map[string]string
	conditions            []metav1.Condition
	created, deletionTime time.Time
}

// extra are the labels of the metrics of an object of a kind that are labels of the object, by the name of the metric's label.
func extra(kind string) map[string]string {
	switch kind {
	case kindClaim:
		return map[string]string{"karpenter_k8s_aws_ec2nodeclass": "karpenter.k8s.aws/ec2nodeclass", "karpenter_sh_nodepool": karpv1.NodePoolLabelKey}
	case kindNode:
		return map[string]string{"karpenter_k8s_aws_ec2nodeclass": "karpenter.k8s.aws/ec2nodeclass", "karpenter_sh_nodepool": karpv1.NodePoolLabelKey,
			"karpenter_sh_initialized": karpv1.NodeInitializedLabelKey}
	}
	return nil
}

func ofClaim(claim *karpv1.NodeClaim) *conditioned {
	return &conditioned{kindClaim, karpv1.SchemeGroupVersion.WithKind("NodeClaim").GroupKind(), claim.Name, claim.Labels, claim.Status.Conditions,
		claim.CreationTimestamp.Time, deletionOf(claim)}
}

func ofPool(pool *karpv1.NodePool) *conditioned {
	return &conditioned{kindPool, karpv1.SchemeGroupVersion.WithKind("NodePool").GroupKind(), pool.Name, nil, pool.Status.Conditions,
		pool.CreationTimestamp.Time, deletionOf(pool)}
}

func ofClass(class cloud.NodeClass, kind schema.GroupKind) *conditioned {
	return &conditioned{kindClass, kind, class.GetName(), nil, *class.StatusConditions(), class.GetCreationTimestamp().Time, deletionOf(class)}
}

func ofNode(node *corev1.Node) *conditioned {
	of := &conditioned{kind: kindNode, name: node.Name, labels: node.Labels, created: node.CreationTimestamp.Time, deletionTime: deletionOf(node)}
	for _, c := range node.Status.Conditions {
		of.conditions = append(of.conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status), Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
	}
	return of
}

func deletionOf(object metav1.Object) time.Time {
	if at := object.GetDeletionTimestamp(); at != nil {
		return at.Time
	}
	return time.Time{}
}

// conditionDescs are the gauges of one kind.
type conditionDescs struct{ count, current, terminating *prometheus.Desc }

func describeConditions(kind string) conditionDescs {
	prefix := "operator_"
	if kind != "" {
		prefix += kind + "_"
	}
	return conditionDescs{describe(prefix + "status_condition_count"), describe(prefix + "status_condition_current_status_seconds"),
		describe(prefix + "termination_current_time_seconds")}
}

// The gauges of conditions: those of the kinds, and the deprecated ones of all kinds.
var (
	conditionGauges = map[string]conditionDescs{kindClaim: describeConditions(kindClaim), kindNode: describeConditions(kindNode),
		kindPool: describeConditions(kindPool), kindClass: describeConditions(kindClass)}
	deprecatedGauges = describeConditions("")
)

// collectConditions tells the conditions of NodeClaims, Nodes, NodePools and node classes, and how long those terminate that do.
func (s *State) collectConditions(to chan<- prometheus.Metric, nodes []*corev1.Node, now time.Time) {
	for _, node := range nodes {
		collectObject(to, ofNode(node), now)
	}
	for _, claim := range s.mirror.Claims() {
		collectObject(to, ofClaim(claim), now)
	}
	for _, pool := range s.mirror.NodePools() {
		collectObject(to, ofPool(pool), now)
	}
	for _, class := range s.mirror.NodeClasses() {
		collectObject(to, ofClass(class, s.kind.GroupVersionKind.GroupKind()), now)
	}
}

func collectObject(to chan<- prometheus.Metric, of *conditioned, now time.Time) {
	name := pair("name", of.name)
	labels := []*dto.LabelPair{name}
	for label, key := range extra(of.kind) {
		labels = append(labels, pair(label, of.labels[key]))
	}
	gauges, old := conditionGauges[of.kind], []*dto.LabelPair{pair("group", of.gvk.Group), pair("kind", of.gvk.Kind), name}
	for i := range of.conditions {
		c := &of.conditions[i]
		condition := []*dto.LabelPair{pair("reason", c.Reason), pair("status", string(c.Status)), pair("type", c.Type)}
		here, lasts := sortedPairs(append(condition, labels...)), now.Sub(c.LastTransitionTime.Time).Seconds()
		to <- gauge(gauges.count, 1, here...)
		to <- gauge(gauges.current, lasts, here...)
		if of.gvk.Kind != "" {
			here = sortedPairs(append(condition, old...))
			to <- gauge(deprecatedGauges.count, 1, here...)
			to <- gauge(deprecatedGauges.current, lasts, here...)
		}
	}
	if !of.deletionTime.IsZero() {
		to <- gauge(gauges.terminating, now.Sub(of.deletionTime).Seconds(), sortedPairs(labels)...)
		if of.gvk.Kind != "" {
			to <- gauge(deprecatedGauges.terminating, now.Sub(of.deletionTime).Seconds(), old...)
		}
	}
}
