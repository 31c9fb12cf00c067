package solve

// slacks are the shares of a fleet's machines that are kept free for pods that the kube-scheduler puts elsewhere.
var slacks = [...]float64{0, 0.025}

// fleet buys machines of one type with the same mixture on each.
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
		l, _ := f.fill(machine, dear, f.fairShare(machine))
		if l == nil {
			break
		}
		f.buy(result, l)
	}
	return result
}
