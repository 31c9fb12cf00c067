package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// planReport is what `tenon plan` prints.
type planReport struct {
	// PricePerHour is the total price of the new nodes, in Currency: USD, or CNY in China.
	PricePerHour float64       `json:"pricePerHour"`
	Currency     string        `json:"currency"`
	Nodes        []plannedNode `json:"nodes"`
	// Existing are the nodes of the manifests that take pods.
	Existing []existingNode `json:"existing,omitempty"`
	Unplaced []unplacedPod  `json:"unplaced"`
}

// plannedNode is a node that would be created.
type plannedNode struct {
	Name     string `json:"name"`
	NodePool string `json:"nodePool"`
	// InstanceType is the cheapest of InstanceTypeOptions, and Zone is the zone where it is cheapest.
	InstanceType        string            `json:"instanceType"`
	InstanceTypeOptions []string          `json:"instanceTypeOptions"`
	Zone                string            `json:"zone"`
	CapacityType        string            `json:"capacityType"`
	Arch                string            `json:"arch"`
	PricePerHour        float64           `json:"pricePerHour"`
	Labels              map[string]string `json:"labels"`
	Pods                []string          `json:"pods"`

	workloads []string // of each pod, for the table
}

// existingNode is a node that takes pods.
type existingNode struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`

	workloads []string
}

// unplacedPod is a pod without a node, with the reasons from all NodePools.
type unplacedPod struct {
	Pod     string   `json:"pod"`
	Reasons []string `json:"reasons"`

	workload string
	lines    string // the reasons, for the table
}

// reportOf builds the report of a plan, whose prices are in a currency.
func reportOf(in plan.Input, packed plan.Plan, currency string) (*planReport, error) {
	report := &planReport{PricePerHour: packed.PricePerHour(), Currency: currency, Nodes: []plannedNode{}, Unplaced: []unplacedPod{}}
	pods := make(map[types.UID]*plan.Pod, len(in.Snapshot.Pending))
	for _, pod := range in.Snapshot.Pending {
		pods[pod.UID] = pod
	}
	for _, node := range in.Snapshot.Nodes {
		for _, pod := range node.Pods {
			pods[pod.UID] = pod
		}
	}
	pools := map[string]*plan.Pool{}
	for i := range in.Pools {
		pools[in.Pools[i].NodePool.Name] = &in.Pools[i]
	}
	counts := map[string]int{}
	for i := range packed.Claims {
		claim := &packed.Claims[i]
		counts[claim.NodePool]++
		name := fmt.Sprintf("%s-%d", claim.NodePool, counts[claim.NodePool])
		node, err := plannedNodeOf(in.Snapshot.LabelKeys, claim, pools[claim.NodePool], name)
		if err != nil {
			return nil, err
		}
		held := make([]*plan.Pod, 0, len(claim.Pods))
		for _, uid := range claim.Pods {
			if pod := pods[uid]; pod != nil {
				held = append(held, pod)
			}
		}
		node.Pods, node.workloads = namesOf(held)
		report.Nodes = append(report.Nodes, node)
	}
	report.Existing = existingOf(in.Snapshot, packed.Placements)
	report.Unplaced = append(report.Unplaced, unplacedOf(in.Snapshot, packed.Unplaced)...)
	return report, nil
}

// plannedNodeOf describes a claim's node as it would be launched.
func plannedNodeOf(keys cloud.LabelKeys, claim *plan.Claim, pool *plan.Pool, name string) (plannedNode, error) {
	object, err := claim.NodeClaim(pool.NodePool, name)
	if err != nil {
		return plannedNode{}, fmt.Errorf("NodePool %s: %w", claim.NodePool, err)
	}
	node := plannedNode{
		Name: name, NodePool: claim.NodePool, InstanceTypeOptions: claim.InstanceTypes, CapacityType: claim.CapacityType,
		PricePerHour: claim.PricePerHour, Labels: object.Labels,
	}
	typ, offering := launched(claim, pool.Types)
	if typ == nil {
		return node, nil
	}
	node.InstanceType = typ.Name
	maps.Copy(node.Labels, typ.Labels)
	node.Labels[karpv1.CapacityTypeLabelKey] = claim.CapacityType
	node.Labels[keys.Tenancy] = plan.Tenancy(keys, object)
	if partition := plan.Partition(keys, object, pool.Types); partition != "" {
		node.Labels[keys.Partition] = partition
	}
	node.Arch = typ.Labels[corev1.LabelArchStable]
	if offering != nil {
		node.Zone = offering.Zone
		node.Labels[corev1.LabelTopologyZone] = offering.Zone
		if offering.ZoneID != "" {
			node.Labels[keys.ZoneID] = offering.ZoneID
		}
	}
	return node, nil
}

// launched returns what a claim would get: its first instance type and that type's cheapest offering.
func launched(claim *plan.Claim, types []*cloud.InstanceType) (*cloud.InstanceType, *cloud.Offering) {
	if len(claim.InstanceTypes) == 0 {
		return nil, nil
	}
	at := slices.IndexFunc(types, func(t *cloud.InstanceType) bool { return t.Name == claim.InstanceTypes[0] })
	if at < 0 {
		return nil, nil
	}
	var best *cloud.Offering
	for i := range types[at].Offerings {
		offering := &types[at].Offerings[i]
		if !offering.Available || offering.CapacityType != claim.CapacityType || !slices.Contains(claim.Zones, offering.Zone) {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(offering.Price, best.Price), cmp.Compare(offering.Zone, best.Zone)) < 0 {
			best = offering
		}
	}
	return types[at], best
}

// existingOf lists the nodes that take pods, by name.
func existingOf(snapshot *plan.Snapshot, placements []plan.Placement) []existingNode {
	taken := map[string][]*plan.Pod{}
	for _, placement := range placements {
		taken[placement.Node] = append(taken[placement.Node], placement.Pod)
	}
	var existing []existingNode
	for _, node := range snapshot.Nodes {
		if len(taken[node.Key()]) == 0 {
			continue
		}
		one := existingNode{Name: cmp.Or(node.Name, node.Claim)}
		one.Pods, one.workloads = namesOf(taken[node.Key()])
		existing = append(existing, one)
	}
	return existing
}

// unplacedOf lists the pods without a node, by name. It includes gated pods, which are not planned for.
func unplacedOf(snapshot *plan.Snapshot, left []plan.Unplaced) []unplacedPod {
	var unplaced []unplacedPod
	for _, u := range left {
		unplaced = append(unplaced, unplacedPod{Pod: u.Pod.Key(), Reasons: reasonsOf(u.Reasons), workload: workloadOf(u.Pod), lines: reasonLines(u.Reasons)})
	}
	gated := []plan.Reason{{Message: "it has scheduling gates: it is not scheduled until they are removed"}}
	for _, pod := range snapshot.Pending {
		if pod.Gated {
			unplaced = append(unplaced, unplacedPod{Pod: pod.Key(), Reasons: reasonsOf(gated), workload: workloadOf(pod), lines: reasonLines(gated)})
		}
	}
	slices.SortStableFunc(unplaced, func(a, b unplacedPod) int { return compareNames(a.Pod, b.Pod) })
	return unplaced
}

func reasonsOf(reasons []plan.Reason) []string {
	texts := make([]string, len(reasons))
	for i, reason := range reasons {
		texts[i] = reason.Message
		if reason.NodePool != "" {
			texts[i] = "NodePool " + reason.NodePool + ": " + reason.Message
		}
	}
	return texts
}

// namesOf sorts pods by key, and returns their keys and the workload of each.
func namesOf(pods []*plan.Pod) (names, workloads []string) {
	slices.SortFunc(pods, func(a, b *plan.Pod) int { return compareNames(a.Key(), b.Key()) })
	names = make([]string, len(pods))
	workloads = make([]string, len(pods))
	for i, pod := range pods {
		names[i], workloads[i] = pod.Key(), workloadOf(pod)
	}
	return names, workloads
}

// workloadOf returns the workload that a pod belongs to, or the pod itself.
func workloadOf(pod *plan.Pod) string {
	switch {
	case pod.Virtual:
		return stem(pod.Key())
	case pod.OwnerName == "":
		return pod.Key()
	}
	return pod.Namespace + "/" + pod.OwnerName
}

// compareNames orders names, and names with numbers at the end by number: web-2 before web-10.
func compareNames(a, b string) int {
	return cmp.Or(strings.Compare(stem(a), stem(b)), cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// stem returns a name without the number at its end.
func stem(name string) string { return strings.TrimRight(strings.TrimRight(name, "0123456789"), "-") }
