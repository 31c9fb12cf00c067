package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/cloud"
)

// Batch is a question whose pods are drawn when it is asked.
type Batch struct {
	Name string
	Ask  func() *compare.Question
	// Again says that it is another draw of an earlier batch.
	Again bool
}

// agents is how many DaemonSets run on each node in the batches of this file.
const agents = 5

// Unprepared returns batches that no planner was developed with: many sizes, many Deployments with rules about hosts, little
// room below a limit, a market that is short of spot, volumes in zones, a large cluster. Each is asked with on-demand
// machines only and with spot; those that are planned quickly are repeated with other draws.
func Unprepared(catalogue []*cloud.InstanceType) []Batch {
	var batches []Batch
	for _, capacity := range []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot} {
		add := func(name string, seeds int, pods func(d draw) []*corev1.Pod) {
			for seed := range seeds {
				named := name + "-" + capacity
				if seed > 0 {
					named = fmt.Sprintf("%s-%d", named, seed+1)
				}
				batches = append(batches, Batch{Name: named, Again: seed > 0, Ask: func() *compare.Question {
					d := newDraw(1000 + uint64(seed))
					return d.withAgents(Ask(named, pods(d), catalogue, buying(capacity)))
				}})
			}
		}
		for _, count := range []int{100, 300, 1000, 3000, 5000, 10_000, 50_000} {
			add(fmt.Sprintf("distinct-%d", count), seedsFor(count), func(d draw) []*corev1.Pod { return d.distinct(count) })
		}
		for _, rule := range []struct {
			name string
			of   constraint
		}{{"soft", preferablyApart}, {"hard", apart}} {
			for _, count := range []int{100, 300, 600, 1500} {
				add(fmt.Sprintf("apps-%s-%d", rule.name, count), seedsFor(3*count), func(d draw) []*corev1.Pod {
					return d.apps(d.differentSizes(count, measured), [2]int{2, 4}, unchanged, unchanged, rule.of)
				})
			}
		}
		for _, count := range []int{150, 600} {
			add(fmt.Sprintf("apps-16-sizes-%d", count), seedsFor(3*count), func(d draw) []*corev1.Pod {
				return d.apps(d.repeated(d.differentSizes(16, measured), count), [2]int{3, 3}, preferablyApart)
			})
		}
		for _, count := range []int{20, 50, 300} {
			add(fmt.Sprintf("recommended-%d", count), seedsFor(10*count), func(d draw) []*corev1.Pod {
				return d.apps(d.differentSizes(count, recommended), [2]int{1, 24}, unchanged)
			})
		}
		batches = append(batches, limited(catalogue, capacity)...)
		batches = append(batches, volumes(catalogue, capacity), crowded(catalogue, capacity))
	}
	return append(batches, scarce(catalogue)...)
}

// seedsFor returns the number of draws for a batch of this many pods.
func seedsFor(pods int) int {
	switch {
	case pods <= 300:
		return 3
	case pods <= 1000:
		return 2
	}
	return 1
}

// buying returns a pool of general machines, on-demand only or with spot as well.
func buying(capacity string, more ...func(*karpv1.NodePool)) *karpv1.NodePool {
	kinds := []string{karpv1.CapacityTypeOnDemand}
	if capacity == karpv1.CapacityTypeSpot {
		kinds = append(kinds, karpv1.CapacityTypeSpot)
	}
	pool := Pool("general",
		Requires("karpenter.k8s.aws/instance-category", corev1.NodeSelectorOpIn, "c", "m", "r"),
		Requires("karpenter.k8s.aws/instance-generation", corev1.NodeSelectorOpGt, "4"),
		Requires(karpv1.CapacityTypeLabelKey, corev1.NodeSelectorOpIn, kinds...))
	for _, change := range more {
		change(pool)
	}
	return pool
}

