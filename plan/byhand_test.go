package plan_test

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tenon-sh/tenon/cloud"
)

// The functions below fill machines as one would by hand. They share no code with the planner, and know only the rules
// that batches have: requests, a zone to be in, and hosts without others of the app, which they enforce even where it
// is only a preference.

// handPod is what a pod asks for.
type handPod struct {
	cpu, memory int64
	app, zone   string
	apart       bool
}

// handType is a type in numbers.
type handType struct {
	name              string
	cpu, memory, pods int64
	// prices are the prices of the cheapest offering, by zone and anywhere ("").
	prices map[string]float64
}

func handTypes(types []*cloud.InstanceType) []*handType {
	hand := make([]*handType, len(types))
	for i, typ := range types {
		hand[i] = &handType{name: typ.Name, cpu: typ.Allocatable.Cpu().MilliValue(), memory: typ.Allocatable.Memory().Value(),
			pods: typ.Allocatable.Pods().Value(), prices: map[string]float64{}}
		for _, o := range typ.Offerings {
			for _, in := range []string{"", o.Zone} {
				if price, sold := hand[i].prices[in]; o.Available && (!sold || o.Price < price) {
					hand[i].prices[in] = o.Price
				}
			}
		}
	}
	return hand
}

// handClaim is a node in the making: what its pods ask for together, and what it may still become.
type handClaim struct {
	cpu, memory, pods int64
	zone              string
	types             []*handType
	apps              map[string]bool
}

// handPods returns the pods, the largest first: by cores, then by memory.
func (b batch) handPods() []handPod {
	pods := make([]handPod, len(b.pods))
	for i, pod := range b.pods {
		requests := pod.Spec.Containers[0].Resources.Requests
		pods[i] = handPod{cpu: requests.Cpu().MilliValue(), memory: requests.Memory().Value(), app: pod.Labels["app"], zone: pod.Spec.NodeSelector[zone],
			apart: pod.Spec.Affinity != nil}
	}
	slices.SortStableFunc(pods, func(x, y handPod) int {
		return cmp.Or(cmp.Compare(y.cpu, x.cpu), cmp.Compare(y.memory, x.memory), cmp.Compare(x.app, y.app))
	})
	return pods
}

// firstFit puts each pod into the first claim of which some type still holds everything, or into a new one. Each claim
// then becomes its cheapest type, as with Karpenter. It returns the price including that of the nodes, or false if a
// pod fits nowhere.
func (b batch) firstFit(types []*handType) (price float64, fits bool) {
	var claims []*handClaim
	for _, pod := range b.handPods() {
		if slices.ContainsFunc(claims, func(c *handClaim) bool { return c.take(pod) }) {
			continue
		}
		c := &handClaim{types: types, apps: map[string]bool{}, pods: int64(len(b.daemonSets))}
		for _, set := range b.daemonSets {
			requests := set.Spec.Template.Spec.Containers[0].Resources.Requests
			c.cpu, c.memory = c.cpu+requests.Cpu().MilliValue(), c.memory+requests.Memory().Value()
		}
		if !c.take(pod) {
			return 0, false
		}
		claims = append(claims, c)
	}
	for _, c := range claims {
		cheapest := math.Inf(1)
		for _, typ := range c.types {
			cheapest = min(cheapest, typ.prices[c.zone])
		}
		price += cheapest + b.pools[0].NodePrice
	}
	return price, true
}

func (c *handClaim) take(pod handPod) bool {
	if pod.apart && c.apps[pod.app] || pod.zone != "" && c.zone != "" && pod.zone != c.zone {
		return false
	}
	in := cmp.Or(c.zone, pod.zone)
	cpu, memory, pods := c.cpu+pod.cpu, c.memory+pod.memory, c.pods+1
	holds := func(typ *handType) bool {
		_, sold := typ.prices[in]
		return sold && typ.cpu >= cpu && typ.memory >= memory && typ.pods >= pods
	}
	if !slices.ContainsFunc(c.types, holds) {
		return false
	}
	c.cpu, c.memory, c.pods, c.zone = cpu, memory, pods, in
	c.types = slices.DeleteFunc(slices.Clone(c.types), func(typ *handType) bool { return !holds(typ) })
	c.apps[pod.app] = true
	return true
}

// oneType returns the price of the cheapest fleet of machines of one type, and the type's name.
func (b batch) oneType() (price float64, name string) {
	price = math.Inf(1)
	for _, typ := range handTypes(b.pools[0].Types) {
		if fleet, fits := b.firstFit([]*handType{typ}); fits && fleet < price {
			price, name = fleet, typ.name
		}
	}
	return price, name
}

// without returns the batch without the pods of some apps.
func (b batch) without(out func(app string) bool) batch {
	w := *b.world
	w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(pod *corev1.Pod) bool { return out(pod.Labels["app"]) })
	return batch{&w, b.nominates}
}

// appNames returns the apps, sorted.
func (b batch) appNames() []string { return slices.Sorted(maps.Keys(b.perApp())) }
