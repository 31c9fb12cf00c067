package ec2sim

import (
	"hash/fnv"
	"math"
	"strings"
)

// The market is not drawn at random: a pool's spot price and depth follow from its name alone, so that two runs, and two
// simulators, agree.

// pool is where capacity comes from: one instance type in one zone, bought one way ("on-demand" or "spot").
type pool struct {
	instanceType string
	zone         string
	capacityType string
}

// unit maps a text to [0,1), evenly.
func unit(parts ...string) float64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(parts, "\x00")))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // the finalizer of MurmurHash3: FNV alone leaves near names near
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// spotPrice is between 30 and 70 % of the on-demand price, in steps of a hundredth of a cent.
func spotPrice(t *InstanceType, zone string) float64 {
	return math.Round(t.PriceUSD*(0.3+0.4*unit("price", t.Name, zone))*1e4) / 1e4
}

// spotDepth says how much spare capacity a pool has, for the strategies that look at it.
func spotDepth(t *InstanceType, zone string) float64 { return unit("depth", t.Name, zone) }

// offered says whether a zone has the type at all. General, compute and memory families are everywhere; half of the
// others are missing in one zone, as accelerated and storage families are in life.
func (a *account) offered(t *InstanceType, zoneName string) bool {
	family, _, _ := strings.Cut(t.Name, ".")
	switch family[0] {
	case 'm', 'c', 'r', 't':
		if !strings.HasPrefix(family, "trn") {
			return true
		}
	}
	missing := int(unit("missing", family) * 2 * float64(len(a.zones)))
	return len(a.zones) < 2 || missing >= len(a.zones) || a.zones[missing].name != zoneName
}

func (p pool) price(t *InstanceType) float64 {
	if p.capacityType == capacitySpot {
		return spotPrice(t, p.zone)
	}
	return t.PriceUSD
}

const (
	capacitySpot     = "spot"
	capacityOnDemand = "on-demand"
)
