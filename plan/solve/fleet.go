package solve

// slacks are the shares of a fleet's machines that may be kept free for what the kube-scheduler puts elsewhere.
var slacks = [...]float64{0, 0.025}

const (
	// nearlyFull is the share of a machine's worth from which it counts as full.
	nearlyFull = 0.9
	// alike is how much of a resource, compared with another machine of the same fleet, is the same shape.
	alike = 0.84
)

// fleet buys alike machines with the same mixture on each. The rest that would leave the last one half empty goes to
// smaller ones of the same shape: on others the kube-scheduler would fill one resource and leave the other idle.
func (s *solver) fleet(rest *stock, machine int, slack float64) *packing {
	f := newFiller(rest, s.rows, s.size)
	f.slack = slack
	room := s.p.Machines[machine].Room
	prices := make([]float64, len(room))
	for d, amount := range rest.asked() {
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
	for r := range f.rows {
		f.worth[r] = worth(f.rows[r].request)
	}
	f.count()
	result := &packing{rest: rest}
	for rest.pieces > 0 {
		l, merit := f.fill(machine, dear, f.fairShare(machine))
		if l != nil && merit*l.Price < nearlyFull*worth(room) && l.pieces() == rest.pieces {
			l = f.shared(machine)
		}
		if l == nil {
			break
		}
		f.buy(result, l)
	}
	return result
}

// shared is the load of the highest merit among those that carry a mixture of what is left, on machines of a shape like
// that of the fleet.
func (f *filler) shared(fleet int) *Load {
	var best choice
	for m := range f.p.Machines {
		if len(f.members[m]) == len(f.rows) && similar(&f.p.Machines[m], &f.p.Machines[fleet]) {
			best.consider(f.fill(m, dear, f.fairShare(m)))
		}
	}
	return best.load
}

// similar says that a machine has as much memory for each core as another, give or take a little.
func similar(a, b *Machine) bool {
	x := float64(a.Room[1]) * float64(b.Room[0])
	y := float64(b.Room[1]) * float64(a.Room[0])
	return x > y*alike && x < y/alike
}
