package ec2sim

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The market is not drawn at random: a pool's spot price and depth follow from its name, the market's seed and the hour, so
// that two runs, and two simulators, agree.
//
// Spot prices hang together as they do in life. What is asked for is a family in a zone, so its sizes cost nearly the same
// share of their on-demand prices; what the family costs elsewhere, and what else the zone sells, moves with it a little.
// Shares drift over hours and days. Some families are short in a zone for a while, and then cost as much as on-demand,
// which is a ceiling nearly always. The market's first hour begins with the server, and prices stay within an hour, so
// that a test of minutes sees one price for each pool.

// market is where a server's prices come from.
type market struct {
	seed   string
	opened time.Time
}

func newMarket(seed uint64, opened time.Time) market {
	m := market{opened: opened}
	if seed != 0 {
		m.seed = strconv.FormatUint(seed, 10)
	}
	return m
}

// hour is how many hours the market has been open.
func (m market) hour(at time.Time) int { return max(0, int(at.Sub(m.opened)/time.Hour)) }

// since is when the prices of a moment began to hold.
func (m market) since(at time.Time) time.Time {
	return m.opened.Add(time.Duration(m.hour(at)) * time.Hour)
}

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

// The parts of a spot price, as shares of the on-demand price.
const (
	// Families cost between minShare and minShare+familyRange of on-demand on average over zones and time.
	minShare, familyRange = 0.28, 0.27
	// A family costs up to zoneRange more in one zone than in another, and up to driftRange more in one week than in another.
	zoneRange, driftRange = 0.12, 0.14
	// All that a zone sells moves together by up to tideRange.
	tideRange = 0.05
	// Sizes differ by up to sizeRange, wherever they are sold.
	sizeRange = 0.05
	// scarcity is the part of all families and zones that are short at any time; prices then come up to dearest.
	scarcity, dearest = 0.05, 1.05
	// driftHours and scarceHours are how long it takes to move from one level to the next.
	driftHours, scarceHours = 30, 70
)

// spotPrice is a pool's price per hour, in steps of a hundredth of a cent.
func (m market) spotPrice(t *InstanceType, zone string, at time.Time) float64 {
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

func (m market) unit(parts ...string) float64 { return unit(append(parts, m.seed)...) }

// drift moves within [0,1), from one level to another in so many hours. Different names move at different times.
func (m market) drift(hours, hour int, parts ...string) float64 {
	at := float64(hour)/float64(hours) + m.unit(append(parts, "phase")...)
	from, part := math.Modf(at)
	level := func(n float64) float64 {
		return m.unit(append(slices.Clone(parts), strconv.Itoa(int(n)))...)
	}
	part = part * part * (3 - 2*part) // no corners
	return level(from)*(1-part) + level(from+1)*part
}

// spotDepth says how much spare capacity a pool has, for the strategies that look at it.
func spotDepth(t *InstanceType, zone string) float64 { return unit("depth", t.Name, zone) }

// offered says whether a zone has the type at all. General, compute and memory families are everywhere; half of the
// others are missing in one zone, as accelerated and storage families are in life.
func (a *account) offered(t *InstanceType, zoneName string) bool {
	family, _, _ := strings.Cut(t.Name, ".")
	regular := make([]zone, 0, len(a.zones))
	for _, z := range a.zones {
		if z.name == zoneName && z.local != "" {
			return slices.Contains(localFamilies, family)
		}
		if z.local == "" {
			regular = append(regular, z)
		}
	}
	switch family[0] {
	case 'm', 'c', 'r', 't':
		if !strings.HasPrefix(family, "trn") {
			return true
		}
	}
	missing := int(unit("missing", family) * 2 * float64(len(regular)))
	return len(regular) < 2 || missing >= len(regular) || regular[missing].name != zoneName
}

// price is what an instance of the pool costs per hour.
func (m market) price(p pool, t *InstanceType, at time.Time) float64 {
	if p.capacityType == capacitySpot {
		return m.spotPrice(t, p.zone, at)
	}
	return t.PriceUSD
}

const (
	capacitySpot     = "spot"
	capacityOnDemand = "on-demand"
)

// formatUSD prints a price with as many digits as it has.
func formatUSD(usd float64) string { return strconv.FormatFloat(usd, 'f', -1, 64) }
