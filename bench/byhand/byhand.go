// Package byhand prices a question as anybody could without a planner: by first fit in decreasing order of size, as
// Karpenter does it; by machines of one single type; and by a bound, the price of the batch if pods were divisible. It
// shares no code with either planner and knows few rules: what pods request, node selectors over labels of machines, zones
// and capacity types, taints, DaemonSets that run everywhere, volumes in zones, and separate hosts for pods of the same app.
// It does not answer questions with other rules or with existing nodes.
package byhand

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/workload"
)

// Answer holds the prices of a question worked out by hand, in US dollars per hour.
type Answer struct {
	// FirstFit is the price of first fit in decreasing order of size, on this many Nodes.
	FirstFit float64
	Nodes    int
	// OneType is the price of the cheapest fleet of machines of one type; zero where no type takes all pods.
	OneType float64
	// Type is the type of that fleet.
	Type string
	// Bound is what no plan can undercut: the price of the batch if pods could be divided.
	Bound float64
}

// Least returns the lower of the two prices.
func (a Answer) Least() float64 {
	if a.OneType > 0 {
		return min(a.FirstFit, a.OneType)
	}
	return a.FirstFit
}

// Price answers a question, or returns false if the question cannot be answered by hand.
func Price(q *compare.Question) (Answer, bool) {
	pods, ok := podsOf(q)
	if !ok || len(q.Nodes) > 0 {
		return Answer{}, false
	}
	machines := machinesOf(q)
	claims, ok := firstFit(machines, pods)
	if !ok {
		return Answer{}, false
	}
	a := Answer{Nodes: len(claims), Bound: divisible(machines, pods)}
	for _, c := range claims {
		a.FirstFit += c.price()
	}
	a.OneType, a.Type = oneType(machines, pods)
	return a, true
}

// machine is an instance type of a pool in one zone, of one capacity type, less what DaemonSets take.
type machine struct {
	name, zone, capacity string
	taints               []corev1.Taint
	labels               map[string]string
	free                 amounts
	price                float64
}

// amounts are thousandths of a core, bytes, pods and GPUs.
type amounts [4]int64

func amountsOf(list corev1.ResourceList) amounts {
	gpus := list["nvidia.com/gpu"]
	return amounts{list.Cpu().MilliValue(), list.Memory().Value(), list.Pods().Value(), gpus.Value()}
}

func (a amounts) plus(b amounts) amounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

func (a amounts) within(b amounts) bool {
	return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] && a[3] <= b[3]
}

// machinesOf returns everything that can be bought, the cheapest first.
func machinesOf(q *compare.Question) []*machine {
	var machines []*machine
	for _, pool := range q.Pools {
		for _, t := range q.Types[pool.Name] {
			free := amountsOf(t.Allocatable)
			for _, set := range q.DaemonSets {
				asks := amountsOf(set.Spec.Template.Spec.Containers[0].Resources.Requests)
				asks[2] = 1
				for i := range free {
					free[i] -= asks[i]
				}
			}
			for _, o := range t.Offerings {
				labels := map[string]string{corev1.LabelTopologyZone: o.Zone, karpv1.CapacityTypeLabelKey: o.CapacityType, karpv1.NodePoolLabelKey: pool.Name}
				for key, value := range t.Labels {
					labels[key] = value
				}
				if o.Available && sells(pool, labels) {
					machines = append(machines, &machine{name: t.Name, zone: o.Zone, capacity: o.CapacityType, taints: pool.Spec.Template.Spec.Taints,
						labels: labels, free: free, price: o.Price})
				}
			}
		}
	}
	slices.SortStableFunc(machines, func(a, b *machine) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.name, b.name)) })
	return machines
}

// sells reports whether a pool's requirements allow it to buy a machine.
func sells(pool *karpv1.NodePool, labels map[string]string) bool {
	for _, r := range pool.Spec.Template.Spec.Requirements {
		selector := nodeaffinity.NewLazyErrorNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: r.Key, Operator: r.Operator, Values: r.Values}}}}})
		node := &corev1.Node{}
		node.Labels = labels
		if matches, err := selector.Match(node); err != nil || !matches {
			return false
		}
	}
	return true
}

