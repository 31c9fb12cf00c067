package main

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tenon-sh/tenon/deploy"
)

// furtherPolicy is what a run is allowed beyond the permissions of Tenon's worker.
//
//go:embed policy.json
var furtherPolicy string

// policies returns the policies of a run, by name: the worker's, and the run's own.
func policies(s settings) (map[string][]byte, error) {
	values := deploy.PolicyValues{Partition: partitionOf(s.region), Region: s.region, AccountID: s.account, Cluster: s.cluster}
	all, err := deploy.WorkerPolicies(values)
	if err != nil {
		return nil, err
	}
	last := func(text, otherwise string) string {
		if text == "" {
			return otherwise
		}
		return text[strings.LastIndexByte(text, '/')+1:]
	}
	further := strings.NewReplacer("${RUN}", s.run, "${FIS_ROLE}", last(s.fisRole, "tenon-live-fis"), "${QUEUE}", last(s.queue, "tenon-live")).Replace(furtherPolicy)
	all[tagKey] = values.FillIn([]byte(further))
	return all, nil
}

// partitionOf returns the partition of a region (AWS General Reference, "Amazon Resource Names").
func partitionOf(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	}
	return "aws"
}

func printPolicies(out io.Writer, s settings) error {
	all, err := policies(s)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if _, err := fmt.Fprintf(out, "== %s.json\n%s\n", name, all[name]); err != nil {
			return fmt.Errorf("print the policies: %w", err)
		}
	}
	return nil
}
