package place

import (
	"slices"

	"github.com/tenon-sh/tenon/plan/market"
	"github.com/tenon-sh/tenon/plan/model"
)

// intoSpareRoom puts pods that have no other place onto machines with devices that were bought for other pods. Nothing
// is bought for them.
func (d *Distribution) intoSpareRoom(podGroups []*PodGroup, planned []*PlannedNode) {
	if !slices.ContainsFunc(planned, func(b *PlannedNode) bool { return d.Market.Machines[b.Machine].Devices }) {
		return
	}
	bought := market.NewBitset(len(d.Market.Machines))
	for _, b := range planned {
		bought.Set(b.Machine)
	}
	for _, it := range podGroups {
		if len(it.Pods) == 0 || it.Refusal != "" || model.AsksDevice(it.Class) {
			continue
		}
		before, unmet := it.shape, it.Unmet
		// Offer the pod group all machines that would do, including odd ones.
		wide := it.shapeAt(it.Step)
		wide.Request, wide.most = it.Request, it.most
		it.shape, it.barred = wide, nil
		offer(d.Market, it)
		d.Place(it)
		topUp(d.Market, planned, DemandsOf(d.Market, d.Chunks, bought))
		for _, l := range d.Chunks {
			d.giveBack(l)
		}
		d.Chunks, it.shape, it.Unmet = nil, before, unmet
	}
}
