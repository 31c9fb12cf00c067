package solve

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A packing is improved by taking out a few machines, more often those that carry little for their price, and buying
// anew for what was on them, until that has not helped for a long time (Schrimpf et al., "Record breaking optimization
// results using the ruin and recreate principle", 2000). The generator's seed is fixed: the same problem has the same
// solution.

// Limits on the work.
const (
	// maxImproved is the number of machines up to which a packing is improved: in larger ones, each is less than a
	// percent of the price.
	maxImproved = 100
	// improvements is the number of attempts for a small packing. effort limits attempts times the pieces and demands,
	// and breadth limits attempts times the machines to choose from.
	improvements = 5000
	effort       = 600_000
	breadth      = 150_000
	// patience is the number of attempts in a row that may fail.
	patience = 2000
	// improvable is how much more than the program a packing must cost for attempts at improvement to pay.
	improvable = 1.001
	// few is the number of pieces up to which one machine more or less may be a percent of the price. Such packings are
	// always improved, which also saves machines at the same price. Packings other than the cheapest are improved too,
	// each with attempts divided by scouting. Then the best is improved up to often times, each time with another seed,
	// until nothing is left to gain.
	few      = 400
	scouting = 4
	often    = 3
	// ruined is the number of machines taken out at most. In packings of few pieces, one attempt in overhaul takes out
	// up to half of all.
	ruined   = 5
	overhaul = 6
	// detour is the fraction of its price by which a packing may become dearer on the way to a cheaper one, at the
	// start.
	detour = 0.02
)

// improver improves a packing.
type improver struct {
	*solver
	f      *filler
	random *rand.Rand
	// overhauls says that half of the machines may be taken out.
	overhauls bool
	// now is the packing that is changed next.
	now *packing
}

// improvedOften returns the best packing after attempts to improve the cheapest and others: the result depends on the
// starting point.
func (s *solver) improvedOften(cheapest *packing) *packing {
	pieces := newStock(s.p, false).pieces
	attempts := min(improvements, effort/max(1, pieces+len(s.p.Demands)), breadth/len(s.options))
	if s.p.Accepts != nil {
		attempts /= 8 // asking takes longer than anything else
	}
	if s.p.Batch > pieces {
		attempts = attempts * pieces / s.p.Batch
	}
	best := cheapest
	done := func() bool {
		return best.rest.pieces == 0 && s.program.converged && best.total <= s.program.cost()*improvable
	}
	if s.p.Without == Improve || len(best.loads) == 0 || len(best.loads) > maxImproved || attempts < 8 || done() && pieces > few {
		return best
	}
	seed := uint64(0)
	improve := func(start *packing, attempts int) {
		seed++
		if made := s.improved(start, attempts, seed); made.better(best) {
			best = made
		}
	}
	if pieces <= few {
		improve(cheapest, attempts/scouting)
		for part := 1; part <= 4; part *= 2 {
			rest := newStock(s.p, cheapest.rest.shared)
			improve(firstFit(rest, rest.bySize(s.size), s.options[:(len(s.options)+part-1)/part]), attempts/scouting)
		}
	}
	improve(best, attempts)
	for n := 1; n < often && pieces <= few && !done(); n++ {
		improve(best, attempts)
	}
	return best
}

// improved returns the best packing after many attempts.
func (s *solver) improved(best *packing, attempts int, seed uint64) *packing {
	i := &improver{solver: s, f: newFiller(best.rest, s.rows, s.size), random: rand.New(rand.NewPCG(seed, uint64(attempts))),
		overhauls: newStock(s.p, false).pieces <= few, now: best}
	for n, found := 0, 0; n < attempts && n < found+patience && len(i.now.loads) > 0; n++ {
		i.attempt(best.total + detour*best.total*float64(attempts-n)/float64(attempts))
		if i.now.better(best) {
			best, found = i.now, n
		}
	}
	return best
}

