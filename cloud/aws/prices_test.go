package aws

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestParseProduct(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		document string
		currency string
		name     string
		price    float64
		why      string
	}{
		{document: `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"unit":"Hrs","pricePerUnit":{"USD":"0.0960000000"}}}}}}}`,
			currency: "USD", name: "m5.large", price: 0.096, why: "an ordinary document"},
		{document: `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"pricePerUnit":{"CNY":"0.717"}}}}}}}`,
			currency: "CNY", name: "m5.large", price: 0.717, why: "China has its own currency"},
		{document: `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"pricePerUnit":{"CNY":"0.717"}}}}}}}`,
			currency: "USD", name: "m5.large", price: 0, why: "which is not taken for dollars"},
		{document: `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"Reserved":{}}}`,
			currency: "USD", name: "m5.large", price: 0, why: "reserved only"},
		{document: `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"pricePerUnit":{"USD":"0.0"}}}}}}}`,
			currency: "USD", name: "m5.large", price: 0, why: "a price of zero is a placeholder"},
	} {
		name, price, err := parseProduct(tc.document, tc.currency)
		if err != nil || name != tc.name || price != tc.price {
			t.Errorf("parseProduct = %q, %v, %v; want %q, %v (%s)", name, price, err, tc.name, tc.price, tc.why)
		}
	}
	if _, _, err := parseProduct("{", "USD"); err == nil {
		t.Error("parseProduct took a broken document")
	}
}

func TestAddSpotPrice(t *testing.T) {
	t.Parallel()
	prices, latest := map[spotPool]float64{}, map[spotPool]time.Time{}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, entry := range []struct {
		price string
		at    time.Time
	}{{"0.03", at}, {"0.02", at.Add(-time.Hour)}, {"nonsense", at.Add(time.Hour)}} {
		addSpotPrice(prices, latest, &types.SpotPrice{
			InstanceType: "m5.large", AvailabilityZone: aws.String("us-east-1a"),
			SpotPrice: aws.String(entry.price), Timestamp: aws.Time(entry.at),
		})
	}
	if got := prices[spotPool{"m5.large", "us-east-1a"}]; got != 0.03 {
		t.Errorf("the price is %v; want the latest readable one, 0.03", got)
	}
}
