package aws

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/aws/calls"
)

// refreshCatalogue is how long instance types, offerings and prices are kept before they are refreshed.
const refreshCatalogue = 12 * time.Hour

// pricePatience is how long planning waits for the first price list. Pricing has endpoints in a few regions only; where
// it cannot be reached, planning uses the built-in table.
const pricePatience = 5 * time.Second

// linux is the product whose spot prices are read.
const linux = "Linux/UNIX"

// spotPool is the pool that a spot price applies to.
type spotPool struct{ instanceType, zone string }

// pricingRegion returns the region whose Pricing API serves a region. The API exists in four of them.
func pricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	default:
		return "us-east-1"
	}
}

// hasPricing reports whether a region's credentials work for a Pricing API. Of AWS's partitions, only the commercial
// one and China have one (AWS Billing User Guide, "AWS Price List Query API endpoints").
func hasPricing(region string) bool {
	for _, prefix := range []string{"us-gov-", "us-iso", "eu-iso", "eusc-"} {
		if strings.HasPrefix(region, prefix) {
			return false
		}
	}
	return true
}

// loadOnDemandPrices reads the prices of the region's Linux instances: the shared ones, and bare metal, which the
// price list counts as dedicated.
func loadOnDemandPrices(ctx context.Context, api *pricing.Client, region string) (map[string]float64, error) {
	prices := make(map[string]float64, 1000)
	for _, kind := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		pages := pricing.NewGetProductsPaginator(api, &pricing.GetProductsInput{
			ServiceCode: aws.String("AmazonEC2"),
			Filters: []pricingtypes.Filter{
				term("regionCode", region),
				term("operatingSystem", "Linux"),
				term("preInstalledSw", "NA"),
				term("capacitystatus", "Used"),
				term("marketoption", "OnDemand"),
				term("tenancy", kind[0]),
				term("productFamily", kind[1]),
			},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, classify("GetProducts", err)
			}
			for _, document := range page.PriceList {
				name, price, err := parseProduct(document, cloud.Currency(region))
				if err != nil {
					return nil, err
				}
				if price > 0 {
					prices[name] = price
				}
			}
		}
	}
	if len(prices) == 0 {
		return nil, fmt.Errorf("the price list of %s is empty", region)
	}
	return prices, nil
}

func term(field, value string) pricingtypes.Filter {
	return pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
}

// product is the part of a price list document that says what an hour costs.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// parseProduct returns the instance type of a price list document and its price per hour in a currency, 0 if the
// document has none.
func parseProduct(document, currency string) (string, float64, error) {
	var p product
	if err := json.Unmarshal([]byte(document), &p); err != nil {
		return "", 0, fmt.Errorf("price list document: %w", err)
	}
	for _, offer := range p.Terms.OnDemand {
		for _, dimension := range offer.PriceDimensions {
			amount, ok := dimension.PricePerUnit[currency]
			if !ok {
				continue
			}
			price, err := strconv.ParseFloat(amount, 64)
			if err != nil {
				return "", 0, fmt.Errorf("price of %s: %w", p.Product.Attributes.InstanceType, err)
			}
			if price > 0 {
				return p.Product.Attributes.InstanceType, price, nil
			}
		}
	}
	return p.Product.Attributes.InstanceType, 0, nil
}

// loadSpotPrices reads the current spot price of every pool.
func loadSpotPrices(ctx context.Context, api *calls.EC2, now time.Time) (map[spotPool]float64, error) {
	prices := make(map[spotPool]float64, 4000)
	latest := make(map[spotPool]time.Time, 4000)
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(api.DescribeSpotPriceHistory, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{linux, linux + " (Amazon VPC)"},
		StartTime:           aws.Time(now),
		MaxResults:          aws.Int32(1000),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeSpotPriceHistory", err)
		}
		for i := range page.SpotPriceHistory {
			addSpotPrice(prices, latest, &page.SpotPriceHistory[i])
		}
	}
	return prices, nil
}

// addSpotPrice records a price unless a later one of the pool is known.
func addSpotPrice(prices map[spotPool]float64, latest map[spotPool]time.Time, entry *ec2types.SpotPrice) {
	price, err := strconv.ParseFloat(aws.ToString(entry.SpotPrice), 64)
	if err != nil || price <= 0 {
		return
	}
	pool := spotPool{string(entry.InstanceType), aws.ToString(entry.AvailabilityZone)}
	if at := aws.ToTime(entry.Timestamp); !at.Before(latest[pool]) {
		prices[pool], latest[pool] = price, at
	}
}
