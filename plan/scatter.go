package plan

import (
	"math"
	"math/rand/v2"
)

// judge is what an offer costs in the end, when the kube-scheduler has put the pods where it likes and machines were
// bought for those that found no room.
func (b *buyer) judge(o *offer) float64 {
	loads, factor := sample(o.loads)
	worst := 0.0
	for _, spread := range [...]bool{false, true} {
		left := b.scatter(loads, spread)
		worst = max(worst, b.secondRound(left))
	}
	return (o.price + delay*factor*worst) * b.crowding(o)
}

// crowding is more than one where many pods would depend on very few machines. A machine is a thing that fails.
func (b *buyer) crowding(o *offer) float64 {
	pods := 0
	for _, it := range b.items {
		pods += it.left
	}
	if pods < crowded || len(o.loads) == 0 {
		return 1
	}
	dearest := 0.0
	for i := range o.loads {
		dearest = max(dearest, o.loads[i].price)
	}
	share := dearest / o.price
	return 1 + 0.05*max(0, share-0.2)
}

// maxScattered is how many pods are played with. Of a larger plan a part is enough.
const maxScattered = 1500

// sample is an even part of the loads, and how many times larger the whole is.
func sample(loads []load) ([]load, float64) {
	pods := 0
	for i := range loads {
		for _, c := range loads[i].counts {
			pods += c.n
		}
	}
	stride := (pods + maxScattered - 1) / maxScattered
	if stride <= 1 {
		return loads, 1
	}
	var part []load
	for i := 0; i < len(loads); i += stride {
		part = append(part, loads[i])
	}
	return part, float64(len(loads)) / float64(len(part))
}

// host is a machine in the game.
type host struct {
	good       *good
	free       []int64
	cpu        float64
	memory     float64
	population []int32 // by item
	ports      []HostPort
}

// scatter plays the kube-scheduler: the pods of all loads come in any order, and each goes to the machine that has the
// best mean of the scores LeastAllocated and BalancedAllocation; with spread, pods of a kind are kept apart, as those of
// one workload are by default. It returns how many pods of each item found no room. The order is the same every time.
func (b *buyer) scatter(loads []load, spread bool) []int {
	left := make([]int, len(b.items))
	var queue []int
	hosts := make([]host, len(loads))
	for i := range loads {
		g := loads[i].good
		usable := b.m.machines[g.index].usable
		hosts[i] = host{good: g, free: append([]int64(nil), usable...), cpu: float64(max(1, usable[dimCPU])),
			memory: float64(max(1, usable[dimMemory])), population: make([]int32, len(b.items))}
		for _, c := range loads[i].counts {
			for range c.n {
				queue = append(queue, c.item)
			}
		}
	}
	random := rand.New(rand.NewPCG(1, uint64(len(queue))))
	random.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	for _, k := range queue {
		best, highest := -1, math.Inf(-1)
		for h := range hosts {
			if score := b.score(&hosts[h], k, spread); score > highest {
				best, highest = h, score
			}
		}
		if best < 0 {
			left[k]++
			continue
		}
		host := &hosts[best]
		take(host.free, b.items[k].request, 1)
		host.population[k]++
		host.ports = append(host.ports, b.items[k].class.HostPorts...)
	}
	return left
}

// score is how much the kube-scheduler likes a host for a pod of an item; minus infinity if there is no room.
func (b *buyer) score(h *host, k int, spread bool) float64 {
	it := b.items[k]
	if !fits(it.request, h.free) || !h.good.users.has(k) || len(it.class.HostPorts) > 0 && portsConflict(h.ports, it.class.HostPorts) {
		return math.Inf(-1)
	}
	cpu := float64(h.free[dimCPU]-it.request[dimCPU]) / h.cpu
	memory := float64(h.free[dimMemory]-it.request[dimMemory]) / h.memory
	score := (cpu+memory)/2 + 1 - math.Abs(cpu-memory)/2
	if spread {
		score -= 0.2 * float64(h.population[k])
	}
	return score
}

// secondRound is the price of machines for pods that found no room.
func (b *buyer) secondRound(left []int) float64 {
	total := 0
	for _, n := range left {
		total += n
	}
	if total == 0 {
		return 0
	}
	return b.offer(0, left, func() {
		for l := b.best(nil); l != nil; l = b.best(nil) {
			b.buy(l, math.MaxInt32)
		}
	}).price
}
