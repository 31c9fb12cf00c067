package ec2sim

import (
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// InstanceType and Catalogue are what the account sells.
type (
	InstanceType = catalogue.InstanceType
	Catalogue    = catalogue.Catalogue
)

// pool is a source of capacity: an instance type in a zone with a capacity type ("on-demand" or "spot").
type pool struct {
	instanceType string
	zone         string
	capacityType string
}

const (
	capacitySpot     = "spot"
	capacityOnDemand = "on-demand"
)

// unit maps a text to [0,1), uniformly.
func unit(parts ...string) float64 { return catalogue.Unit(parts...) }

// spotDepth returns how much spare capacity a pool has, for the allocation strategies that consider it.
func spotDepth(t *InstanceType, zone string) float64 { return unit("depth", t.Name, zone) }

// price returns the price per hour of an instance of the pool.
func (p pool) price(m catalogue.Market, t *InstanceType, at time.Time) float64 {
	if p.capacityType == capacitySpot {
		return m.SpotPrice(t, p.zone, at)
	}
	return t.PriceUSD
}

// formatUSD formats a price with all of its digits.
func formatUSD(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
