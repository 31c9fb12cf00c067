package aws

import (
	"bufio"
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// branchTable is what the VPC resource controller advertises as vpc.amazonaws.com/pod-eni. EC2's descriptions of
// instance types do not contain it.
//
//go:embed branches.txt
var branchTable string

// bandwidthTable is what AWS's documentation states as the network bandwidth of instance types, the baseline if there are
// two figures. Karpenter labels nodes with it and not with what EC2 reports for the network cards, which differs for some
// types and is known for others of which the documentation only says "Low" or "High". tools/tables writes the file.
//
//go:embed bandwidths.txt
var bandwidthTable string

// The built-in tables are parsed once; the keys are instance types.
var (
	branches   = sync.OnceValues(func() (map[string]int64, error) { return parseSizeTable(branchTable) })
	bandwidths = sync.OnceValues(func() (map[string]int64, error) { return parseSizeTable(bandwidthTable) })
)

// parseSizeTable reads lines of the form
//
//	FAMILY NUMBER=SIZE[,SIZE ...] ...
func parseSizeTable(table string) (map[string]int64, error) {
	out := make(map[string]int64, 1500)
	lines := bufio.NewScanner(strings.NewReader(table))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		for _, word := range words[1:] {
			number, sizes, _ := strings.Cut(word, "=")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("table of instance types, family %s: %w", words[0], err)
			}
			for _, size := range strings.Split(sizes, ",") {
				out[words[0]+"."+size] = n
			}
		}
	}
	return out, lines.Err()
}

// branchInterfaces returns how many branch interfaces an instance type has, 0 where it has none.
func branchInterfaces(instanceType string) int64 {
	table, err := branches()
	if err != nil {
		return 0
	}
	return table[instanceType]
}

// networkBandwidth returns the network bandwidth of an instance type in megabits per second, and false if it is not stated.
func networkBandwidth(instanceType string) (int64, bool) {
	table, err := bandwidths()
	if err != nil {
		return 0, false
	}
	mbps, ok := table[instanceType]
	return mbps, ok
}