// withAgents adds the DaemonSets.
func (d draw) withAgents(q *compare.Question) *compare.Question {
	for k := range agents {
		q.DaemonSets = append(q.DaemonSets, d.daemonSet(k))
	}
	return q
}

// distinct returns pods that each have their own size and their own owner.
func (d draw) distinct(count int) []*corev1.Pod {
	pods := make([]*corev1.Pod, count)
	for i, s := range d.differentSizes(count, measured) {
		name := fmt.Sprintf("job-%05d", i)
		pods[i] = pod("default", name, s.requests(), map[string]string{AppLabel: name})
		pods[i].OwnerReferences = ownedBy("ReplicaSet", name)
	}
	return pods
}

// apps returns the pods of Deployments, one for each size, with a number of replicas in a range and one of the constraints.
func (d draw) apps(of []size, replicas [2]int, constraints ...constraint) []*corev1.Pod {
	var pods []*corev1.Pod
	for n, s := range of {
		name := fmt.Sprintf("app-%04d", n)
		apply, owned := one(d, constraints...), ownedBy("ReplicaSet", name)
		for k := range replicas[0] + d.IntN(replicas[1]-replicas[0]+1) {
			replica := pod("default", fmt.Sprintf("%s-%02d", name, k), s.requests(), map[string]string{AppLabel: name})
			replica.OwnerReferences = owned
			apply(d, replica)
			pods = append(pods, replica)
		}
	}
	return pods
}

// ownedBy returns the owner reference of a controller.
func ownedBy(kind, name string) []metav1.OwnerReference {
	yes := true
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(kind + "-" + name), Controller: &yes}}
}

// repeated draws from a few sizes.
func (d draw) repeated(few []size, count int) []size {
	many := make([]size, count)
	for i := range many {
		many[i] = one(d, few...)
	}
	return many
}

// preferablyApart is what Helm charts request by default: replicas on separate hosts, if possible.
func preferablyApart(_ draw, pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
			{Weight: 100, PodAffinityTerm: term(pod.Labels, corev1.LabelHostname)}}}}
}

// limited returns batches in pools whose limit is within a tenth of what the pods need (a fifth for memory), and one of 88
// pods of a core and 2 GiB each where 100 cores are left.
func limited(catalogue []*cloud.InstanceType, capacity string) []Batch {
	batch := func(name string, most func(total corev1.ResourceList) karpv1.Limits, pods func(d draw) []*corev1.Pod) Batch {
		name += "-" + capacity
		return Batch{Name: name, Ask: func() *compare.Question {
			d := newDraw(1000)
			waiting := pods(d)
			limits := most(total(waiting))
			return d.withAgents(Ask(name, waiting, catalogue, buying(capacity, func(p *karpv1.NodePool) { p.Spec.Limits = limits })))
		}}
	}
	above := func(percent int64, of corev1.ResourceName) func(corev1.ResourceList) karpv1.Limits {
		return func(total corev1.ResourceList) karpv1.Limits {
			asked := total[of]
			return karpv1.Limits{of: *resource.NewQuantity(asked.Value()*(100+percent)/100, asked.Format)}
		}
	}
	services := func(d draw) []*corev1.Pod { return d.apps(d.differentSizes(100, measured), [2]int{2, 8}, unchanged) }
	return []Batch{
		batch("limit-cores", above(10, corev1.ResourceCPU), services),
		// Limits count whole machines, and a tenth of their memory is taken by the hypervisor, the kubelet and the agents.
		batch("limit-memory", above(20, corev1.ResourceMemory), services),
		batch("limit-100-cores", func(corev1.ResourceList) karpv1.Limits {
			return karpv1.Limits{corev1.ResourceCPU: resource.MustParse("100")}
		}, func(d draw) []*corev1.Pod { return d.apps([]size{{1000, 2048}}, [2]int{88, 88}, unchanged) }),
	}
}

