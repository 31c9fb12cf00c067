package solve

// packing is machines that are bought, and what could not be bought for.
type packing struct {
	loads []Load
	// rest is what is left: pieces that have no machine.
	rest *stock
	// price is the sum of the loads' prices. total is the expected final cost.
	price, total float64
}

// add adds a load that is bought.
func (p *packing) add(l Load) {
	p.loads = append(p.loads, l)
	p.price += l.Price
	p.total = p.price
}

// better reports whether a packing serves more pieces, or as many at a lower total, or at the same total on fewer
// machines.
func (p *packing) better(other *packing) bool {
	if p.rest.pieces != other.rest.pieces {
		return p.rest.pieces < other.rest.pieces
	}
	if p.total < other.total-1e-9 || p.total > other.total+1e-9 {
		return p.total < other.total
	}
	return len(p.loads) < len(other.loads)
}
