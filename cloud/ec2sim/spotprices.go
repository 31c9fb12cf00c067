package ec2sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// spotPrices provides the prices of instances, and handles DescribeSpotPriceHistory.
type spotPrices struct {
	account   *account
	catalogue *Catalogue
	market    catalogue.Market
}

type spotPriceXML struct {
	Type    string `xml:"instanceType"`
	Product string `xml:"productDescription"`
	Price   string `xml:"spotPrice"`
	At      string `xml:"timestamp"`
	Zone    string `xml:"availabilityZone"`
	ZoneID  string `xml:"availabilityZoneId"`
}

type describeSpotPricesXML struct {
	Prices []spotPriceXML `xml:"spotPriceHistorySet>item"`
	Next   string         `xml:"nextToken"`
}

// spotPricesPerPage is the page size if the caller does not set one.
const spotPricesPerPage = 1000

// describe handles DescribeSpotPriceHistory. It returns only the current price of each pool.
func (sp *spotPrices) describe(c *call) (any, error) {
	types, products := c.form.strings("InstanceType"), c.form.strings("ProductDescription")
	zoneName := c.form.str("AvailabilityZone")
	_, perDollar := sp.account.currency()
	var all []spotPriceXML
	for _, t := range sp.catalogue.Types() {
		if !t.Supports(capacitySpot) || t.PriceUSD == 0 || len(types) > 0 && !slices.Contains(types, t.Name) {
			continue
		}
		for _, z := range sp.account.zones {
			if z.Local != "" || !sp.account.offered(t, z.Name) || zoneName != "" && zoneName != z.Name {
				continue
			}
			price := strconv.FormatFloat(perDollar*sp.market.SpotPrice(t, z.Name, c.at), 'f', 6, 64)
			for _, product := range []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"} {
				if len(products) == 0 && product == "Linux/UNIX" || slices.Contains(products, product) {
					all = append(all, spotPriceXML{t.Name, product, price, timestamp(sp.market.Since(c.at)), z.Name, z.ID})
				}
			}
		}
	}
	all, err := sift(all, parseFilters(c.form), func(p spotPriceXML) attributes {
		return oneOf(map[string]string{
			"instance-type": p.Type, "availability-zone": p.Zone, "product-description": p.Product, "spot-price": p.Price, "timestamp": p.At,
		})
	})
	if err != nil {
		return nil, err
	}
	// EC2 has no limit on the page size of this call, unlike for others: Karpenter requests 2,000 prices at once.
	size, err := c.form.integer("MaxResults", spotPricesPerPage)
	if err != nil {
		return nil, err
	}
	page, next, err := pageOf(c.form, all, 1, max(size, spotPricesPerPage), func(p spotPriceXML) string { return p.Type + "\x00" + p.Zone + "\x00" + p.Product })
	return describeSpotPricesXML{page, next}, err
}

// hourly returns the price of an instance per hour at an instant.
func (sp *spotPrices) hourly(i *instance, at time.Time) float64 {
	if t := sp.catalogue.Type(i.Type); t != nil {
		return i.pool().price(sp.market, t, at)
	}
	return 0
}
