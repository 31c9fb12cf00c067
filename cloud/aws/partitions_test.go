package aws_test

import (
	"math"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/cloud/ec2sim"
)

func TestPricesOfOtherPartitions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		why, region string
		broken      bool    // the price list cannot be read
		price       float64 // of an m5.large, which costs 0.096 dollars in us-east-1
		asks        bool
	}{
		{why: "a commercial region asks the price list", region: "us-east-1", broken: false, price: 0.096, asks: true},
		{why: "GovCloud has no Pricing API, and a table of its own", region: "us-gov-west-1", broken: false, price: 0.121, asks: false},
		{why: "the price list of China is in yuan", region: "cn-north-1", broken: false, price: 0.864, asks: true},
		{why: "and so is the built-in table there", region: "cn-north-1", broken: true, price: 1.013, asks: true},
	} {
		t.Run(tc.why, func(t *testing.T) {
			t.Parallel()
			a := startAccount(t, ec2sim.Options{CatalogueFile: "testdata/catalogue.json", Region: tc.region})
			if tc.broken {
				a.change(func(f *ec2sim.Faults) {
					f.Errors = []ec2sim.ErrorFault{{Action: "GetProducts", Code: "AccessDeniedException"}}
				})
			}
			provider := a.newProviderOf(func(o *options) { o.Load = append(o.Load, config.WithRegion(tc.region)) })
			class := a.NodeClass()
			a.resolve(provider, class)
			found, err := provider.InstanceTypes(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(found, func(i *cloud.InstanceType) bool { return i.Name == "m5.large" })
			if i < 0 {
				t.Fatal("m5.large is not there")
			}
			for _, offering := range found[i].Offerings {
				if offering.CapacityType == "on-demand" && math.Abs(offering.Price-tc.price) > 1e-9 {
					t.Errorf("m5.large costs %v; want %v", offering.Price, tc.price)
				}
				if offering.CapacityType == "spot" && (offering.Price <= 0 || offering.Price > 1.2*tc.price) {
					t.Errorf("spot costs %v beside an on-demand price of %v: another currency", offering.Price, tc.price)
				}
			}
			if asked := a.sim.CallCounts()["GetProducts"].Total > 0; asked != tc.asks {
				t.Errorf("the price list was asked: %t; want %t", asked, tc.asks)
			}
		})
	}
}
