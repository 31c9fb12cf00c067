package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/tenon-sh/tenon/bench/contest"
)

// show prints what the file holds.
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
				fmt.Fprintf(w, "%s\t%d nodes\t%d pods\tTenon %.3f s\tKarpenter %.1f s (%d of %d candidates asked)\t%.0f times\t\n",
					r.Name, r.Nodes, r.Pods, r.TenonSeconds, r.PeerSeconds, r.PeerAsked, r.PeerCandidates, r.Ratio)
			})
		case name == "day":
			err = showAs(row, func(r dayRow) {
				fmt.Fprintf(w, "%s\tTenon saves $%.2f, moves %d pods\tKarpenter saves $%.2f, moves %d pods\tof $%.2f\t\n",
					r.Name, r.TenonSaving, r.TenonPodsMoved, r.PeerSaving, r.PeerPodsMoved, r.DollarsWithout)
			})
		default:
			err = showAs(row, func(r contest.Figures) {
				fmt.Fprintf(w, "%s\t%.2f $/h at first\t%.2f $/h after %.0f s\t%d pods moved\t%.0f CPU-s\t%d MiB at most\t\n",
					r.Name, r.PricePerHourBefore, r.FinalPricePerHour, r.SecondsToFinal, r.PodsMoved, r.CPUSeconds, r.PeakRSSBytes>>20)
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
