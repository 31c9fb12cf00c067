// Burst counts the nodes that Tenon and Karpenter each buy for pods that arrive all at once, while machines boot slowly and
// the kube-scheduler is slow. Both do the same work, one after the other, each in a laboratory of its own (e2e.Burst).
//
// The number of nodes needed is known beforehand. Any node beyond that is overshoot: the pods had a place already, but it
// was not visible yet, so they were planned for again.
//
// The flag -apart chooses what keeps the large pods apart: anti-affinity, host-port and spread are rules about hosts; size
// puts large pods beside small ones without any rule. Volumes are not a choice: neither laboratory has a CSI driver that
// counts them.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tenon-sh/tenon/bench/e2e"
)

func main() {
	var b e2e.Burst
	o := e2e.Options{Progress: progress}
	flag.StringVar(&b.Apart, "apart", "anti-affinity", fmt.Sprintf("what keeps large pods apart: `one` of %v", e2e.Aparts()))
	flag.IntVar(&b.Large, "large", 400, "`number` of large pods")
	flag.IntVar(&b.Small, "small", 3600, "`number` of small pods")
	flag.DurationVar(&b.Boot, "boot", 10*time.Second, "how long a machine takes to boot, in whole seconds")
	flag.IntVar(&b.SchedulerQPS, "scheduler-qps", 5, "how many `requests` the kube-scheduler may make in a second; its own default is 50")
	flag.StringVar(&o.Bin, "bin", "../bin", "`directory` of the laboratory's programs")
	flag.StringVar(&o.Keep, "keep", "", "keep the logs of the laboratories, and write the course of either to this `directory`")
	flag.DurationVar(&o.Limit, "limit", time.Hour, "how long it may take until all pods run")
	out := flag.String("out", "", "also write the figures to this `file`")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: burst [flags] [tenon] [karpenter]")
		flag.PrintDefaults()
	}
	flag.Parse()
	names := flag.Args()
	if len(names) == 0 {
		names = []string{"tenon", "karpenter"}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, b, names, *out); err != nil {
		fmt.Fprintln(os.Stderr, "burst:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o e2e.Options, b e2e.Burst, names []string, out string) error {
	var all []e2e.BurstFigures
	for _, name := range names {
		figures, err := e2e.RunBurst(ctx, o, b, name)
		if err != nil {
			return err
		}
		all = append(all, figures)
	}
	if out != "" {
		data, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(out, append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	return show(b, all)
}

// show prints the figures as a table that can be pasted into a page.
func show(b e2e.Burst, all []e2e.BurstFigures) error {
	fmt.Printf("%d large pods (%s) beside %d small ones, boots of %s, kube-scheduler with %d requests a second\n\n", b.Large, b.Apart, b.Small, b.Boot, b.SchedulerQPS)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "|\t| nodes needed\t| of the first plan\t| most\t| over what is needed\t| in the end\t| $/h in the end\t| all Running after\t|")
	fmt.Fprintln(w, "|"+strings.Repeat("---\t|", 8))
	for _, f := range all {
		fmt.Fprintf(w, "| %s\t| %d\t| %d\t| %d\t| %.1f %%\t| %d\t| %.2f\t| %.0f s\t|\n", f.Name, f.Needed, f.FirstPlan, f.Peak,
			100*(float64(f.Peak)/float64(f.Needed)-1), f.Final, f.PricePerHour, f.SecondsToRunning)
	}
	return w.Flush()
}

// progress prints a line of progress to standard error.
func progress(format string, values ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", values...)
}
