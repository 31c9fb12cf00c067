package clustermetrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
)

// collectDrains tells how many nodes are drained, and how many drains are held up.
func collectDrains(to chan<- prometheus.Metric, nodes []*corev1.Node, now time.Time) {
	draining, blocked, oldest := 0, 0, time.Duration(0)
	for _, node := range nodes {
		since, held := node.Annotations[karpv1.DrainBlockedAnnotationKey]
		if held || !node.DeletionTimestamp.IsZero() || node.Annotations[karpv1.RemovalReasonAnnotationKey] != "" {
			draining++
		}
		if !held {
			continue
		}
		blocked++
		if at, err := time.Parse(time.RFC3339, since); err == nil {
			oldest = max(oldest, now.Sub(at))
		}
	}
	to <- gauge(descDrains, float64(draining))
	to <- gauge(descBlockedDrains, float64(blocked))
	to <- gauge(descBlockedOldest, oldest.Seconds())
}
