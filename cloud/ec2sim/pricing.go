package ec2sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tenon-sh/tenon/cloud/catalogue"
)

// product is one entry of the AWS price list: an instance type with an operating system, a tenancy and a capacity status.
type product struct {
	sku        string
	family     string
	attributes map[string]string
	price      float64
	currency   string
}

// windowsPerVCPU is the price of a Windows licence in US dollars, per vCPU and hour.
const windowsPerVCPU = 0.046

// dedicatedFactor is the approximate price factor of dedicated tenancy.
const dedicatedFactor = 1.06

// pricing is the part of the AWS price list with EC2's on-demand instances.
type pricing struct {
	account   *account
	catalogue *Catalogue
}

// products returns the entries for a type. Besides the Linux price they include similar entries, which a careless filter
// would mistake for it.
func (pr *pricing) products(t *InstanceType) []product {
	if t.PriceUSD == 0 {
		return nil
	}
	family := "Compute Instance"
	if t.BareMetal {
		family = "Compute Instance (bare metal)"
	}
	attributes := map[string]string{
		"servicecode": "AmazonEC2", "servicename": "Amazon Elastic Compute Cloud", "regionCode": pr.account.region,
		"location": "US East (N. Virginia)", "locationType": "AWS Region", "instanceType": t.Name, "vcpu": strconv.Itoa(t.VCPUs),
		"memory": formatUSD(float64(t.MemoryMiB)/1024) + " GiB", "currentGeneration": map[bool]string{true: "Yes", false: "No"}[t.CurrentGeneration],
		"marketoption": "OnDemand", "networkPerformance": t.NetworkText, "processorArchitecture": map[bool]string{true: "64-bit", false: "32-bit or 64-bit"}[t.Arch == "arm64"],
		"licenseModel": "No License required", "preInstalledSw": "NA", "instanceFamily": "General purpose",
	}
	code, perDollar := pr.account.currency()
	variant := func(os, tenancy, status string, usd float64) product {
		a := maps.Clone(attributes)
		a["operatingSystem"], a["tenancy"], a["capacitystatus"] = os, tenancy, status
		a["operation"] = map[string]string{"Linux": "RunInstances", "Windows": "RunInstances:0002"}[os]
		a["usagetype"] = map[string]string{"Shared": "BoxUsage:", "Dedicated": "DedicatedUsage:"}[tenancy] + t.Name
		sku := strings.ToUpper(strconv.FormatUint(uint64(unit("sku", t.Name, os, tenancy, status)*(1<<53)), 36))
		return product{fmt.Sprintf("%016s", sku), family, a, catalogue.RoundPrice(usd * perDollar), code}
	}
	if t.BareMetal {
		return []product{
			variant("Linux", "Dedicated", "Used", t.PriceUSD),
			variant("Linux", "Shared", "Used", t.PriceUSD),
			variant("Windows", "Shared", "Used", t.PriceUSD+windowsPerVCPU*float64(t.VCPUs)),
		}
	}
	all := []product{
		variant("Linux", "Shared", "Used", t.PriceUSD),
		variant("Linux", "Shared", "UnusedCapacityReservation", t.PriceUSD),
		variant("Linux", "Dedicated", "Used", t.PriceUSD*dedicatedFactor),
	}
	if t.Arch == "amd64" {
		all = append(all, variant("Windows", "Shared", "Used", t.PriceUSD+windowsPerVCPU*float64(t.VCPUs)))
	}
	return all
}

// json returns the product in the price list's format, a document inside a string.
func (p product) json() (string, error) {
	term := p.sku + ".JRTCKXETXF" // the offer term code of on-demand prices
	rate := term + ".6YS6EN2CT7"  // the rate code of hours
	data, err := json.Marshal(map[string]any{
		"product":     map[string]any{"productFamily": p.family, "attributes": p.attributes, "sku": p.sku},
		"serviceCode": "AmazonEC2",
		"terms": map[string]any{"OnDemand": map[string]any{term: map[string]any{
			"priceDimensions": map[string]any{rate: map[string]any{
				"unit": "Hrs", "endRange": "Inf", "beginRange": "0", "appliesTo": []string{}, "rateCode": rate,
				"description":  fmt.Sprintf("$%g per On Demand %s %s Instance Hour", p.price, p.attributes["operatingSystem"], p.attributes["instanceType"]),
				"pricePerUnit": map[string]string{p.currency: strconv.FormatFloat(p.price, 'f', 10, 64)},
			}},
			"sku": p.sku, "effectiveDate": "2026-11-01T00:00:00Z", "offerTermCode": "JRTCKXETXF", "termAttributes": map[string]any{},
		}}},
		"version": "20261101000000", "publicationDate": "2026-11-01T00:00:00Z",
	})
	return string(data), err
}

type productFilter struct{ Type, Field, Value string }

func (p product) matches(f productFilter) bool {
	value, ok := p.attributes[f.Field]
	if f.Field == "productFamily" {
		value, ok = p.family, true
	}
	if !ok {
		return false
	}
	switch f.Type {
	case "EQUALS", "TERM_MATCH":
		return strings.EqualFold(value, f.Value)
	case "CONTAINS":
		return strings.Contains(value, f.Value)
	}
	named := false
	for v := range strings.SplitSeq(f.Value, ",") {
		named = named || strings.EqualFold(value, v)
	}
	return named == (f.Type == "ANY_OF")
}

func (pr *pricing) getProducts(c *call) (any, error) {
	in, err := decodeJSON[struct {
		ServiceCode   string
		Filters       []productFilter
		FormatVersion string
		MaxResults    int
		NextToken     string
	}](c)
	if err != nil {
		return nil, err
	}
	if in.ServiceCode != "AmazonEC2" {
		return nil, refuse("InvalidParameterException", "The service code %s is not known", in.ServiceCode)
	}
	setDefault(&in.MaxResults, 100)
	if in.MaxResults < 1 || in.MaxResults > 100 {
		return nil, refuse("InvalidParameterException", "MaxResults must be between 1 and 100")
	}
	var found []product
	for _, t := range pr.catalogue.Types() {
		for _, p := range pr.products(t) {
			keep := true
			for _, f := range in.Filters {
				keep = keep && p.matches(f)
			}
			if keep {
				found = append(found, p)
			}
		}
	}
	page, next, err := paginate(found, func(p product) string { return p.attributes["instanceType"] + p.sku }, in.NextToken, in.MaxResults)
	if err != nil {
		return nil, refuse("InvalidNextTokenException", "The pagination token is invalid. Try again without a pagination token.")
	}
	list := []string{}
	for _, p := range page {
		text, err := p.json()
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": list}
	if next != "" {
		out["NextToken"] = next
	}
	return out, nil
}
