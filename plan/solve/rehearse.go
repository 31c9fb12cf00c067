package solve

import (
	"math"
	"math/rand/v2"
	"slices"
)

// A plan decides how many machines there will be. Where the kube-scheduler is not told of the plan, it takes pods as
// they come and spreads them. Machines cut to measure for certain pods are then filled with others, and the pods for
// which they were bought need a second round of machines. So several ways to buy are compared by their final cost,
// which is found by simulating the kube-scheduler.

const (
	// remnants is how much dearer than their size pods of a second round of machines are: they fill no machine, and
	// they waited.
	remnants = 1.3
	// trickling is the part of a fleet that is assumed to be filled machine by machine, before the rest of it has
	// joined.
	trickling = 0.25
	// maxScattered is the number of pods that are simulated. Of a larger plan, a part is enough.
	maxScattered = 1500
)

// spreads are how strongly pods of one kind avoid each other: not at all if they are bare or belong to a Job, and more
// strongly than by anything else if they belong to one workload.
var spreads = [...]float64{0, 0.1, 0.3}

// worthwaiting is how much more than the cheapest a packing may cost to buy, in order to be cheaper in the end.
const worthwaiting = 1.05

// rehearsed returns the packing with the lowest final cost among those that serve as much as the cheapest and are not
// much dearer.
func (s *solver) rehearsed(all []*packing, cheapest *packing) *packing {
	limit, best := cheapest.price*worthwaiting, cheapest
	best.total = s.judge(best)
	for _, packed := range all {
		if packed == cheapest || packed.rest.pieces > cheapest.rest.pieces || packed.price > limit || packed.price >= best.total {
			continue
		}
		if packed.total = s.judge(packed); packed.better(best) {
			best = packed
		}
	}
	return best
}

// judge returns the cost of a packing after the kube-scheduler has put the pods where it likes and machines were bought
// for those that found no room.
func (s *solver) judge(packed *packing) float64 {
	loads, factor := sample(packed.loads)
	price := packed.price
	wait := func(left []int, weight float64) {
		for k, n := range left {
			price += weight * remnants * factor * float64(n) * s.size[k]
		}
	}
	for i, spread := range spreads {
		wait(s.scheduleInWaves(loads, max(1, len(loads)), uint64(i), spread), (1-trickling)/float64(len(spreads)))
	}
	wait(s.scheduleInWaves(loads, 1, 0, 0), trickling)
	return price
}

// sample returns an even sample of the loads, and how many times larger the whole is.
func sample(loads []Load) ([]Load, float64) {
	pieces := 0
	for i := range loads {
		pieces += loads[i].pieces()
	}
	stride := (pieces + maxScattered - 1) / maxScattered
	if stride <= 1 {
		return loads, 1
	}
	var part []Load
	for i := 0; i < len(loads); i += stride {
		part = append(part, loads[i])
	}
	return part, float64(len(loads)) / float64(len(part))
}

// simulated is a machine in the simulation. The first two dimensions are cores and memory.
type simulated struct {
	machine     int
	free        []int64
	cpu, memory float64
	population  map[int]int
	content     []Count
}

// machines returns the loads' machines, empty, and their pieces, each in an order that depends on seed alone.
func (s *solver) machines(loads []Load, seed uint64) ([]simulated, []int) {
	var queue []int
	nodes := make([]simulated, len(loads))
	for i := range loads {
		room := s.p.Machines[loads[i].Machine].Room
		nodes[i] = simulated{machine: loads[i].Machine, free: slices.Clone(room), cpu: float64(max(1, room[0])),
			memory: float64(max(1, room[1])), population: map[int]int{}}
		for _, c := range loads[i].Content {
			for range c.N {
				queue = append(queue, c.Demand)
			}
		}
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(queue))))
	random.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes, queue
}

// scheduleInWaves simulates the kube-scheduler with machines that join in waves. The pods come in any order. Each goes
// to the machine with the best mean of the scores LeastAllocated and BalancedAllocation, and pods of a kind are kept
// apart as those of one workload are by default. Machines of earlier waves are full for the pods that still wait. It
// returns how many pieces of each demand found no room.
func (s *solver) scheduleInWaves(loads []Load, wave int, seed uint64, spread float64) []int {
	nodes, queue := s.machines(loads, seed)
	for joining := range slices.Chunk(nodes, wave) {
		queue = slices.DeleteFunc(queue, func(k int) bool {
			best, highest := -1, math.Inf(-1)
			for i := range joining {
				if score := s.score(&joining[i], k, spread); score > highest {
					best, highest = i, score
				}
			}
			if best < 0 {
				return false
			}
			n := &joining[best]
			Subtract(n.free, s.p.Demands[k].Request, 1)
			n.population[k]++
			if s.p.Demands[k].Kind != 0 {
				n.content = append(n.content, Count{Demand: k, N: 1})
			}
			return true
		})
	}
	left := make([]int, len(s.p.Demands))
	for _, k := range queue {
		left[k]++
	}
	return left
}

// score returns how much the kube-scheduler likes a machine for a piece; minus infinity if there is no room.
func (s *solver) score(n *simulated, k int, spread float64) float64 {
	d := &s.p.Demands[k]
	if !Fits(d.Request, n.free) || !d.uses(n.machine) || d.Kind != 0 && !s.p.Joins(n.machine, n.content, k, 0) {
		return math.Inf(-1)
	}
	cpu := float64(n.free[0]-d.Request[0]) / n.cpu
	memory := float64(n.free[1]-d.Request[1]) / n.memory
	score := (cpu+memory)/2 + 1 - math.Abs(cpu-memory)/2
	if spread > 0 {
		score -= spread * float64(n.population[k])
	}
	return score
}

// uses reports whether a machine may be used by the demand.
func (d *Demand) uses(machine int) bool {
	return slices.ContainsFunc(d.Ways, func(w Way) bool { return w.Machines.Has(machine) })
}
