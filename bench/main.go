// Bench puts the same questions to Tenon's planner and to Karpenter's, and prints what either makes of them, beside what
// the same pods cost by hand and what no plan can undercut. It fails where a figure is missed (standards.go).
//
// # What is asked
//
// The shapes are those of Karpenter's own scheduling benchmark, written afresh (package workload): pods without
// constraints, spread over zones, spread over hosts, with affinity to their likes in a zone, and with anti-affinity to
// each other on a host, a fifth each, on 400 instance types of its own generator; and pods with preferences. Further
// questions are about the instance types of EC2 (package market): in a cluster with 2,000 nodes, with as many pods that
// fit nowhere as pods that do, twenty mixes of realistic workloads, and batches that no planner was made with
// (workload.Unprepared): many sizes, hundreds of Deployments with rules about hosts, limits, a market short of spot, volumes,
// 10,000 nodes. What may buy spot and what buys on demand alone are questions, and averages, of their own.
//
// # What is measured
//
// Tenon's time is that of plan.Pack, from a snapshot that nobody has planned with before to the complete plan: the median
// of some runs, where pods are nominated to their nodes. Each question is planned once more as for a kube-scheduler that
// is not told where pods are to go. Karpenter's time is that of Scheduler.Solve with a new scheduler, one run, without the
// construction of the scheduler and its topology, as in its own benchmark (package karpenter). Both run one after the
// other in this process with all its cores. Memory is what the process gains while Tenon plans. What pods that fit nowhere cost is
// measured by processor time, with and without them by turns: the least of several runs each.
//
// Karpenter's price of a node is the cheapest available offering among the instance types its claim leaves open: what
// a launch by lowest price would pay. By hand is first fit in falling order of size, and the best fleet of one single type
// (package byhand), for questions whose rules are few. The lower bound is the higher one of plan.LowerBound and of what
// divisible pods would cost; neither knows of what is spread over zones: they take every pod to be in the cheapest one.
//
// Karpenter's time grows faster than the number of pods. Where it would take too long it is not asked, and where it has
// no answer in time it is given up; the table shows a dash.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"time"

	"github.com/tenon-sh/tenon/bench/duel"
)

func main() {
	peer := peerLimits{}
	flag.IntVar(&peer.pods, "peer-pods", 5000, "ask Karpenter only about batches of at most this many `pods`")
	flag.DurationVar(&peer.time, "peer-time", time.Minute, "give Karpenter up after this `time`")
	only := flag.String("only", "", "ask only questions whose names match this `regexp`")
	out := flag.String("out", "out/planner.json", "write the figures to this `file`")
	tables := flag.Bool("markdown", false, "ask nothing, and print the tables of docs/figures.md from the file of -out")
	without := flag.Bool("ablate", false, "print what each search strategy of Tenon's planner buys in price and costs in time, and nothing else")
	flag.Parse()
	if *tables {
		if err := markdown(os.Stdout, *only, *out); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *without {
		err = ablate(ctx, *only)
	} else {
		err = run(ctx, peer, *only, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// peerLimits say what Karpenter is asked.
type peerLimits struct {
	pods int
	time time.Duration
}

// run asks all questions, prints the table, writes the file and judges the figures.
func run(ctx context.Context, peer peerLimits, only, out string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	list, err := questions(ctx)
	if err != nil {
		return err
	}
	var figures []figure
	for _, q := range list {
		if !pattern.MatchString(q.name) {
			continue
		}
		f, err := compare(ctx, q, peer)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		figures = append(figures, f)
	}
	if err := table(figures); err != nil {
		return err
	}
	if err := write(figures, out); err != nil {
		return err
	}
	return judge(figures)
}

// progress tells people that something still happens.
func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

// write keeps the figures for programs.
func write(figures []figure, path string) error {
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// question is asked late, so that not all of them are in memory at once.
type question struct {
	name string
	ask  func() *duel.Question
	// good is the same question without the pods that fit nowhere; nil if it has none.
	good func() *duel.Question
	// tenonOnly says that Karpenter is not asked, however few pods there are.
	tenonOnly bool
	// again says that it is another draw of a question before it, which Karpenter has been asked about.
	again bool
}
