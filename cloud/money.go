package cloud

import (
	"fmt"
	"strings"
)

// The currencies in which AWS charges.
const (
	dollars = "USD"
	yuan    = "CNY"
)

// Currency returns the currency of the prices in a region or a zone: CNY in China, USD elsewhere (AWS Price List). Prices of
// different currencies never meet, because a provider serves one region.
func Currency(place string) string {
	if strings.HasPrefix(place, "cn-") {
		return yuan
	}
	return dollars
}

// Money formats an amount in the currency of a region or a zone: "$0.0960" or "CNY 1.0130".
func Money(place string, amount float64) string {
	if Currency(place) == yuan {
		return fmt.Sprintf("%s %.4f", yuan, amount)
	}
	return fmt.Sprintf("$%.4f", amount)
}
