package clustermetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cluster"
	"github.com/tenon-sh/tenon/internal/metrics"
)

// Changes counts what happens to the objects of a cluster, as the mirror hears of it. It implements cluster.Observer. What
// happened before the worker started is not counted.
type Changes struct {
	conditionCounts
	kind cloud.Kind

	claimsGone                            *prometheus.CounterVec
	claimTermination, instanceTermination *prometheus.HistogramVec
	nodesCreated, nodesGone, nodesDrained *prometheus.CounterVec
	nodeTermination                       *prometheus.SummaryVec
	nodeLifetime                          *prometheus.HistogramVec
	podStartup                            *prometheus.SummaryVec
	podBound                              *prometheus.HistogramVec
	plans                                 *Plans
}

var _ cluster.Observer = (*Changes)(nil)

// NewChanges makes the metrics in a set. plans, which may be nil, is told of the pods that start.
func NewChanges(set *metrics.Set, kind cloud.Kind, plans *Plans) *Changes {
	return &Changes{
		conditionCounts: newConditionCounts(set), kind: kind, plans: plans,
		claimsGone:          set.Counter("karpenter_nodeclaims_terminated_total"),
		claimTermination:    set.Histogram("karpenter_nodeclaims_termination_duration_seconds"),
		instanceTermination: set.Histogram("karpenter_nodeclaims_instance_termination_duration_seconds"),
		nodesCreated:        set.Counter("karpenter_nodes_created_total"),
		nodesGone:           set.Counter("karpenter_nodes_terminated_total"),
		nodesDrained:        set.Counter("karpenter_nodes_drained_total"),
		nodeTermination:     set.Summary("karpenter_nodes_termination_duration_seconds"),
		nodeLifetime:        set.Histogram("karpenter_nodes_lifetime_duration_seconds"),
		podStartup:          set.Summary("karpenter_pods_startup_duration_seconds"),
		podBound:            set.Histogram("karpenter_pods_bound_duration_seconds"),
	}
}

// ClaimChanged implements cluster.Observer.
func (c *Changes) ClaimChanged(old, now *karpv1.NodeClaim) {
	c.objectChanged(object(old, ofClaim), object(now, ofClaim))
	if old == nil {
		return
	}
	pool := old.Labels[karpv1.NodePoolLabelKey]
	switch {
	case now == nil || now.UID != old.UID:
		c.claimsGone.WithLabelValues(pool, old.Labels[karpv1.CapacityTypeLabelKey], old.Labels[corev1.LabelTopologyZone]).Inc()
		if deleted := deletionOf(old); !deleted.IsZero() {
			c.claimTermination.WithLabelValues(pool).Observe(c.now().Sub(deleted).Seconds())
		}
		if asked := old.Condition(karpv1.ConditionTypeInstanceTerminating); asked != nil && asked.Status == "True" {
			c.instanceTermination.WithLabelValues(pool).Observe(c.now().Sub(asked.LastTransitionTime.Time).Seconds())
		}
	case now.IsTrue(karpv1.ConditionTypeDrained) && !old.IsTrue(karpv1.ConditionTypeDrained):
		c.nodesDrained.WithLabelValues(pool).Inc()
	case now.IsTrue(karpv1.ConditionTypeRegistered) && !old.IsTrue(karpv1.ConditionTypeRegistered):
		c.nodesCreated.WithLabelValues(pool, now.Labels[corev1.LabelTopologyZone]).Inc()
	}
}

// NodeChanged implements cluster.Observer.
func (c *Changes) NodeChanged(old, now *corev1.Node) {
	c.objectChanged(object(old, ofNode), object(now, ofNode))
	if old == nil || now != nil && now.UID == old.UID {
		return
	}
	pool := old.Labels[karpv1.NodePoolLabelKey]
	if pool == "" {
		return
	}
	c.nodesGone.WithLabelValues(pool, old.Labels[corev1.LabelTopologyZone]).Inc()
	c.nodeLifetime.WithLabelValues(pool).Observe(c.now().Sub(old.CreationTimestamp.Time).Seconds())
	if deleted := deletionOf(old); !deleted.IsZero() {
		c.nodeTermination.WithLabelValues(pool).Observe(c.now().Sub(deleted).Seconds())
	}
}

// PoolChanged implements cluster.Observer.
func (c *Changes) PoolChanged(old, now *karpv1.NodePool) {
	c.objectChanged(object(old, ofPool), object(now, ofPool))
}

// ClassChanged implements cluster.Observer.
func (c *Changes) ClassChanged(old, now cloud.NodeClass) {
	var before, after *conditioned
	if old != nil {
		before = ofClass(old, c.kind.GroupVersionKind.GroupKind())
	}
	if now != nil {
		after = ofClass(now, c.kind.GroupVersionKind.GroupKind())
	}
	c.objectChanged(before, after)
}

// PodChanged implements cluster.Observer.
func (c *Changes) PodChanged(old, now cluster.PodSeen) {
	if c.plans != nil {
		c.plans.podChanged(old, now)
	}
	if now.Pod == nil || old.Pod == nil || old.UID != now.UID {
		return
	}
	if old.Bound == 0 && now.Bound != 0 && old.Node == "" {
		c.podBound.WithLabelValues().Observe(time.Unix(now.Bound, 0).Sub(now.Created).Seconds())
	}
	if old.ReadySince == 0 && now.ReadySince != 0 && !old.Served {
		c.podStartup.WithLabelValues().Observe(time.Unix(now.ReadySince, 0).Sub(now.Created).Seconds())
	}
}

// object is an object as its conditions' metrics see it; nil for none.
func object[T any](of *T, convert func(*T) *conditioned) *conditioned {
	if of == nil {
		return nil
	}
	return convert(of)
}
