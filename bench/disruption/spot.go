package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/plan"
)

// spotSeeds is the number of simulated days with spot: one says little about what happens a few times a day.
const spotSeeds = 3

// spotRow is a row about days on which spot pools run dry.
type spotRow struct {
	Name string `json:"name"`
	Days int    `json:"days"`
	// Spread is Tenon as it is, Cheapest is Tenon packing by price alone.
	Spread    spotDays `json:"tenon"`
	Cheapest  spotDays `json:"tenonByPriceAlone"`
	Karpenter spotDays `json:"karpenter"`
}

// spotDays is the outcome of all days together.
type spotDays struct {
	Dollars          float64 `json:"dollars"`
	NodesInterrupted int     `json:"nodesInterrupted"`
	PodsInterrupted  int     `json:"podsInterrupted"`
	PodsMoved        int     `json:"podsMoved"`
	NodesLaunched    int     `json:"nodesLaunched"`
	// LargestLoss is the largest part of a workload of six replicas or more that was lost at once, LargeLosses the number of
	// times that it was more than a third.
	LargestLoss float64 `json:"largestLoss"`
	LargeLosses int     `json:"largeLosses"`
	Seconds     float64 `json:"seconds"`
}

// spotDay simulates the days three times.
func spotDay(ctx context.Context, _ settings) (any, error) {
	catalogue, err := market.Common(ctx)
	if err != nil {
		return nil, fmt.Errorf("the instance types of EC2: %w", err)
	}
	play := func(who string, packing plan.Packing, buyer func(context.Context, *compare.Question) (compare.Answer, error), c day.Consolidator) (spotDays, error) {
		var all spotDays
		start := time.Now()
		for seed := range uint64(spotSeeds) {
			o := day.Usual(catalogue)
			o.Seed, o.Spot, o.Packing, o.Buyer = seed+1, true, string(packing), buyer
			r, err := day.Run(ctx, o, c)
			if err != nil {
				return all, fmt.Errorf("%s: %w", who, err)
			}
			all.add(r)
		}
		all.Seconds = time.Since(start).Seconds()
		progress("spot-day: %s: $%.2f, %d nodes and %d pods interrupted, at most %.0f %% of a workload at once, %d times more than a third, in %.1f s",
			who, all.Dollars, all.NodesInterrupted, all.PodsInterrupted, 100*all.LargestLoss, all.LargeLosses, all.Seconds)
		return all, nil
	}
	row := spotRow{Name: "spot-day", Days: spotSeeds}
	if row.Spread, err = play("Tenon", plan.PackingSpread, nil, tenon.Consolidate); err != nil {
		return nil, err
	}
	if row.Cheapest, err = play("Tenon by price alone", plan.PackingCheapest, nil, tenon.Consolidate); err != nil {
		return nil, err
	}
	if row.Karpenter, err = play("Karpenter", "", karpenter.Plan, karpenter.Consolidate); err != nil {
		return nil, err
	}
	return row, nil
}

func (d *spotDays) add(r day.Result) {
	d.Dollars += r.Dollars
	d.NodesInterrupted += r.Interrupted
	d.PodsInterrupted += r.PodsInterrupted
	d.PodsMoved += r.PodsMoved
	d.NodesLaunched += r.Launched
	d.LargestLoss = max(d.LargestLoss, r.LargestLoss)
	d.LargeLosses += r.LargeLosses
}