// attempt ruins and recreates part of the packing. It keeps the result unless it costs more than most, or leaves more
// pieces.
func (i *improver) attempt(most float64) {
	victims := i.chosen()
	s := i.now.rest.clone()
	next := &packing{rest: s, loads: make([]Load, 0, len(i.now.loads)+ruined)}
	for j, l := range i.now.loads {
		if !slices.Contains(victims, j) {
			next.add(l)
			continue
		}
		s.putBack(l.Content)
		s.spend(l.Machine, -1)
	}
	if s.p.Accepts == nil && i.random.IntN(2) == 0 {
		stuff(s, next.loads, i.size)
	}
	var made *packing
	if i.random.IntN(3) == 0 {
		made = i.greedy(s)
	} else {
		made = firstFit(s, i.shuffled(s), i.some())
	}
	for j := range made.loads {
		next.add(trimmed(s.p, made.loads[j], i.options))
	}
	if left, now := s.pieces, i.now.rest.pieces; left < now || left == now && next.total < most-1e-9 {
		i.now = next
	}
}

// greedy buys, of a sample of machines, the one that carries the most for its price, until nothing is left.
func (i *improver) greedy(s *stock) *packing {
	f := i.f
	f.stock = s
	for r := range f.rows {
		first := f.rows[r].members[0]
		f.worth[r] = i.size[first] * (0.85 + 0.3*i.random.Float64()) / f.scale[first]
	}
	f.count()
	result := &packing{rest: s}
	for s.pieces > 0 {
		var best choice
		for range sampled {
			best.consider(f.fill(i.options[i.random.IntN(len(i.options))], once, nil))
		}
		if best.load == nil {
			break
		}
		f.buy(result, best.load)
	}
	return result
}

// sampled is the number of machines that are filled to find the next one.
const sampled = 12

// chosen returns the indexes of the loads to be ruined.
func (i *improver) chosen() []int {
	loads, random := i.now.loads, i.random
	order, rate := make([]int, len(loads)), make([]float64, len(loads))
	for j := range loads {
		order[j] = j
		for _, c := range loads[j].Content {
			rate[j] += i.size[c.Demand] * float64(c.N)
		}
		rate[j] /= loads[j].Price
		rate[j] *= 1 + 0.4*random.Float64()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(rate[a], rate[b]), cmp.Compare(a, b)) })
	n := min(len(order), 1+random.IntN(ruined))
	if i.overhauls && random.IntN(overhaul) == 0 {
		n = 1 + random.IntN((len(order)+1)/2)
	}
	first := 0
	if random.IntN(2) == 0 {
		first = random.IntN(len(order) - n + 1)
	}
	return order[first : first+n]
}

// stuff puts what is in stock into the free room of some loads, the largest pieces first.
func stuff(s *stock, loads []Load, size []float64) {
	p, order := s.p, s.bySize(size)
	free := make([]int64, len(p.Machines[0].Room))
	for i := range loads {
		l := &loads[i]
		measured, pieces := false, 0
		for _, k := range order {
			d := &p.Demands[k]
			if s.left[k] == 0 || d.Kind != 0 || len(d.Ways) != 1 || d.Most > 0 ||
				!d.Ways[0].Machines.Has(l.Machine) || l.Zones&^d.Ways[0].Zones != 0 {
				continue
			}
			if !measured {
				measured = true
				copy(free, p.Machines[l.Machine].Room)
				for _, c := range l.Content {
					Subtract(free, p.Demands[c.Demand].Request, c.N)
				}
			}
			n := min(s.left[k], Times(d.Request, free), s.share-l.pieces())
			if s.shared && d.Share > 0 {
				n = min(n, d.Share-l.of(k))
			}
			if n <= 0 {
				continue
			}
			if pieces == 0 {
				l.Content = slices.Clone(l.Content)
			}
			Subtract(free, d.Request, n)
			pieces += n
			s.left[k] -= n
			s.pieces -= n
			l.Content = append(l.Content, Count{Demand: k, N: n})
		}
	}
}

// shuffled returns the demands in stock, roughly the large ones before the small ones.
func (i *improver) shuffled(s *stock) []int {
	order := s.bySize(i.size)
	key := make(map[int]float64, len(order))
	for _, k := range order {
		key[k] = i.size[k] * (0.6 + 0.8*i.random.Float64())
	}
	slices.SortStableFunc(order, func(a, b int) int { return -cmp.Compare(key[a], key[b]) })
	return order
}

// some returns all machines, or those up to a random price, so that content is divided differently.
func (i *improver) some() []int {
	if i.random.IntN(3) == 0 {
		return i.options
	}
	return i.options[:1+i.random.IntN(len(i.options))]
}
