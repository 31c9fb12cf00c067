package worker

import (
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
)

// reportsOf returns what the Nodes of registered claims say about themselves. A Node counts from its registration on, as
// with Karpenter: until then its kubelet may not have reported its resources yet.
func reportsOf(claims []*karpv1.NodeClaim, node func(name string) *corev1.Node) []cloud.NodeReport {
	var reports []cloud.NodeReport
	for _, claim := range claims {
		joined := node(claim.Status.NodeName)
		if joined == nil || joined.Labels[karpv1.NodeRegisteredLabelKey] != "true" {
			continue
		}
		reports = append(reports, cloud.NodeReport{InstanceType: joined.Labels[corev1.LabelInstanceTypeStable], Image: claim.Status.ImageID,
			Memory: joined.Status.Capacity.Memory().Value()})
	}
	return reports
}
