// Command tables writes the tables in cloud/aws that hold what no call to EC2 returns: the network bandwidths of instance
// types, and on-demand prices in regions whose credentials are not accepted by any Pricing API, or whose price list may be
// out of reach. The figures are AWS's; Karpenter's provider collects them from AWS's documentation and price lists with each
// release, and tools/karpenter pins the release they are taken from.
//
//	go run -C tools/tables . -root $PWD          # write
//	go run -C tools/tables . -root $PWD -check   # fail if a file is not what would be written
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// provider is the module the figures come from.
const provider = "github.com/aws/karpenter-provider-aws"

func main() {
	log.SetFlags(0)
	root := flag.String("root", "../..", "the root of the repository")
	check := flag.Bool("check", false, "write nothing, and fail if a file is not what would be written")
	flag.Parse()
	if err := run(*root, *check); err != nil {
		log.Fatalf("tables: %v", err)
	}
}

func run(root string, check bool) error {
	module, err := moduleOf(filepath.Join(root, "tools", "karpenter"))
	if err != nil {
		return err
	}
	made, err := tables(module)
	if err != nil {
		return err
	}
	var stale error
	for name, content := range made {
		file := filepath.Join(root, "cloud", "aws", name)
		if !check {
			if err := os.WriteFile(file, content, 0o600); err != nil {
				return err
			}
			continue
		}
		if there, err := os.ReadFile(file); err != nil || !bytes.Equal(there, content) {
			stale = errors.Join(stale, fmt.Errorf("%s is stale: run go run -C tools/tables . -root $PWD", file))
		}
	}
	return stale
}

// module is a downloaded module.
type module struct{ Dir, Version string }

// moduleOf returns the provider's module at the version that the module in a directory requires.
func moduleOf(requiring string) (module, error) {
	download := exec.Command("go", "mod", "download", "-json", provider)
	download.Dir, download.Stderr = requiring, os.Stderr
	out, err := download.Output()
	if err != nil {
		return module{}, fmt.Errorf("download %s: %w", provider, err)
	}
	var found module
	if err := json.Unmarshal(out, &found); err != nil {
		return module{}, fmt.Errorf("download %s: %w", provider, err)
	}
	return found, nil
}

// tables returns the content of every file, by its name.
func tables(from module) (map[string][]byte, error) {
	made := map[string][]byte{}
	bandwidths, err := literal(filepath.Join(from.Dir, "pkg", "providers", "instancetype", "zz_generated.bandwidth.go"), "InstanceTypeBandwidthMegabits")
	if err != nil {
		return nil, err
	}
	made["bandwidths.txt"] = bandwidthTable(from, bandwidths.types)
	for _, list := range []struct{ file, variable, currency string }{
		{"zz_generated.pricing_aws_us_gov.go", "InitialOnDemandPricesUSGov", "US dollars"},
		{"zz_generated.pricing_aws_cn.go", "InitialOnDemandPricesCN", "yuan"},
	} {
		prices, err := literal(filepath.Join(from.Dir, "pkg", "providers", "pricing", list.file), list.variable)
		if err != nil {
			return nil, err
		}
		for region, of := range prices.regions {
			made["prices-"+region+".txt"] = priceTable(from, region, list.currency, of)
		}
	}
	return made, nil
}
