package workload

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

// Nodes returns machines of a pool that have existed for a long time and are full: general machines with 8 to 32 cores, in
// all zones and capacity types, each filled with pods of the diverse kind (without their constraints).
func Nodes(count int, pool string, catalogue []*cloud.InstanceType) []compare.Node {
	d := newDraw(17)
	var candidates []*cloud.InstanceType
	for _, t := range catalogue {
		cores := t.Capacity.Cpu().Value()
		if cores >= 8 && cores <= 32 && t.Capacity.Memory().Value() <= 160<<30 && !devices(t) && available(t) {
			candidates = append(candidates, t)
		}
	}
	nodes := make([]compare.Node, count)
	for i := range nodes {
		t := one(d, candidates...)
		offering := one(d, slices.DeleteFunc(slices.Clone(t.Offerings), func(o cloud.Offering) bool { return !o.Available })...)
		nodes[i] = node(fmt.Sprintf("node-%04d", i), pool, t, offering)
		d.fill(&nodes[i], t)
	}
	return nodes
}

func available(t *cloud.InstanceType) bool {
	return slices.ContainsFunc(t.Offerings, func(o cloud.Offering) bool { return o.Available })
}

// devices reports whether a type offers more than cores, memory, disk and pods: GPUs, or other accelerators.
func devices(t *cloud.InstanceType) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(t.Capacity)), func(name corev1.ResourceName) bool {
		return strings.Contains(string(name), "/") && !strings.HasPrefix(string(name), "vpc.amazonaws.com/")
	})
}

// fill binds pods to a node until the next one does not fit.
func (d draw) fill(n *compare.Node, t *cloud.InstanceType) {
	cpu, memory, pods := t.Allocatable.Cpu().MilliValue(), t.Allocatable.Memory().Value(), t.Allocatable.Pods().Value()
	for k := int64(0); k < pods; k++ {
		requests := d.requests()
		cpu -= requests.Cpu().MilliValue()
		memory -= requests.Memory().Value()
		if cpu < 0 || memory < 0 {
			return
		}
		bound := pod("default", fmt.Sprintf("%s-%02d", n.Node.Name, k), requests, map[string]string{"my-label": d.label()})
		bound.Spec.NodeName = n.Node.Name
		bound.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		n.Pods = append(n.Pods, bound)
	}
}

// node returns a machine that has joined and is initialized, with its claim.
func node(name, pool string, t *cloud.InstanceType, offering cloud.Offering) compare.Node {
	labels := maps.Clone(t.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:              name,
		corev1.LabelTopologyZone:          offering.Zone,
		corev1.LabelFailureDomainBetaZone: offering.Zone, // which the cloud controller still sets, too
		karpv1.CapacityTypeLabelKey:       offering.CapacityType,
		karpv1.NodePoolLabelKey:           pool,
		karpv1.NodeRegisteredLabelKey:     "true",
		karpv1.NodeInitializedLabelKey:    "true",
	})
	providerID := "aws:///" + offering.Zone + "/i-" + name
	claim := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, UID: types.UID("claim-" + name), Labels: labels, CreationTimestamp: moment},
		Spec: karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"},
			Requirements: []karpv1.NodeSelectorRequirementWithMinValues{}},
		Status: karpv1.NodeClaimStatus{NodeName: name, ProviderID: providerID, Capacity: t.Capacity, Allocatable: t.Allocatable},
	}
	for _, condition := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, karpv1.ConditionTypeReady} {
		claim.Status.Conditions = append(claim.Status.Conditions,
			metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: condition, LastTransitionTime: moment})
	}
	return compare.Node{Claim: claim, Node: &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: labels, CreationTimestamp: moment},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{Capacity: t.Capacity, Allocatable: t.Allocatable, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: moment}}},
	}}
}

// Joined returns a node that joined at the given time and has been initialized since, with its claim.
func Joined(name, pool string, t *cloud.InstanceType, offering cloud.Offering, at time.Time) compare.Node {
	n := node(name, pool, t, offering)
	then := metav1.NewTime(at)
	n.Node.CreationTimestamp, n.Claim.CreationTimestamp = then, then
	n.Node.Status.Conditions[0].LastTransitionTime = then
	for i := range n.Claim.Status.Conditions {
		n.Claim.Status.Conditions[i].LastTransitionTime = then
	}
	return n
}

// Impossible returns pods that fit on no machine: half of them require a label that no NodePool gives, the others more
// memory than any machine has.
func Impossible(count int) []*corev1.Pod {
	d := newDraw(13)
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		p := pod("default", fmt.Sprintf("impossible-%05d", i), d.requests(), map[string]string{"my-label": d.label()})
		if i%2 == 0 {
			p.Spec.NodeSelector = map[string]string{"example.com/nowhere": "true"}
		} else {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("100Ti")
		}
		pods[i] = p
	}
	return pods
}
