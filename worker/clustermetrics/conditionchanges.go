package clustermetrics

import (
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tenon-sh/tenon/internal/metrics"
)

// conditionChanges are the metrics of transitions and ends of objects of one kind.
type conditionChanges struct {
	transitions *prometheus.CounterVec
	lasted      *prometheus.HistogramVec
	ended       *prometheus.HistogramVec
}

// conditionCounts counts the transitions of conditions of all objects, and their ends.
type conditionCounts struct {
	now func() time.Time
	// began is when counting began: the first conditions of older objects are no news.
	began      time.Time
	conditions map[string]conditionChanges
	deprecated conditionChanges
}

func newConditionCounts(set *metrics.Set) conditionCounts {
	c := conditionCounts{now: time.Now, began: time.Now(), conditions: map[string]conditionChanges{}, deprecated: newConditionChanges(set, "")}
	for _, kind := range []string{kindClaim, kindNode, kindPool, kindClass} {
		c.conditions[kind] = newConditionChanges(set, kind)
	}
	return c
}

func newConditionChanges(set *metrics.Set, kind string) conditionChanges {
	prefix := "operator_"
	if kind != "" {
		prefix += kind + "_"
	}
	return conditionChanges{set.Counter(prefix + "status_condition_transitions_total"), set.Histogram(prefix + "status_condition_transition_seconds"),
		set.Histogram(prefix + "termination_duration_seconds")}
}

// objectChanged counts the transitions of an object's conditions, and its end. Either version may be nil.
func (c *conditionCounts) objectChanged(old, now *conditioned) {
	switch {
	case now == nil:
		if !old.deletionTime.IsZero() {
			took := c.now().Sub(old.deletionTime).Seconds()
			c.conditions[old.kind].ended.With(labelsOf(old)).Observe(took)
			if old.gvk.Kind != "" {
				c.deprecated.ended.With(oldLabelsOf(old)).Observe(took)
			}
		}
		return
	case old == nil && now.created.Before(c.began):
		return // its conditions are older
	case old == nil:
		old = &conditioned{kind: now.kind}
	}
	for i := range now.conditions {
		condition := &now.conditions[i]
		before := meta.FindStatusCondition(old.conditions, condition.Type)
		if before != nil && before.Status == condition.Status {
			continue
		}
		what := prometheus.Labels{"type": condition.Type, "status": string(condition.Status), "reason": condition.Reason}
		c.conditions[now.kind].transitions.With(joined(labelsOf(now), what)).Inc()
		if now.gvk.Kind != "" {
			c.deprecated.transitions.With(joined(oldLabelsOf(now), what)).Inc()
		}
		if before == nil {
			continue
		}
		was, lasted := prometheus.Labels{"type": before.Type, "status": string(before.Status)}, condition.LastTransitionTime.Sub(before.LastTransitionTime.Time).Seconds()
		c.conditions[now.kind].lasted.With(joined(labelsOf(now), was)).Observe(lasted)
		if now.gvk.Kind != "" {
			c.deprecated.lasted.With(joined(oldLabelsOf(now), was)).Observe(lasted)
		}
	}
}

// labelsOf are the labels of a kind's metrics that are labels of the object.
func labelsOf(of *conditioned) prometheus.Labels {
	labels := prometheus.Labels{}
	for name, key := range extra(of.kind) {
		labels[name] = of.labels[key]
	}
	return labels
}

// oldLabelsOf are those of the deprecated metrics.
func oldLabelsOf(of *conditioned) prometheus.Labels {
	return prometheus.Labels{"group": of.gvk.Group, "kind": of.gvk.Kind}
}

func joined(labels, more prometheus.Labels) prometheus.Labels {
	maps.Copy(labels, more)
	return labels
}
