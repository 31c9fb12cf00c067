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

// dayRow is a line about a simulated day.
type dayRow struct {
	Name string `json:"name"`
	// MostPods and MostNodes are those of the busiest hour, of a day on which only empty nodes go.
	MostPods           int     `json:"mostPods"`
	MostNodes          int     `json:"mostNodes"`
	DollarsWithout     float64 `json:"dollarsWithoutConsolidation"`
	TenonDollars       float64 `json:"tenonDollars"`
	PeerDollars        float64 `json:"peerDollars"`
	TenonSaving        float64 `json:"tenonSaving"`
	PeerSaving         float64 `json:"peerSaving"`
	TenonPodsMoved     int     `json:"tenonPodsMoved"`
	PeerPodsMoved      int     `json:"peerPodsMoved"`
	TenonNodesTaken    int     `json:"tenonNodesTaken"`
	PeerNodesTaken     int     `json:"peerNodesTaken"`
	TenonNodesLaunched int     `json:"tenonNodesLaunched"`
	PeerNodesLaunched  int     `json:"peerNodesLaunched"`
	TenonSeconds       float64 `json:"tenonSeconds"`
	PeerSeconds        float64 `json:"peerSeconds"`
}

// simulatedDay plays the day three times.
func simulatedDay(ctx context.Context, _ settings) (any, error) {
	catalogue, err := market.Common(ctx)
	if err != nil {
		return nil, fmt.Errorf("the instance types of EC2: %w", err)
	}
	play := func(who string, c day.Consolidator) (day.Result, time.Duration, error) {
		start := time.Now()
		result, err := day.Run(ctx, day.Usual(catalogue), c)
		took := time.Since(start)
		progress("day: %s: $%.2f, %d pods moved, %d nodes taken away, %d launched, in %v",
			who, result.Dollars, result.PodsMoved, result.NodesTaken, result.Launched, took.Round(time.Millisecond))
		if err != nil {
			err = fmt.Errorf("%s: %w", who, err)
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
	return dayRow{
		Name: "day", MostPods: without.MostPods, MostNodes: without.MostNodes, DollarsWithout: without.Dollars,
		TenonDollars: ours.Dollars, PeerDollars: theirs.Dollars,
		TenonSaving: without.Dollars - ours.Dollars, PeerSaving: without.Dollars - theirs.Dollars,
		TenonPodsMoved: ours.PodsMoved, PeerPodsMoved: theirs.PodsMoved,
		TenonNodesTaken: ours.NodesTaken, PeerNodesTaken: theirs.NodesTaken,
		TenonNodesLaunched: ours.Launched, PeerNodesLaunched: theirs.Launched,
		TenonSeconds: ourTime.Seconds(), PeerSeconds: theirTime.Seconds(),
	}, nil
}
