// Bench puts the same questions to Tenon's planner and to Karpenter's, and prints the results beside what the same pods cost
// by hand and what no plan can undercut. It fails if a figure is missed (standards.go).
//
// # What is asked
//
// The shapes are those of Karpenter's own scheduling benchmark, rewritten (package workload): pods without constraints,
// spread over zones, spread over hosts, with affinity to pods of their kind in a zone, and with anti-affinity to each other
// on a host, a fifth each, on 400 instance types of its own generator; and pods with preferences. Further questions are
// about the instance types of EC2 (package market): in a cluster with 2,000 nodes, with as many pods that fit nowhere as
// pods that do, twenty mixes of realistic workloads, and batches that no planner was developed with (workload.Unprepared):
// many sizes, hundreds of Deployments with rules about hosts, limits, a market short of spot, volumes, 10,000 nodes. Pools
// that may buy spot and pools that buy on demand only have separate questions and separate averages.
//
// # What is measured
//
// Tenon's time is that of plan.Pack, from a fresh snapshot to the complete plan: the median of some runs, with pods
// nominated to their nodes. Each question is planned once more as for a kube-scheduler that is not told where pods are to
// go. Karpenter's time is that of Scheduler.Solve with a new scheduler, one run, without the construction of the scheduler
// and its topology, as in its own benchmark (package karpenter). Both run one after the other in this process with all its
// cores. Memory is how much the process grows while Tenon plans. The cost of pods that fit nowhere is measured in processor
// time, alternately with and without them: the least of several runs each.
//
// Karpenter's price of a node is the cheapest available offering among the instance types its claim leaves open: what a
// launch by lowest price would pay. By hand is first fit in decreasing order of size, and the best fleet of one single type
// (package byhand), for questions with few rules. The lower bound is the higher of plan.LowerBound and of what divisible
// pods would cost; neither knows about spreading over zones: they assume that every pod is in the cheapest one.
//
// Karpenter's time grows faster than the number of pods. It is not asked where it would take too long, and is stopped where
// it does not answer in time; the table shows a dash.
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

	"github.com/tenon-sh/tenon/bench/compare"
)

func main() {
	limits := karpenterLimits{}
	flag.IntVar(&limits.pods, "karpenter-pods", 5000, "ask Karpenter only about batches of at most this many `pods`")
	flag.DurationVar(&limits.time, "karpenter-time", time.Minute, "give Karpenter up after this `time`")
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
		err = run(ctx, limits, *only, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// karpenterLimits limit the questions that Karpenter is asked, and its time for each.
type karpenterLimits struct {
	pods int
	time time.Duration
}

// run asks all questions, prints the table, writes the file and judges the figures.
func run(ctx context.Context, limits karpenterLimits, only, out string) error {
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
		f, err := askBoth(ctx, q, limits)
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

// progress prints a line of progress to standard error.
func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

// write writes the figures to a file as JSON.
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

// question builds its pods and nodes when asked, so that not all questions are in memory at once.
type question struct {
	name string
	ask  func() *compare.Question
	// good returns the same question without the pods that fit nowhere; nil if it has none.
	good func() *compare.Question
	// tenonOnly says that Karpenter is not asked, however few pods there are.
	tenonOnly bool
	// again says that it is another draw of an earlier question that Karpenter has been asked.
	again bool
}
