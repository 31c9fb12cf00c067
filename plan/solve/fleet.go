package solve

import "math"

// slacks are the shares of a fleet's machines that may be kept free for what the kube-scheduler puts elsewhere.
var slacks = [...]float64{0, 0.01, 0.025, 0.05}

const (
	// nearlyFull is the share of a machine's worth from which it counts as full.
	nearlyFull = 0.9
	// alike is how much of a resource, compared with another machine of the same fleet, is the same shape.
	alike = 0.84
)

// fleet buys alike machines with the same mixture on each. The rest that would leave the last one half empty goes to
// smaller ones of the same shape: on others the kube-scheduler would fill one resource and leave the other idle.
func fleet(p *Problem, s *stock, rows []row, size []float64, machine int, slack float64) *packing {
	f := newFiller(p, rows, s, size)
	f.slack = slack
	room := p.Machines[machine].Room
	asked := make([]int64, len(room))
	for k := range p.Demands {
		Subtract(asked, p.Demands[k].Request, -s.left[k])
	}
	prices := make([]float64, len(room))
	for d, amount := range asked {
		if amount > 0 && room[d] > 0 {
			prices[d] = float64(amount) / float64(room[d]) / float64(room[d])
		}
	}
	worth := func(amounts []int64) float64 {
		sum := 0.0
		for d, price := range prices {
			sum += price * float64(max(0, amounts[d]))
		}
		return sum
	}
	for r := range rows {
		f.worth[r] = worth(rows[r].request)
	}
	f.count()
	result := &packing{}
	for s.pieces > 0 && s.affordable(machine) > 0 {
		l, value := f.fill(machine, biases[len(biases)-1], f.fairShare(machine))
		if l != nil && value < nearlyFull*worth(room) && pieces(l) == s.pieces {
			l = f.shared(p, machine)
		}
		if l == nil {
			break
		}
		l.Need = roomy(p, l, slack)
		s.buy(l)
		result.add(*l)
		f.count()
	}
	result.left = s.pieces
	return result
}

// pieces is how many a load has.
func pieces(l *Load) int {
	n := 0
	for _, c := range l.Content {
		n += c.N
	}
	return n
}

// shared is the load of the highest merit among those that carry a mixture of what is left, on machines of a shape like
// that of the fleet.
func (f *filler) shared(p *Problem, fleet int) *Load {
	var best *Load
	highest := 0.0
	for m := range p.Machines {
		if len(f.members[m]) < len(f.rows) || !similar(&p.Machines[m], &p.Machines[fleet]) || f.stock.affordable(m) == 0 {
			continue
		}
		l, value := f.fill(m, biases[len(biases)-1], f.fairShare(m))
		if l == nil {
			continue
		}
		if merit := value / f.cost(m, math.MaxUint64); best == nil || merit > highest {
			best, highest = l, merit
		}
	}
	return best
}

// similar says that a machine has as much memory for each core as another, give or take a little.
func similar(a, b *Machine) bool {
	x := float64(a.Room[1]) * float64(b.Room[0])
	y := float64(b.Room[1]) * float64(a.Room[0])
	return x > y*alike && x < y/alike
}

// roomy is what a machine has to have for a load, if it is to keep a share free and the shape of the machine it was planned
// for: it may not have much less cores or memory than that machine has for the same content.
func roomy(p *Problem, l *Load, slack float64) []int64 {
	room := p.Machines[l.Machine].Room
	need := make([]int64, len(room))
	for _, c := range l.Content {
		Subtract(need, p.Demands[c.Demand].Request, -c.N)
	}
	full := 0.0
	for d, amount := range need {
		if amount > 0 && room[d] > 0 {
			full = max(full, float64(amount)/float64(room[d]))
		}
	}
	for d, amount := range need {
		if amount == 0 {
			continue
		}
		need[d] = max(need[d], min(int64(float64(amount)/(1-slack)), room[d]))
		if d < 2 {
			need[d] = max(need[d], int64(alike*full*float64(room[d])))
		}
	}
	return need
}
