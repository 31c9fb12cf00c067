// Disruption measures how Tenon and Karpenter remove nodes, and prints the results.
//
// # Evaluation
//
// A cluster of 1,000 nodes and 10,000 pods, and one five times as large (workload.Fleet), on the instance types of EC2: each
// once with many removable nodes, and once so full that few can be removed. Tenon is asked by plan.Disrupt for everything at
// once: all nodes, all reasons, every command that can be carried out; the figure is the median of three runs, each on a
// fresh snapshot. Karpenter's own SimulateScheduling is asked, on the same state, where the pods of one candidate would go;
// it is asked about an evenly taken sample of its candidates, and its time for all of them is the mean times their number. A
// pass of its single-node consolidation does just that; its searches for several nodes at once, and the fifteen seconds it
// waits for each command, come on top and are not counted there. Then its methods are run in their order, for as long as
// they allow themselves, to find the first command and the first that moves pods; how many commands it decides on in an hour
// follows from that and from its wait. Tenon has all its commands at once.
//
// # A day
//
// Forty Deployments scale up and down for 24 hours of simulated time (package day), once with plan.Disrupt, once with
// Karpenter's emptiness, multi-node and single-node consolidation, called directly. Which pods come and go, how they are
// bound, and what is bought for them is the same for both.
//
// # A day on which spot pools run dry
//
// The same Deployments on spot machines, whose pools run dry by a seeded process (package day), on three days: with Tenon as
// it is, with Tenon packing by price alone (packing cheapest), and with Karpenter's scheduler and consolidation.
//
// # End to end
//
// Both do real work on a laboratory with a real control plane, one after the other (package e2e). It takes about half an
// hour, more than half of it for Karpenter.
//
// The figures are written to a file; rows that -only leaves out stay as they were.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"time"

	"github.com/tenon-sh/tenon/bench/e2e"
	"github.com/tenon-sh/tenon/bench/workload"
)

// cores is how many cores each of the two may use.
const cores = 2

type settings struct {
	only, out, bin, keep string
	sample               int
	quiet, limit         time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.only, "only", "", "measure only what has a name that matches this `regexp`: "+fmt.Sprint(names()))
	flag.StringVar(&s.out, "out", "out/disruption.json", "write the figures to this `file`")
	flag.StringVar(&s.bin, "bin", "../bin", "`directory` of the laboratory's programs")
	flag.StringVar(&s.keep, "keep", "", "keep the logs of the laboratories, and write the course of the bill to this `directory`")
	flag.IntVar(&s.sample, "sample", 20, "ask Karpenter about so many `candidates` of 1,000 nodes, and a fourth of that of 5,000")
	flag.DurationVar(&s.quiet, "quiet", 5*time.Minute, "how long the bill must stay the same to be final")
	flag.DurationVar(&s.limit, "limit", 30*time.Minute, "how long the bill may take to be final")
	flag.Parse()
	runtime.GOMAXPROCS(min(cores, runtime.GOMAXPROCS(0)))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "disruption:", err)
		os.Exit(1)
	}
}

// measurement produces one row of figures.
type measurement struct {
	name    string
	measure func(ctx context.Context, s settings) (row any, err error)
}

func measurements() []measurement {
	return []measurement{
		evaluation("evaluation-1000", 1000, 1, workload.Loose),
		evaluation("evaluation-1000-tight", 1000, 1, workload.Tight),
		evaluation("evaluation-5000", 5000, 4, workload.Loose),
		evaluation("evaluation-5000-tight", 5000, 4, workload.Tight),
		{"day", simulatedDay},
		{"spot-day", spotDay},
		endToEnd("karpenter"),
		endToEnd("tenon"),
	}
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

func run(ctx context.Context, s settings) error {
	pattern, err := regexp.Compile(s.only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	for _, m := range measurements() {
		if !pattern.MatchString(m.name) {
			continue
		}
		row, err := m.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := keep(s.out, row); err != nil {
			return err
		}
	}
	return show(s.out)
}

// endToEnd lets one of the two do the work of package e2e.
func endToEnd(name string) measurement {
	return measurement{"end-to-end-" + name, func(ctx context.Context, s settings) (any, error) {
		figures, err := e2e.Run(ctx, e2e.Options{Bin: s.bin, Quiet: s.quiet, Limit: s.limit, Keep: s.keep, Progress: progress}, name)
		if err != nil {
			return nil, err
		}
		return figures[0], nil
	}}
}

// keep writes a row to the file, replacing one with the same name.
func keep(path string, row any) error {
	rows, err := read(path)
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(row)
	if err != nil {
		return err
	}
	name := nameOf(encoded)
	order := names()
	rows = append(slices.DeleteFunc(rows, func(r json.RawMessage) bool { return nameOf(r) == name }), encoded)
	slices.SortStableFunc(rows, func(a, b json.RawMessage) int {
		return slices.Index(order, nameOf(a)) - slices.Index(order, nameOf(b))
	})
	data, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func read(path string) ([]json.RawMessage, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(data, &rows); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return rows, nil
}

func nameOf(row json.RawMessage) string {
	var named struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(row, &named) // a row without a name has none
	return named.Name
}

// progress prints a line of progress to standard error.
func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}