// pod is what a pod asks for.
type pod struct {
	asks     amounts
	app      string
	apart    bool
	selects  map[string]string
	tolerant []corev1.Toleration
	// kind numbers the selectors and tolerations that differ.
	kind int
}

// podsOf returns the question's pods, the largest first: by cores, then by memory. It returns false if one of them asks for
// something that this package does not know.
func podsOf(q *compare.Question) ([]*pod, bool) {
	zones := zonesOf(q)
	kinds := map[string]int{}
	pods := make([]*pod, len(q.Pods))
	for i, p := range q.Pods {
		if len(p.Spec.TopologySpreadConstraints) > 0 {
			return nil, false
		}
		apart, ok := keepsApart(p)
		if !ok {
			return nil, false
		}
		selects := map[string]string{}
		for key, value := range p.Spec.NodeSelector {
			selects[key] = value
		}
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim == nil || zones[v.PersistentVolumeClaim.ClaimName] == "" {
				return nil, false
			}
			selects[corev1.LabelTopologyZone] = zones[v.PersistentVolumeClaim.ClaimName]
		}
		next := &pod{asks: amountsOf(p.Spec.Containers[0].Resources.Requests), app: p.Labels[workload.AppLabel], apart: apart, selects: selects, tolerant: p.Spec.Tolerations}
		next.asks[2] = 1
		named := named(next)
		if _, known := kinds[named]; !known {
			kinds[named] = len(kinds)
		}
		next.kind, pods[i] = kinds[named], next
	}
	slices.SortStableFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(b.asks[0], a.asks[0]), cmp.Compare(b.asks[1], a.asks[1]), cmp.Compare(a.app, b.app))
	})
	return pods, true
}

// named returns a text that tells kinds of pods apart.
func named(p *pod) string {
	text := ""
	for _, key := range slices.Sorted(maps.Keys(p.selects)) {
		text += key + "=" + p.selects[key] + ";"
	}
	for _, t := range p.tolerant {
		text += t.String()
	}
	return text
}

// zonesOf returns the zones of the volumes that PersistentVolumeClaims are bound to.
func zonesOf(q *compare.Question) map[string]string {
	byVolume := map[string]string{}
	for _, v := range q.Volumes {
		byVolume[v.Name] = v.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
	}
	zones := map[string]string{}
	for _, c := range q.Claims {
		zones[c.Name] = byVolume[c.Spec.VolumeName]
	}
	return zones
}

// keepsApart reports whether a pod requires or prefers a host without other pods of its app. known is false if the pod asks
// for any other affinity or anti-affinity.
func keepsApart(p *corev1.Pod) (apart, known bool) {
	a := p.Spec.Affinity
	if a == nil {
		return false, true
	}
	if a.NodeAffinity != nil || a.PodAffinity != nil || a.PodAntiAffinity == nil {
		return false, false
	}
	terms := slices.Clone(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	for _, wish := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		terms = append(terms, wish.PodAffinityTerm)
	}
	for _, t := range terms {
		if t.TopologyKey != corev1.LabelHostname || len(t.LabelSelector.MatchLabels) != 1 || t.LabelSelector.MatchLabels[workload.AppLabel] != p.Labels[workload.AppLabel] {
			return false, false
		}
	}
	return true, true
}

// may reports whether a machine's labels and taints admit a pod.
func (p *pod) may(m *machine) bool {
	for key, value := range p.selects {
		if m.labels[key] != value {
			return false
		}
	}
	for i := range m.taints {
		if !slices.ContainsFunc(p.tolerant, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &m.taints[i], false) }) {
			return false
		}
	}
	return true
}

// least returns the price of the cheapest machine, or infinity if there is none.
func least(machines []*machine) float64 {
	if len(machines) == 0 {
		return math.Inf(1)
	}
	return machines[0].price
}
