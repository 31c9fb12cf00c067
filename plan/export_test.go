package plan

// LeanPrice is what the pods that wait would cost were every pod to go where it is planned.
func LeanPrice(in Input) float64 {
	items := itemsOf(waiting(in.Snapshot))
	m := marketFor(&in, items)
	all := newBitset(len(m.machines))
	for i := range m.machines {
		all.set(i)
	}
	for _, it := range items {
		m.weigh(it)
	}
	price := 0.0
	stocks := m.preferred(items, all)
	for c := range stocks {
		for _, group := range m.components(stocks[c]) {
			b := newBuyer(m, group)
			left := make([]int, len(group))
			for k := range group {
				left[k] = group[k].left
			}
			price += b.offer(0, left, b.lean).price
		}
	}
	return price
}
