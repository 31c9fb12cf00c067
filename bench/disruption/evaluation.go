package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/bench/workload"
)

// podsPerNode is the mean.
const podsPerNode = 10

// evaluated is a line about one look at a cluster.
type evaluated struct {
	Name         string  `json:"name"`
	Nodes        int     `json:"nodes"`
	Pods         int     `json:"pods"`
	TenonSeconds float64 `json:"tenonSeconds"`
	PeerSeconds  float64 `json:"peerSeconds"`
	Ratio        float64 `json:"ratio"`
	// PeerCandidates is how many simulations PeerSeconds stands for, PeerAsked how many of them were timed.
	PeerCandidates       int     `json:"peerCandidates"`
	PeerAsked            int     `json:"peerAsked"`
	PeerSecondsPerAnswer float64 `json:"peerSecondsPerCandidate"`
	// TenonCPUSeconds and PeerCPUSeconds are times of cores, which others on the machine do not lengthen.
	TenonCPUSeconds float64 `json:"tenonCpuSeconds"`
	PeerCPUSeconds  float64 `json:"peerCpuSeconds"`
	// TenonCommands take TenonNodes nodes, and save dollars per hour.
	TenonCommands     int     `json:"tenonCommands"`
	TenonNodes        int     `json:"tenonNodes"`
	TenonSavesPerHour float64 `json:"tenonSavesPerHour"`
}

// evaluation measures one look at so many nodes. The peer's sample is divided.
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
		peer, err := karpenter.NewDisruptor(ctx, q, clock.RealClock{})
		if err != nil {
			return nil, err
		}
		scan, err := peer.Scan(ctx, sample)
		if err != nil {
			return nil, err
		}
		row.PeerCandidates, row.PeerAsked = scan.Candidates, scan.Asked
		row.PeerSeconds, row.PeerSecondsPerAnswer = scan.Whole().Seconds(), scan.PerCandidate.Seconds()
		row.PeerCPUSeconds = float64(scan.Candidates) * scan.CPU.Seconds()
		row.Ratio = row.PeerSeconds / row.TenonSeconds
		progress("%s: %v for each of %d candidates", row.Name, scan.PerCandidate.Round(time.Millisecond), scan.Candidates)
		return row, nil
	}}
}

func podsOn(q *duel.Question) int {
	pods := 0
	for i := range q.Nodes {
		pods += len(q.Nodes[i].Pods)
	}
	return pods
}
