package plan

import "math"

// intoSpareRoom puts pods that have nowhere else to go onto machines that are bought for others and that they would not be
// given: those with devices that they do not ask for. Nothing is bought for them.
func (d *distribution) intoSpareRoom(items []*item, bins []*bin) {
	odd := false
	for _, b := range bins {
		odd = odd || d.m.machines[b.machine].devices
	}
	if !odd {
		return
	}
	for _, it := range items {
		if len(it.pods) == 0 || it.refusal != "" || asksDevice(it.class) {
			continue
		}
		before, unmet := it.shape, it.unmet
		d.m.widen(it)
		d.place(it)
		var lots []supplied
		for _, l := range d.lots {
			if !l.bundle {
				lots = append(lots, supplied{lot: l, stock: l.allowed, quota: math.MaxInt})
			}
		}
		topUp(d.m, bins, d.m.demandsOf(lots))
		for _, l := range d.lots {
			d.giveBack(l)
		}
		d.lots, it.shape, it.unmet = nil, before, unmet
	}
}

// widen gives an item all machines that would do, the odd ones too.
func (m *market) widen(it *item) {
	wide := *it.shape
	wide.known, wide.barred, wide.variants = &knowledge{}, nil, nil
	it.shape = &wide
	m.offer(it)
	wide.known.weighed = true
}
