package main

import (
	"fmt"
	"os"
	"text/tabwriter"
)

// table prints the figures.
func table(figures []figure) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "question\tpods\tbound $/h\tTenon $/h\ttimes\tnot nominated\tKarpenter $/h\tfirst fit\tone type\tnodes\tnot nominated\tKarpenter\tfirst fit\tTenon s\tKarpenter s\tMiB\tunplaced\tKarpenter\t")
	for i := range figures {
		f := &figures[i]
		karpenters := [...]string{"-", "-", "-", "-"}
		if f.Karpenter != nil {
			karpenters = [...]string{dollars(f.Karpenter.Cost), fmt.Sprint(f.Karpenter.Nodes), fmt.Sprintf("%.2f", f.Karpenter.Seconds), fmt.Sprint(f.Karpenter.Unplaced)}
		}
		times := "-"
		if f.Bound > 0 {
			times = fmt.Sprintf("%.3f", f.Tenon.Cost/f.Bound)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%.3f\t%s\t%.0f\t%d\t%s\t\n", f.Name, f.Pods,
			dollars(f.Bound), dollars(f.Tenon.Cost), times, dollars(f.NotNominated.Cost), karpenters[0], dollars(f.FirstFit), dollars(f.OneType),
			f.Tenon.Nodes, f.NotNominated.Nodes, karpenters[1], count(f.FirstFitNodes), f.Tenon.Seconds, karpenters[2], f.PeakMiB, f.Tenon.Unplaced, karpenters[3])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	remarks(figures)
	return nil
}

func dollars(price float64) string {
	if price == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", price)
}

func count(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// remarks prints averages and notes below the table.
func remarks(figures []figure) {
	for _, capacity := range []string{"on-demand", "spot"} {
		averages(capacity, figures)
	}
	for _, f := range figures {
		if f.Slowdown != nil {
			fmt.Printf("%s: the pods that fit nowhere take %.1f %% more processor time than the others alone\n", f.Name, 100**f.Slowdown)
		}
		if f.KarpenterNotAsked != "" {
			fmt.Printf("%s: no answer of Karpenter's: %s\n", f.Name, f.KarpenterNotAsked)
		}
	}
}

// mean is a sum and its number of terms.
type mean struct {
	sum float64
	of  int
}

func (m *mean) add(value float64) { m.sum, m.of = m.sum+value, m.of+1 }

// averages prints how the plans for one capacity compare.
func averages(capacity string, figures []figure) {
	var bound, untold, hand, karpenters, nodes mean
	dearer := 0
	for i := range figures {
		f := &figures[i]
		if f.Capacity != capacity || f.Tenon.Cost == 0 {
			continue
		}
		if f.Bound > 0 {
			bound.add(f.Tenon.Cost / f.Bound)
			untold.add(f.NotNominated.Cost / f.Bound)
		}
		if least := f.leastByHand(); least > 0 {
			hand.add(f.Tenon.Cost / least)
		}
		if f.Karpenter != nil && f.Karpenter.Cost > 0 && f.Karpenter.Unplaced == f.Tenon.Unplaced {
			karpenters.add(f.Tenon.Cost / f.Karpenter.Cost)
			nodes.add(float64(f.Tenon.Nodes) / float64(f.Karpenter.Nodes))
			if f.Tenon.Cost > f.Karpenter.Cost {
				dearer++
			}
		}
	}
	for _, line := range []struct {
		what string
		mean mean
	}{{"the bound", bound}, {"the bound where pods are not nominated", untold}, {"the price by hand", hand}, {"Karpenter's price", karpenters}, {"Karpenter's nodes", nodes}} {
		if line.mean.of > 0 {
			fmt.Printf("%s: %.3f times %s on average (%d questions)\n", capacity, line.mean.sum/float64(line.mean.of), line.what, line.mean.of)
		}
	}
	if dearer > 0 {
		fmt.Printf("%s: %d plans are dearer than Karpenter's\n", capacity, dearer)
	}
}
