package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
)

// markdown prints the tables of docs/figures.md from the file: the rows that match, one table per capacity, in the order of
// Tenon's price relative to the best other one, the worst first.
func markdown(w io.Writer, only, path string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var figures []figure
	if err := json.Unmarshal(data, &figures); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for _, capacity := range []string{"on-demand", "spot"} {
		rows := slices.DeleteFunc(slices.Clone(figures), func(f figure) bool { return f.Capacity != capacity || !pattern.MatchString(f.Name) })
		if len(rows) == 0 {
			continue
		}
		slices.SortStableFunc(rows, func(a, b figure) int { return cmp.Compare(b.beside(), a.beside()) })
		fmt.Fprintf(w, "| %s | pods | Tenon, $/h (nodes) | not nominated | Karpenter | first fit by hand | one type by hand | bound, $/h | times the bound | Tenon, s | Karpenter, s | Tenon, MiB |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n", capacity)
		for i := range rows {
			f := &rows[i]
			karpenters, karpenterSeconds, times := "not asked", "", ""
			if f.Karpenter != nil {
				karpenters, karpenterSeconds = priced(f.Karpenter.Cost, f.Karpenter.Nodes), fmt.Sprintf("%.2f", f.Karpenter.Seconds)
			}
			if f.Bound > 0 {
				times = fmt.Sprintf("%.3f", f.Tenon.Cost/f.Bound)
			}
			fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %.2f | %s | %.0f |\n", f.Name, f.Pods, priced(f.Tenon.Cost, f.Tenon.Nodes),
				priced(f.NotNominated.Cost, f.NotNominated.Nodes), karpenters, priced(f.FirstFit, f.FirstFitNodes), priced(f.OneType, 0), priced(f.Bound, 0), times, f.Tenon.Seconds, karpenterSeconds, f.PeakMiB)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// beside returns the price of Tenon's plan relative to the best other one; zero if there is no other.
func (f *figure) beside() float64 {
	best := f.leastByHand()
	if f.Karpenter != nil && f.Karpenter.Cost > 0 && f.Karpenter.Unplaced <= f.Tenon.Unplaced && (best == 0 || f.Karpenter.Cost < best) {
		best = f.Karpenter.Cost
	}
	if best == 0 {
		return 0
	}
	return f.Tenon.Cost / best
}

func priced(price float64, nodes int) string {
	switch {
	case price == 0:
		return ""
	case nodes == 0:
		return fmt.Sprintf("%.2f", price)
	}
	return fmt.Sprintf("%.2f (%d)", price, nodes)
}
