package catalogue

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// Prices within a family and zone are correlated, those of different families hardly are; nearly all are below on-demand,
// and they change slowly.
func TestSpotPricesHangTogether(t *testing.T) {
	t.Parallel()
	catalogue, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	opened := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	m := NewMarket(0, opened)
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	byFamily := map[string][]float64{}
	var all, moves []float64
	above := 0
	for _, typ := range catalogue.types {
		if !typ.Supports("spot") || typ.PriceUSD == 0 {
			continue
		}
		family, _, _ := strings.Cut(typ.Name, ".")
		for _, zone := range zones {
			share := m.SpotPrice(typ, zone, opened) / typ.PriceUSD
			if share < 0.1 || share > 1.06 {
				t.Errorf("%s in %s costs %.2f times on-demand", typ.Name, zone, share)
			}
			if share > 1 {
				above++
			}
			all = append(all, share)
			byFamily[family+zone] = append(byFamily[family+zone], share)
			moves = append(moves, math.Abs(m.SpotPrice(typ, zone, opened.Add(2*time.Hour))/typ.PriceUSD-share))
			if m.SpotPrice(typ, zone, opened.Add(59*time.Minute)) != m.SpotPrice(typ, zone, opened) {
				t.Errorf("%s in %s changes its price within the hour", typ.Name, zone)
			}
		}
	}
	var within []float64
	for _, shares := range byFamily {
		within = append(within, slices.Max(shares)-slices.Min(shares))
	}
	if widest := slices.Max(within); widest > 0.1 {
		t.Errorf("sizes of a family differ by %.2f of on-demand in one zone", widest)
	}
	if slices.Sort(all); all[len(all)*9/10]-all[len(all)/10] < 0.15 {
		t.Errorf("nine tenths of all shares are within %.2f and %.2f", all[len(all)/10], all[len(all)*9/10])
	}
	if above > len(all)/20 || slices.Max(all) < 0.9 {
		t.Errorf("%d of %d pools cost more than on-demand, the dearest %.2f times", above, len(all), slices.Max(all))
	}
	if fastest := slices.Max(moves); fastest > 0.2 || fastest == 0 {
		t.Errorf("a price moves by %.2f of on-demand in two hours", fastest)
	}
}

// Markets with the same seed are equal, those with different seeds differ.
func TestMarketsFollowFromTheirSeeds(t *testing.T) {
	t.Parallel()
	typ := &InstanceType{Name: "m5.large", PriceUSD: 1}
	price := func(seed uint64, opened time.Time) float64 {
		return NewMarket(seed, opened).SpotPrice(typ, "us-east-1a", opened.Add(5*time.Hour))
	}
	then := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if price(1, then) != price(1, then.Add(time.Hour)) {
		t.Error("a market depends on when it was opened")
	}
	if price(1, then) == price(2, then) {
		t.Error("two seeds draw one market")
	}
}
