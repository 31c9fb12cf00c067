package plan

// LowerBound is what no plan for the pods that wait can undercut, in US dollars per hour, given that pods take the
// capacity types they would be planned for and existing nodes take none of them: the worth of all pods, were machines
// divisible (see prices.go). It is what plans are measured against.
func LowerBound(in Input) float64 {
	items := itemsOf(waiting(in.Snapshot))
	m := marketFor(&in, items)
	all := newBitset(len(m.machines))
	for i := range m.machines {
		all.set(i)
	}
	for _, it := range items {
		m.weigh(it)
	}
	bound := 0.0
	stocks := m.preferred(items, all)
	for c := range stocks {
		for _, group := range m.components(stocks[c]) {
			bound += m.boundOf(group)
		}
	}
	return bound
}

// boundOf is the lower bound for items that share machines. All are first valued as if each could use every machine;
// then each set of items that is confined to fewer machines is valued higher, for as long as no machine could carry
// more than its price.
func (m *market) boundOf(group []stocked) float64 {
	demand := make([]int64, m.dims.count())
	reach := newBitset(len(m.machines))
	for _, it := range group {
		take(demand, it.request, -it.left)
		reach.unite(it.stock)
	}
	var offers []offer
	for i := range reach.all {
		offers = append(offers, offer{m.machines[i].usable, m.machines[i].price})
	}
	lambda := worths(offers, demand)
	markup := make([]float64, len(group))
	for k := range markup {
		markup[k] = 1
	}
	for k, it := range group {
		// A machine's load is worth at most its size valued at the highest markup of those who may use it.
		room := 1e9
		for i := range it.stock.all {
			if load := worth(lambda, m.machines[i].usable); load > 0 {
				room = min(room, m.machines[i].price/load)
			}
		}
		markup[k] = max(1, room)
	}
	bound := 0.0
	for k, it := range group {
		bound += markup[k] * worth(lambda, it.request) * float64(it.left)
	}
	return bound
}
