// Bench puts the same questions to Tenon's planner and to Karpenter's, and prints what either makes of them.
//
// # What is asked
//
// The shapes are those of Karpenter's own scheduling benchmark, written afresh (package workload): pods without
// constraints, spread over zones, spread over hosts, with affinity to their likes in a zone, and with anti-affinity to
// each other on a host, a fifth each, on 400 instance types of its own generator; and pods with preferences. Further
// questions are about the instance types of EC2 (package market): in a cluster with 2,000 nodes, and with as many pods
// that fit nowhere as pods that do.
//
// # What is measured
//
// Tenon's time is that of plan.Pack, from a snapshot that nobody has planned with before to the complete plan: the median
// of some runs. Karpenter's is that of Scheduler.Solve with a new scheduler, one run, without the construction of the
// scheduler and its topology, as in its own benchmark (package karpenter). Both run one after the other in this process
// with all its cores. What pods that fit nowhere cost is measured by processor time, with and without them by turns: the
// least of several runs each.
//
// Karpenter's price of a node is the cheapest available offering among the instance types its claim leaves open: what
// a launch by lowest price would pay. The lower bound is plan.LowerBound, which knows of pods that must keep away from
// each other on hosts, and nothing of what is spread over zones: it takes every pod to be in the cheapest one.
//
// Karpenter's time grows faster than the number of pods. Where it would take too long it is not asked, and the table
// shows a dash; -peer-pods asks it all the same.
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
	"text/tabwriter"
	"time"

	"github.com/tenon-sh/tenon/bench/duel"
	"github.com/tenon-sh/tenon/bench/karpenter"
	"github.com/tenon-sh/tenon/bench/tenon"
)

