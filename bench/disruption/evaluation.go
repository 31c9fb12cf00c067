package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/bench/workload"
)

// podsPerNode is the mean.
const podsPerNode = 10

// evaluated is a row about one evaluation of a cluster.
type evaluated struct {
	Name             string  `json:"name"`
	Nodes            int     `json:"nodes"`
	Pods             int     `json:"pods"`
	TenonSeconds     float64 `json:"tenonSeconds"`
	KarpenterSeconds float64 `json:"karpenterSeconds"`
	Ratio            float64 `json:"ratio"`
	// KarpenterCandidates is the number of simulations that KarpenterSeconds covers, KarpenterAsked how many of them were timed.
	KarpenterCandidates       int     `json:"karpenterCandidates"`
	KarpenterAsked            int     `json:"karpenterAsked"`
	KarpenterSecondsPerAnswer float64 `json:"karpenterSecondsPerCandidate"`
	// TenonCPUSeconds and KarpenterCPUSeconds are CPU times, which other load on the machine does not lengthen.
	TenonCPUSeconds     float64 `json:"tenonCpuSeconds"`
	KarpenterCPUSeconds float64 `json:"karpenterCpuSeconds"`
	// TenonFirstCommand is the time in seconds until Tenon has its first command, and with it all of them. KarpenterFirst and
	// KarpenterFirstMove are the times until Karpenter has its first command of any kind, and the first that moves pods; zero if
	// its methods find none in the time that they allow themselves.
	TenonFirstCommand  float64 `json:"tenonSecondsToFirstCommand"`
	KarpenterFirst     float64 `json:"karpenterSecondsToFirstCommand"`
	KarpenterFirstMove float64 `json:"karpenterSecondsToFirstMove"`
	// TenonFirstHour and KarpenterFirstHour are how many commands each decides on in its first hour: Tenon all those of one
	// evaluation, Karpenter one after the other, with its wait after each.
	TenonFirstHour     int `json:"tenonCommandsInFirstHour"`
	KarpenterFirstHour int `json:"karpenterCommandsInFirstHour"`
	// TenonCommands remove TenonNodes nodes, and save this many dollars per hour.
	TenonCommands     int     `json:"tenonCommands"`
	TenonNodes        int     `json:"tenonNodes"`
	TenonSavesPerHour float64 `json:"tenonSavesPerHour"`
}

// evaluation measures one evaluation of a cluster of the given size. Karpenter's sample is divided by divisor.
func evaluation(name string, nodes, divisor int, use workload.Use) measurement {
	return measurement{name, func(ctx context.Context, s settings) (any, error) {
		types, err := market.EC2(ctx)
		if err != nil {
			return nil, fmt.Errorf("the instance types of EC2: %w", err)
		}
		q := workload.Fleet(nodes, podsPerNode, use, types)
		row := evaluated{Name: name, Nodes: nodes, Pods: podsOn(q)}
		progress("%s: Tenon looks at %d nodes with %d pods", row.Name, row.Nodes, row.Pods)
		look := tenon.MedianDisrupt(q)
		row.TenonSeconds, row.TenonCPUSeconds = look.Took.Seconds(), look.CPU.Seconds()
		for _, command := range look.Disruption.Commands {
			row.TenonCommands++
			row.TenonNodes += len(command.Nodes)
			row.TenonSavesPerHour += command.SavesPerHour
		}
		sample := max(1, s.sample/divisor)
		progress("%s: %v; now Karpenter, %d candidates", row.Name, look.Took.Round(time.Millisecond), sample)
		disruptor, err := karpenter.NewDisruptor(ctx, q, clock.RealClock{})
		if err != nil {
			return nil, err
		}
		scan, err := disruptor.Scan(ctx, sample)
		if err != nil {
			return nil, err
		}
		row.KarpenterCandidates, row.KarpenterAsked = scan.Candidates, scan.Asked
		row.KarpenterSeconds, row.KarpenterSecondsPerAnswer = scan.Whole().Seconds(), scan.PerCandidate.Seconds()
		row.KarpenterCPUSeconds = float64(scan.Candidates) * scan.CPU.Seconds()
		row.Ratio = row.KarpenterSeconds / row.TenonSeconds
		progress("%s: %v for each of %d candidates; now its first command", row.Name, scan.PerCandidate.Round(time.Millisecond), scan.Candidates)
		pass, err := disruptor.Pass(ctx)
		if err != nil {
			return nil, err
		}
		row.TenonFirstCommand, row.TenonFirstHour = row.TenonSeconds, row.TenonCommands
		row.KarpenterFirst, row.KarpenterFirstMove, row.KarpenterFirstHour = pass.First.Seconds(), pass.FirstMove.Seconds(), firstHour(pass)
		progress("%s: Karpenter has its first command after %.1f s, one that moves pods after %.1f s: %d in an hour", row.Name, row.KarpenterFirst, row.KarpenterFirstMove, row.KarpenterFirstHour)
		return row, nil
	}}
}

// firstHour returns how many commands Karpenter decides on in an hour, if each one that moves pods takes it as long as the
// first.
func firstHour(pass karpenter.Pass) int {
	if pass.FirstMove == 0 {
		return pass.Commands
	}
	before := pass.Commands - 1
	left := time.Hour - time.Duration(before)*karpenter.CommandDelay
	return before + int(left/(pass.FirstMove+karpenter.CommandDelay))
}

func podsOn(q *compare.Question) int {
	pods := 0
	for i := range q.Nodes {
		pods += len(q.Nodes[i].Pods)
	}
	return pods
}
