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

// branches parses the built-in table once; the keys are instance types.
var branches = sync.OnceValues(func() (map[string]int64, error) { return parseBranchTable(branchTable) })

// parseBranchTable reads lines of the form
//
//	FAMILY NUMBER=SIZE[,SIZE ...] ...
func parseBranchTable(table string) (map[string]int64, error) {
	out := make(map[string]int64, 1000)
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
				return nil, fmt.Errorf("branch interface table, family %s: %w", words[0], err)
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