// total returns the sum of the pods' requests.
func total(pods []*corev1.Pod) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, p := range pods {
		for name, quantity := range p.Spec.Containers[0].Resources.Requests {
			amount := sum[name]
			amount.Add(quantity)
			sum[name] = amount
		}
	}
	return sum
}

// scarce returns batches for which two thirds of the spot offerings are unavailable.
func scarce(catalogue []*cloud.InstanceType) []Batch {
	var batches []Batch
	for seed := range 2 {
		left := withoutSpot(newDraw(2000+uint64(seed)), catalogue)
		for _, b := range []struct {
			name string
			pods func(d draw) []*corev1.Pod
		}{
			{"scarce-apps-300-spot", func(d draw) []*corev1.Pod {
				return d.apps(d.differentSizes(300, measured), [2]int{2, 4}, unchanged, unchanged, preferablyApart)
			}},
			{"scarce-web-600-spot", func(d draw) []*corev1.Pod {
				return d.deployments(part{web, 600, []constraint{unchanged, preferablyApart}})
			}},
		} {
			name := b.name
			if seed > 0 {
				name = fmt.Sprintf("%s-%d", name, seed+1)
			}
			batches = append(batches, Batch{Name: name, Again: seed > 0, Ask: func() *compare.Question {
				d := newDraw(1000 + uint64(seed))
				return d.withAgents(Ask(name, b.pods(d), left, buying(karpv1.CapacityTypeSpot)))
			}})
		}
	}
	return batches
}

// withoutSpot returns a copy of the catalogue in which two thirds of the spot offerings, drawn one by one, have no capacity.
func withoutSpot(d draw, catalogue []*cloud.InstanceType) []*cloud.InstanceType {
	left := make([]*cloud.InstanceType, len(catalogue))
	for i, t := range catalogue {
		copied := *t
		copied.Offerings = make([]cloud.Offering, len(t.Offerings))
		for k, o := range t.Offerings {
			o.Available = o.Available && (o.CapacityType != karpv1.CapacityTypeSpot || d.IntN(3) == 0)
			copied.Offerings[k] = o
		}
		left[i] = &copied
	}
	return left
}

// volumes returns a thousand pods of StatefulSets that return to volumes in zones. A third of the sets keep their pods on
// separate hosts.
func volumes(catalogue []*cloud.InstanceType, capacity string) Batch {
	name := "volumes-1000-" + capacity
	return Batch{Name: name, Ask: func() *compare.Question {
		d := newDraw(1000)
		r := random{draw: d, q: Ask(name, nil, catalogue, buying(capacity))}
		r.storage()
		for n := 0; len(r.q.Pods) < 1000; n++ {
			set := fmt.Sprintf("set-%03d", n)
			s, apply, first := d.size(measured), one(d, unchanged, unchanged, apart), d.IntN(len(zones))
			owned := ownedBy("StatefulSet", set)
			for k := range min(3+d.IntN(7), 1000-len(r.q.Pods)) {
				replica := pod("default", fmt.Sprintf("%s-%d", set, k), s.requests(), map[string]string{AppLabel: set})
				replica.OwnerReferences = owned
				apply(d, replica)
				r.claim(replica, replica.Name+"-data", "anywhere", zones[(first+k)%len(zones)])
				r.q.Pods = append(r.q.Pods, replica)
			}
		}
		return d.withAgents(r.q)
	}}
}

// crowded returns five hundred pods of many sizes in a cluster of 10,000 nodes that are nearly full.
func crowded(catalogue []*cloud.InstanceType, capacity string) Batch {
	name := "10000-nodes-500-" + capacity
	return Batch{Name: name, Ask: func() *compare.Question {
		d := newDraw(1000)
		q := Ask(name, d.apps(d.differentSizes(230, measured), [2]int{2, 4}, unchanged, unchanged, preferablyApart)[:500], catalogue, buying(capacity))
		q.Nodes = Nodes(10_000, "general", catalogue)
		return d.withAgents(q)
	}}
}
