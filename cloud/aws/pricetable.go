package aws

import (
	"bufio"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// priceTable is the built-in table of on-demand prices. A worker that cannot reach the Pricing API, or has not yet,
// still has to tell a cheap type from an expensive one.
//
//go:embed prices.txt
var priceTable string

// familyPrice is one line of the table.
type familyPrice struct {
	large      float64
	exceptions map[string]float64
}

// staticPrices parses the built-in table once.
var staticPrices = sync.OnceValues(func() (map[string]familyPrice, error) { return parsePriceTable(priceTable) })

// parsePriceTable reads lines of the form
//
//	FAMILY PRICE-OF-LARGE [SIZE=PRICE ...]
//
// Nearly every size of a family costs its large size times the ratio of their vCPUs; the others are spelled out.
func parsePriceTable(table string) (map[string]familyPrice, error) {
	families := make(map[string]familyPrice, 200)
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

// yuanPerDollar is what a machine costs in yuan in the China regions if it costs one dollar in us-east-1: c5.large
// costs 0.739 in cn-north-1 and 0.085 in us-east-1 (https://www.amazonaws.cn/en/ec2/pricing). It is not an exchange
// rate.
const yuanPerDollar = 8.7

// inCurrency converts a built-in price, which is one of us-east-1, into the currency of a region, so that prices in
// different currencies are never compared.
func inCurrency(region string, dollars float64) float64 {
	if inChina(region) {
		return dollars * yuanPerDollar
	}
	return dollars
}

// staticPrice returns the price the built-in table has for an instance type, in US dollars.
func staticPrice(instanceType string) (float64, bool) {
	families, err := staticPrices()
	if err != nil {
		return 0, false
	}
	family, size, _ := strings.Cut(instanceType, ".")
	f, ok := families[family]
	if !ok {
		return 0, false
	}
	return f.of(size)
}

// BuiltinPrice returns the on-demand price per hour that is assumed for an instance type before the Pricing API has
// answered: that of us-east-1, in US dollars.
func BuiltinPrice(instanceType string) (float64, bool) { return staticPrice(instanceType) }
