package view

import (
	karpv1 "github.com/tenon-sh/tenon/api/karpenter/v1"
	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/plan"
)

// Price is what a node's instance costs per hour, in the region's currency; zero where it is not known. The volumes are not
// included.
type Price struct {
	PerHour float64 `json:"perHour"`
	// OnDemand is what the same instance costs on demand.
	OnDemand float64 `json:"onDemand,omitempty"`
}

// Prices returns the price of a node. It must be cheap: it is asked about every node of every view.
type Prices func(*plan.Node) Price

// PriceList has the prices of offerings.
type PriceList map[cloud.OfferingKey]float64

// NewPriceList returns the prices of what a cloud offers. Reserved offerings count with their nominal price.
func NewPriceList(offered ...[]*cloud.InstanceType) PriceList {
	list := PriceList{}
	for _, types := range offered {
		for _, typ := range types {
			for i := range typ.Offerings {
				o := &typ.Offerings[i]
				list[cloud.OfferingKey{InstanceType: typ.Name, Zone: o.Zone, CapacityType: o.CapacityType}] = o.Price
			}
		}
	}
	return list
}

// Of implements Prices.
func (l PriceList) Of(n *plan.Node) Price {
	if n.InstanceType == "" {
		return Price{}
	}
	key := cloud.OfferingKey{InstanceType: n.InstanceType, Zone: n.Zone, CapacityType: n.CapacityType}
	price := Price{PerHour: l[key], OnDemand: l[key]}
	if n.CapacityType != karpv1.CapacityTypeOnDemand {
		key.CapacityType = karpv1.CapacityTypeOnDemand
		price.OnDemand = l[key]
	}
	return price
}
