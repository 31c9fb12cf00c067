package aws

import (
	"bufio"
	"embed"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/tenon-sh/tenon/cloud"
)

// priceTables are the built-in tables of on-demand prices, each in the currency of its region. A worker that cannot reach
// the Pricing API, or has not yet, still has to tell a cheap type from an expensive one, and GovCloud has no Pricing API.
// prices.txt is that of us-east-1; tools/tables writes the others.
//
//go:embed prices.txt prices-*.txt
var priceTables embed.FS

// The regions with tables of their own. All others use that of us-east-1, because what matters most is how prices compare
// with each other.
const (
	baseRegion    = "us-east-1"
	beijingRegion = "cn-north-1"
)

// familyPrice is one line of the table.
type familyPrice struct {
	large      float64
	exceptions map[string]float64
}

// regionPrices are the families of one region's table.
type regionPrices map[string]familyPrice

// staticPrices parses the built-in tables once.
var staticPrices = sync.OnceValues(func() (map[string]regionPrices, error) {
	tables := map[string]regionPrices{}
	for region, file := range map[string]string{
		baseRegion: "prices.txt", beijingRegion: "prices-cn-north-1.txt",
		"us-gov-east-1": "prices-us-gov-east-1.txt", "us-gov-west-1": "prices-us-gov-west-1.txt",
	} {
		text, err := priceTables.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if tables[region], err = parsePriceTable(string(text)); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return tables, nil
})

// parsePriceTable reads lines of the form
//
//	FAMILY PRICE-OF-LARGE [SIZE=PRICE ...]
//
// Nearly every size of a family costs its large size times the ratio of their vCPUs; the others are spelled out.
func parsePriceTable(table string) (regionPrices, error) {
	families := make(regionPrices, 200)
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) < 2 {
			return nil, fmt.Errorf("price table: %q has no price", lines.Text())
		}
		large, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return nil, fmt.Errorf("price table: %w", err)
		}
		f := familyPrice{large: large, exceptions: make(map[string]float64, len(words)-2)}
		for _, word := range words[2:] {
			size, price, _ := strings.Cut(word, "=")
			if f.exceptions[size], err = strconv.ParseFloat(price, 64); err != nil {
				return nil, fmt.Errorf("price table: %w", err)
			}
		}
		families[words[0]] = f
	}
	return families, lines.Err()
}

// of returns the price of a size of the family, and false if the table does not determine it.
func (f familyPrice) of(size string) (float64, bool) {
	if price, ok := f.exceptions[size]; ok {
		return price, true
	}
	n, ok := largesIn(size)
	return f.large * n, ok
}

// largesIn returns a size as a multiple of the large size: 2 for xlarge, 8 for 4xlarge, a half for medium.
func largesIn(size string) (float64, bool) {
	switch size {
	case "nano":
		return 1.0 / 16, true
	case "micro":
		return 1.0 / 8, true
	case "small":
		return 1.0 / 4, true
	case "medium":
		return 1.0 / 2, true
	case "large":
		return 1, true
	case "xlarge":
		return 2, true
	}
	n, err := strconv.Atoi(strings.TrimSuffix(size, "xlarge"))
	if err != nil || !strings.HasSuffix(size, "xlarge") {
		return 0, false
	}
	return 2 * float64(n), true
}

// of returns the price of an instance type in the region, and false if the table does not determine it.
func (r regionPrices) of(instanceType string) (float64, bool) {
	family, size, _ := strings.Cut(instanceType, ".")
	f, ok := r[family]
	if !ok {
		return 0, false
	}
	return f.of(size)
}

// priceLevel is what a machine or a volume costs in a region, in the region's currency, if it costs one dollar in
// us-east-1. It is not an exchange rate. c5.large costs 0.739 yuan in cn-north-1 (https://www.amazonaws.cn/en/ec2/pricing),
// 0.102 dollars in us-gov-west-1 and 0.085 dollars in us-east-1; m5.large 1.013, 0.121 and 0.096.
func priceLevel(region string) float64 {
	switch {
	case cloud.Currency(region) == cloud.Currency(beijingRegion):
		return 8.7
	case strings.HasPrefix(region, "us-gov-"):
		return 1.25
	}
	return 1
}

// staticPrice returns what the built-in tables have for an instance type in a region, in the region's currency. A type that
// the region's own table lacks is priced by that of us-east-1 and the region's price level, so that prices in different
// currencies, or of different levels, are never compared.
func staticPrice(region, instanceType string) (float64, bool) {
	tables, err := staticPrices()
	if err != nil {
		return 0, false
	}
	own := region
	if cloud.Currency(region) == cloud.Currency(beijingRegion) {
		own = beijingRegion
	}
	if price, ok := tables[own].of(instanceType); ok {
		return price, true
	}
	price, ok := tables[baseRegion].of(instanceType)
	return price * priceLevel(region), ok
}

// BuiltinPrice returns the on-demand price per hour that is assumed for an instance type before the Pricing API has
// answered: that of us-east-1, in US dollars.
func BuiltinPrice(instanceType string) (float64, bool) { return staticPrice(baseRegion, instanceType) }