func main() {
	peerPods := flag.Int("peer-pods", 5000, "ask Karpenter only about batches of at most this many `pods`")
	only := flag.String("only", "", "ask only questions whose names match this `regexp`")
	out := flag.String("out", "out/planner.json", "write the figures to this `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *peerPods, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run asks all questions, prints the table and writes the file.
func run(ctx context.Context, peerPods int, only, out string) error {
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
		f, err := compare(ctx, q, peerPods)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		figures = append(figures, f)
	}
	if err := table(figures); err != nil {
		return err
	}
	return write(figures, out)
}

// figure is one line of the table.
type figure struct {
	Name               string  `json:"name"`
	Pods               int     `json:"pods"`
	TenonPodsPerSecond float64 `json:"tenonPodsPerSecond"`
	PeerPodsPerSecond  float64 `json:"peerPodsPerSecond,omitempty"`
	Ratio              float64 `json:"ratio,omitempty"`
	TenonCost          float64 `json:"tenonCost"`
	PeerCost           float64 `json:"peerCost,omitempty"`
	// LowerBound is zero where nodes that exist take pods: the bound is about machines alone.
	LowerBound          float64 `json:"lowerBound"`
	TenonAllocsPerPod   float64 `json:"tenonAllocationsPerPod"`
	PeerAllocsPerPod    float64 `json:"peerAllocationsPerPod,omitempty"`
	TenonUnplaced       int     `json:"tenonUnplaced"`
	PeerUnplaced        int     `json:"peerUnplaced,omitempty"`
	TenonMilliseconds   float64 `json:"tenonMilliseconds"`
	PeerMilliseconds    float64 `json:"peerMilliseconds,omitempty"`
	TenonNodes          int     `json:"tenonNodes"`
	PeerNodes           int     `json:"peerNodes,omitempty"`
	CheapestKnownIfKept float64 `json:"tenonCheapestKnown"`
	// Slowdown is by which part the pods that fit nowhere slow the others down, in processor time, where some do.
	Slowdown *float64 `json:"tenonSlowdown,omitempty"`
}

// compare asks both.
func compare(ctx context.Context, q question, peerPods int) (figure, error) {
	asked := q.ask()
	pods := len(asked.Pods)
	f := figure{Name: q.name, Pods: pods}
	progress("%s: Tenon plans %d pods", q.name, pods)
	ours := tenon.Median(asked)
	if wrong := asked.Missing(ours); len(wrong) > 0 {
		return f, fmt.Errorf("the plan forgets pods: %v", wrong[0])
	}
	f.TenonPodsPerSecond = perSecond(pods, ours.Took)
	f.TenonMilliseconds = milliseconds(ours.Took)
	f.TenonCost, f.TenonNodes, f.TenonUnplaced = ours.Cost(), len(ours.Machines), len(ours.Unplaced)
	f.TenonAllocsPerPod = float64(ours.Mallocs) / float64(pods)
	progress("%s: %v, $%.2f/h, %d unplaced; now the lower bound", q.name, ours.Took.Round(time.Millisecond), f.TenonCost, f.TenonUnplaced)
	if len(asked.Nodes) == 0 {
		f.LowerBound, f.CheapestKnownIfKept = tenon.Bounds(asked)
	}
	if q.good != nil {
		slowdown, err := tenon.Slowdown(asked, q.good())
		if err != nil {
			return f, err
		}
		f.Slowdown = &slowdown
	}
	if pods > peerPods || q.tenonOnly {
		return f, nil
	}
	progress("%s: Karpenter plans %d pods", q.name, pods)
	theirs, err := karpenter.Plan(ctx, asked)
	if err != nil {
		return f, err
	}
	progress("%s: %v, $%.2f/h, %d unplaced", q.name, theirs.Took.Round(time.Millisecond), theirs.Cost(), len(theirs.Unplaced))
	f.PeerPodsPerSecond = perSecond(pods, theirs.Took)
	f.PeerMilliseconds = milliseconds(theirs.Took)
	f.PeerCost, f.PeerNodes, f.PeerUnplaced = theirs.Cost(), len(theirs.Machines), len(theirs.Unplaced)
	f.PeerAllocsPerPod = float64(theirs.Mallocs) / float64(pods)
	f.Ratio = f.TenonPodsPerSecond / f.PeerPodsPerSecond
	return f, nil
}

func perSecond(pods int, took time.Duration) float64 { return float64(pods) / took.Seconds() }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// progress tells people that something still happens.
func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

// table prints the figures.
func table(figures []figure) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "question\tpods\tTenon pods/s\tpeer pods/s\tratio\tTenon $/h\tpeer $/h\tbound $/h\tTenon allocs/pod\tpeer\tTenon unplaced\tpeer\t")
	for _, f := range figures {
		peer := [...]string{"-", "-", "-", "-", "-"}
		if f.PeerPodsPerSecond > 0 {
			peer = [...]string{
				fmt.Sprintf("%.1f", f.PeerPodsPerSecond), fmt.Sprintf("%.0f", f.Ratio), fmt.Sprintf("%.2f", f.PeerCost),
				fmt.Sprintf("%.0f", f.PeerAllocsPerPod), fmt.Sprint(f.PeerUnplaced),
			}
		}
		bound := "-"
		if f.LowerBound > 0 {
			bound = fmt.Sprintf("%.2f", f.LowerBound)
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%s\t%s\t%.2f\t%s\t%s\t%.1f\t%s\t%d\t%s\t\n", f.Name, f.Pods, f.TenonPodsPerSecond, peer[0], peer[1],
			f.TenonCost, peer[2], bound, f.TenonAllocsPerPod, peer[3], f.TenonUnplaced, peer[4])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	remarks(figures)
	return nil
}

// remarks prints what is not about one question alone.
func remarks(figures []figure) {
	bounded, excess := 0, 0.0
	for _, f := range figures {
		if f.LowerBound > 0 {
			bounded++
			excess += f.TenonCost / f.LowerBound
		}
		if f.Slowdown != nil {
			fmt.Printf("%s: the pods that fit nowhere take %.1f %% more processor time than the others alone\n", f.Name, 100**f.Slowdown)
		}
	}
	if bounded > 0 {
		fmt.Printf("Tenon's plans cost %.3f times the lower bound on average, over %d questions\n", excess/float64(bounded), bounded)
	}
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
}
