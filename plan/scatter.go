package plan

import (
	"math"
	"math/rand/v2"
	"slices"
)

// judge is what an offer costs in the end, when the kube-scheduler has put the pods where it likes and machines were
// bought for those that found no room.
func (b *buyer) judge(o *offer) float64 {
	loads, factor := sample(o.loads)
	price := 0.0
	for i := range o.loads {
		price += o.loads[i].price / o.loads[i].good.handicap
	}
	wait := func(left []int, weight float64) {
		for k, n := range left {
			price += weight * remnants * factor * float64(n) * b.rates[k]
		}
	}
	for i, spread := range spreads {
		wait(b.scatter(loads, uint64(i), spread), (1-trickling)/float64(len(spreads)))
	}
	wait(b.trickle(loads), trickling)
	return price * b.crowding(o)
}

// trickling is how much of a fleet is taken to be filled before the rest of it has joined.
const trickling = 0.25

// spreads are how strongly pods of one kind may avoid each other: not at all where they are bare or of a Job, and more
// strongly than by anything else where they are of one workload.
var spreads = [...]float64{0, 0.1, 0.3}

// crowding is more than one where many pods would depend on very few machines. A machine is a thing that fails.
func (b *buyer) crowding(o *offer) float64 {
	pods := 0
	for _, it := range b.items {
		pods += it.wanted
	}
	if pods < crowded || len(o.loads) == 0 {
		return 1
	}
	dearest := 0.0
	for i := range o.loads {
		dearest = max(dearest, o.loads[i].price)
	}
	share := dearest / o.price
	return 1 + 0.08*max(0, share-0.12)
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

// hosts are the machines of the loads, empty, and their pods in an order that is the same every time.
func (b *buyer) hosts(loads []load, seed uint64) ([]host, []int) {
	var queue []int
	hosts := make([]host, len(loads))
	for i := range loads {
		g := loads[i].good
		usable := b.m.machines[g.index].usable
		hosts[i] = host{good: g, free: slices.Clone(usable), cpu: float64(max(1, usable[dimCPU])),
			memory: float64(max(1, usable[dimMemory])), population: make([]int32, len(b.items))}
		for _, c := range loads[i].counts {
			for range c.n {
				queue = append(queue, c.item)
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(queue))))
	random.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	return hosts, queue
}

// scatter plays the kube-scheduler with all machines there from the beginning: the pods come in any order, and each goes
// to the machine that has the best mean of the scores LeastAllocated and BalancedAllocation, where pods of a kind are
// kept apart as those of one workload are by default. It returns how many pods of each item found no room.
func (b *buyer) scatter(loads []load, seed uint64, spread float64) []int {
	hosts, queue := b.hosts(loads, seed)
	left := make([]int, len(b.items))
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
		b.settle(&hosts[best], k)
	}
	return left
}

// trickle plays it with machines that join one after another: each is filled with the first pods of the queue that fit.
func (b *buyer) trickle(loads []load) []int {
	hosts, queue := b.hosts(loads, 0)
	for h := range hosts {
		kept := queue[:0]
		for _, k := range queue {
			if math.IsInf(b.score(&hosts[h], k, 0), -1) {
				kept = append(kept, k)
				continue
			}
			b.settle(&hosts[h], k)
		}
		queue = kept
	}
	left := make([]int, len(b.items))
	for _, k := range queue {
		left[k]++
	}
	return left
}

func (b *buyer) settle(h *host, k int) {
	take(h.free, b.items[k].request, 1)
	h.population[k]++
	h.ports = append(h.ports, b.items[k].ports...)
}

// score is how much the kube-scheduler likes a host for a pod of an item; minus infinity if there is no room.
func (b *buyer) score(h *host, k int, spread float64) float64 {
	it := b.items[k]
	if !fits(it.request, h.free) || !h.good.users.has(k) || len(it.ports) > 0 && portsConflict(h.ports, it.ports) {
		return math.Inf(-1)
	}
	cpu := float64(h.free[dimCPU]-it.request[dimCPU]) / h.cpu
	memory := float64(h.free[dimMemory]-it.request[dimMemory]) / h.memory
	score := (cpu+memory)/2 + 1 - math.Abs(cpu-memory)/2
	return score - spread*float64(h.population[k])
}
