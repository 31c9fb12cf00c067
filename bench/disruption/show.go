package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/tenon-sh/tenon/bench/e2e"
)

// show prints the rows of the file.
func show(path string) error {
	rows, err := read(path)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		var err error
		switch name := nameOf(row); {
		case strings.HasPrefix(name, "evaluation"):
			err = showAs(row, func(r evaluated) {
				fmt.Fprintf(w, "%s\t%d nodes\t%d pods\tfirst command: Tenon %.3f s\tKarpenter %.1f s (%.1f s that moves pods)\tcommands in an hour: Tenon %d\tKarpenter %d\t", r.Name, r.Nodes, r.Pods,
					r.TenonFirstCommand, r.KarpenterFirst, r.KarpenterFirstMove, r.TenonFirstHour, r.KarpenterFirstHour)
				fmt.Fprintf(w, "whole look: Tenon %.3f s\tKarpenter %.1f s (%d of %d candidates asked)\t%.0f times\t\n",
					r.TenonSeconds, r.KarpenterSeconds, r.KarpenterAsked, r.KarpenterCandidates, r.Ratio)
			})
		case name == "day":
			err = showAs(row, func(r dayRow) {
				fmt.Fprintf(w, "%s\tTenon saves $%.2f, moves %d pods\tKarpenter saves $%.2f, moves %d pods\tof $%.2f\t\n",
					r.Name, r.TenonSaving, r.TenonPodsMoved, r.KarpenterSaving, r.KarpenterPodsMoved, r.DollarsWithout)
			})
		case name == "spot-day":
			err = showAs(row, func(r spotRow) {
				for _, side := range []struct {
					who string
					spotDays
				}{{"Tenon", r.Spread}, {"Tenon by price alone", r.Cheapest}, {"Karpenter", r.Karpenter}} {
					fmt.Fprintf(w, "%s\t%s\t$%.2f\t%d nodes with %d pods interrupted\t%.0f %% of a workload lost at once, %d times more than a third\t\n",
						r.Name, side.who, side.Dollars, side.NodesInterrupted, side.PodsInterrupted, 100*side.LargestLoss, side.LargeLosses)
				}
			})
		default:
			err = showAs(row, func(r e2e.Figures) {
				fmt.Fprintf(w, "%s\tRunning after %.0f s\t%.2f $/h on %d nodes at first (%.2f with root volumes)\t%.2f $/h on %d nodes after %.0f s (%.2f)\t%.0f s quiet\t%d pods moved\t",
					r.Name, r.SecondsToRunning, r.PricePerHourBefore, r.NodesBefore, r.WholePriceBefore, r.FinalPricePerHour, r.NodesFinal, r.SecondsToFinal, r.FinalWholePrice, r.QuietSeconds, r.PodsMoved)
				fmt.Fprintf(w, "%.0f CPU-s and %.0f of Temporal\t%d MiB at most and %d of Temporal\t\n",
					r.CPUSeconds, r.TemporalCPUSeconds, r.PeakRSSBytes>>20, r.TemporalPeakRSSBytes>>20)
			})
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

func showAs[T any](row json.RawMessage, print func(T)) error {
	var r T
	if err := json.Unmarshal(row, &r); err != nil {
		return err
	}
	print(r)
	return nil
}
