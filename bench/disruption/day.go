package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
)

// usualDays is the number of simulated days. The cost of a single day depends on which machines its first pods happen to
// get.
const usualDays = 7

// dayRow is a row about simulated days; dollars, pods and nodes are totals over all of them.
type dayRow struct {
	Name string `json:"name"`
	Days int    `json:"days"`
	// MostPods and MostNodes are from the busiest hour of any day, with only empty nodes removed.
	MostPods               int     `json:"mostPods"`
	MostNodes              int     `json:"mostNodes"`
	DollarsWithout         float64 `json:"dollarsWithoutConsolidation"`
	TenonDollars           float64 `json:"tenonDollars"`
	KarpenterDollars       float64 `json:"karpenterDollars"`
	TenonSaving            float64 `json:"tenonSaving"`
	KarpenterSaving        float64 `json:"karpenterSaving"`
	TenonPodsMoved         int     `json:"tenonPodsMoved"`
	KarpenterPodsMoved     int     `json:"karpenterPodsMoved"`
	TenonNodesTaken        int     `json:"tenonNodesTaken"`
	KarpenterNodesTaken    int     `json:"karpenterNodesTaken"`
	TenonNodesLaunched     int     `json:"tenonNodesLaunched"`
	KarpenterNodesLaunched int     `json:"karpenterNodesLaunched"`
	TenonSeconds           float64 `json:"tenonSeconds"`
	KarpenterSeconds       float64 `json:"karpenterSeconds"`
}

// simulatedDay simulates each day three times.
func simulatedDay(ctx context.Context, _ settings) (any, error) {
	catalogue, err := market.Common(ctx)
	if err != nil {
		return nil, fmt.Errorf("the instance types of EC2: %w", err)
	}
	row := dayRow{Name: "day", Days: usualDays}
	for seed := range uint64(usualDays) {
		play := func(who string, c day.Consolidator) (day.Result, time.Duration, error) {
			start := time.Now()
			options := day.Usual(catalogue)
			options.Seed = seed + 1
			result, err := day.Run(ctx, options, c)
			took := time.Since(start)
			progress("day %d: %s: $%.2f, %d pods moved, %d nodes taken away, %d launched, in %v",
				options.Seed, who, result.Dollars, result.PodsMoved, result.NodesTaken, result.Launched, took.Round(time.Millisecond))
			if err != nil {
				err = fmt.Errorf("day %d: %s: %w", options.Seed, who, err)
			}
			return result, took, err
		}
		without, _, err := play("only empty nodes go", day.Empty)
		if err != nil {
			return nil, err
		}
		ours, ourTime, err := play("Tenon", tenon.Consolidate)
		if err != nil {
			return nil, err
		}
		theirs, theirTime, err := play("Karpenter", karpenter.Consolidate)
		if err != nil {
			return nil, err
		}
		row.MostPods, row.MostNodes = max(row.MostPods, without.MostPods), max(row.MostNodes, without.MostNodes)
		row.DollarsWithout += without.Dollars
		row.TenonDollars += ours.Dollars
		row.KarpenterDollars += theirs.Dollars
		row.TenonPodsMoved += ours.PodsMoved
		row.KarpenterPodsMoved += theirs.PodsMoved
		row.TenonNodesTaken += ours.NodesTaken
		row.KarpenterNodesTaken += theirs.NodesTaken
		row.TenonNodesLaunched += ours.Launched
		row.KarpenterNodesLaunched += theirs.Launched
		row.TenonSeconds += ourTime.Seconds()
		row.KarpenterSeconds += theirTime.Seconds()
	}
	row.TenonSaving, row.KarpenterSaving = row.DollarsWithout-row.TenonDollars, row.DollarsWithout-row.KarpenterDollars
	return row, nil
}
