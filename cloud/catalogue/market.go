package catalogue

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The market is not random: a pool's spot price and depth follow from its name, the market's seed and the hour, so that
// two runs, and two simulators, agree.
//
// Spot prices are correlated as in reality. Demand is for a family in a zone, so the family's sizes cost nearly the same
// share of their on-demand prices. The family's price in other zones, and the other prices in the zone, move with it a
// little. Shares drift over hours and days. Some families are scarce in a zone for a while, and then cost as much as
// on-demand, which is nearly always a ceiling. The market's first hour begins with the server, and prices stay constant
// within an hour, so that a test of minutes sees one price per pool.

// Market determines spot prices.
type Market struct {
	seed   string
	opened time.Time
}

// NewMarket opens a market. Markets with the same seed have the same prices, hour by hour.
func NewMarket(seed uint64, opened time.Time) Market {
	m := Market{opened: opened}
	if seed != 0 {
		m.seed = strconv.FormatUint(seed, 10)
	}
	return m
}

// hour returns the number of full hours since the market opened.
func (m Market) hour(at time.Time) int { return max(0, int(at.Sub(m.opened)/time.Hour)) }

// Since returns when the prices at an instant came into force.
func (m Market) Since(at time.Time) time.Time {
	return m.opened.Add(time.Duration(m.hour(at)) * time.Hour)
}

// Unit maps a text to [0,1), uniformly.
func Unit(parts ...string) float64 {
	h := fnv.New64a()
	h.Write([]byte(strings.Join(parts, "\x00")))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd // the finalizer of MurmurHash3: with FNV alone, similar names have similar values
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// The parts of a spot price, as shares of the on-demand price.
const (
	// Families cost between minShare and minShare+familyRange of on-demand on average over zones and time.
	minShare, familyRange = 0.28, 0.27
	// A family costs up to zoneRange more in one zone than in another, and up to driftRange more in one week than in another.
	zoneRange, driftRange = 0.12, 0.14
	// All prices in a zone move together by up to tideRange.
	tideRange = 0.05
	// Sizes differ by up to sizeRange, in all zones.
	sizeRange = 0.05
	// scarcity is the share of families and zones that are scarce at any time; their prices then rise up to dearest.
	scarcity, dearest = 0.05, 1.05
	// driftHours and scarceHours are the hours it takes to move from one level to the next.
	driftHours, scarceHours = 30, 70
)

// SpotPrice returns a pool's price per hour, rounded to a hundredth of a cent.
func (m Market) SpotPrice(t *InstanceType, zone string, at time.Time) float64 {
	family, _, _ := strings.Cut(t.Name, ".")
	hour := m.hour(at)
	share := minShare + familyRange*m.unit("family", family) + zoneRange*(m.unit("zone", family, zone)-0.5) +
		driftRange*(m.drift(driftHours, hour, "drift", family, zone)-0.5) + tideRange*(m.drift(driftHours, hour, "tide", zone)-0.5) +
		sizeRange*(m.unit("size", t.Name)-0.5)
	if short := m.drift(scarceHours, hour, "scarce", family, zone); short > 1-scarcity {
		share += (dearest - share) * min(1, 2*(short-1+scarcity)/scarcity)
	}
	return math.Round(t.PriceUSD*share*1e4) / 1e4
}

func (m Market) unit(parts ...string) float64 { return Unit(append(parts, m.seed)...) }

// drift returns a value that moves smoothly within [0,1), from one level to the next in the given number of hours.
// Different names change levels at different times.
func (m Market) drift(hours, hour int, parts ...string) float64 {
	at := float64(hour)/float64(hours) + m.unit(append(parts, "phase")...)
	from, part := math.Modf(at)
	level := func(n float64) float64 {
		return m.unit(append(slices.Clone(parts), strconv.Itoa(int(n)))...)
	}
	part = part * part * (3 - 2*part) // smoothstep
	return level(from)*(1-part) + level(from+1)*part
}
