package clustermetrics

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cluster"
)

// undecidedAfter is how long a pod may wait before it counts as unschedulable: longer than the batch window and a plan take.
const undecidedAfter = 30 * time.Second

// The values of the label zone for pods that allow several zones, or none.
const (
	zoneFlexible = "flexible"
	zoneNone     = "none"
)

// collectPods tells the state of each pod, and how long those have waited that do not serve yet.
func (s *State) collectPods(to chan<- prometheus.Metric, nodes []*corev1.Node, pods []cluster.PodSeen, now time.Time) {
	hosts := make(map[string][]*dto.LabelPair, len(nodes))
	for _, node := range nodes {
		pool := node.Labels[karpv1.NodePoolLabelKey]
		hosts[node.Name] = sortedPairs([]*dto.LabelPair{
			pair("arch", node.Labels[corev1.LabelArchStable]), pair("capacity_type", node.Labels[karpv1.CapacityTypeLabelKey]),
			pair("instance_type", node.Labels[corev1.LabelInstanceTypeStable]), pair("managed", strconv.FormatBool(pool != "")),
			pair("node", node.Name), pair("nodepool", pool), pair("zone", node.Labels[corev1.LabelTopologyZone]),
		})
	}
	unschedulable, zones := 0, map[string]int{}
	for _, pod := range pods {
		to <- gauge(descPodState, 1, podLabels(pod, hosts[pod.Node])...)
		age := now.Sub(pod.Created)
		name := []*dto.LabelPair{pair("name", pod.Name), pair("namespace", pod.Namespace)}
		if !pod.Served {
			to <- gauge(descUnstarted, age.Seconds(), name...)
		}
		if pod.Node == "" {
			to <- gauge(descUnbound, age.Seconds(), name...)
		}
		if !pod.Provisionable() {
			continue
		}
		zones[effectiveZone(pod)]++
		if pod.NominatedNode == "" && !s.mirror.Promises(pod) {
			to <- gauge(descUndecided, age.Seconds(), name...)
			if age > undecidedAfter {
				unschedulable++
			}
		}
	}
	controller := pair("controller", "provisioner")
	to <- gauge(descUnschedulable, float64(unschedulable), controller)
	to <- gauge(descQueueDepth, float64(s.mirror.Provisionable()), controller)
	for zone, count := range zones {
		to <- gauge(descPendingZones, float64(count), controller, pair("zone", zone))
	}
}

// podLabels returns the labels of a pod's state. host are those of its node; nil for none.
func podLabels(pod cluster.PodSeen, host []*dto.LabelPair) []*dto.LabelPair {
	phase := string(corev1.PodPending)
	if pod.Running {
		phase = string(corev1.PodRunning)
	}
	labels := append(make([]*dto.LabelPair, 0, len(host)+7), host...)
	if host == nil {
		labels = append(labels, pair("managed", "false"), pair("node", pod.Node))
	}
	return sortedPairs(append(labels, pair("name", pod.Name), pair("namespace", pod.Namespace), pair("owner", owner(pod)), pair("phase", phase),
		pair("ready", strconv.FormatBool(pod.ReadySince != 0)), pair("scheduled", strconv.FormatBool(pod.Node != ""))))
}

// owner writes the controller of a pod as Karpenter does: as the path of the object in the API.
func owner(pod cluster.PodSeen) string {
	if pod.OwnerName == "" {
		return ""
	}
	version := "apps/v1"
	switch pod.OwnerKind {
	case "Job":
		version = "batch/v1"
	case "Node", "ReplicationController":
		version = "v1"
	}
	return "/apis/" + version + "/namespaces/" + pod.Namespace + "/" + strings.ToLower(pod.OwnerKind) + "s/" + pod.OwnerName
}

// effectiveZone is the one zone that a pod's own node selection leaves, zoneFlexible if it leaves several, or zoneNone.
func effectiveZone(pod cluster.PodSeen) string {
	zones, limited := []string(nil), false
	limit := func(to []string) {
		if !limited {
			zones, limited = to, true
			return
		}
		zones = slices.DeleteFunc(slices.Clone(zones), func(zone string) bool { return !slices.Contains(to, zone) })
	}
	if zone := pod.Class.NodeSelector[corev1.LabelTopologyZone]; zone != "" {
		limit([]string{zone})
	}
	if affinity := pod.Class.NodeAffinity; affinity != nil && len(affinity.NodeSelectorTerms) == 1 {
		for _, term := range affinity.NodeSelectorTerms[0].MatchExpressions {
			if term.Key == corev1.LabelTopologyZone && term.Operator == corev1.NodeSelectorOpIn {
				limit(term.Values)
			}
		}
	}
	switch {
	case !limited || len(zones) > 1:
		return zoneFlexible
	case len(zones) == 0:
		return zoneNone
	}
	return zones[0]
}
