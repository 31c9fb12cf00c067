package main

import (
	"errors"
	"fmt"
	"regexp"
)

// Limits that the rows have to meet.
const (
	// maxOfBound is how many times the bound a plan may cost, and meanOfBound the same on average over all rows.
	maxOfBound, meanOfBound = 1.15, 1.08
	// maxOfHand is how many times the price by hand a plan may cost: no more than that price, apart from the cost of
	// spreading pods.
	maxOfHand = 1.01
	// maxOfUnlimited is how many times as much a plan near its limits may cost as one without limits.
	maxOfUnlimited = 1.05
	// roundOff is what sums of prices may differ by.
	roundOff = 1 + 1e-6
)

// standards are limits on time and memory for some rows.
var standards = []struct {
	rows    *regexp.Regexp
	seconds float64
	mib     float64
}{
	{rows: regexp.MustCompile(`^distinct-5000-`), seconds: 1},
	{rows: regexp.MustCompile(`^distinct-50000-`), seconds: 12},
	{rows: regexp.MustCompile(`^distinct-10000-`), mib: 150},
	{rows: regexp.MustCompile(`^10000-nodes-500-`), seconds: 0.5},
}

// judge returns an error that names every row that misses a figure, and which figure.
func judge(figures []figure) error {
	var missed []error
	bounded, sum := 0, 0.0
	for i := range figures {
		f := &figures[i]
		for _, miss := range f.misses() {
			missed = append(missed, fmt.Errorf("%s: %s", f.Name, miss))
		}
		if f.Bound > 0 {
			bounded, sum = bounded+1, sum+f.Tenon.Cost/f.Bound
		}
	}
	if bounded > 0 && sum/float64(bounded) > meanOfBound {
		missed = append(missed, fmt.Errorf("all rows: plans cost %.3f times the bound on average over %d rows, want at most %.2f", sum/float64(bounded), bounded, meanOfBound))
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d figures are missed:\n%w", len(missed), errors.Join(missed...))
	}
	return nil
}

// misses returns the figures that a row misses.
func (f *figure) misses() []string {
	var misses []string
	miss := func(format string, values ...any) { misses = append(misses, fmt.Sprintf(format, values...)) }
	for _, plan := range []struct {
		name string
		made made
	}{{"the plan", f.Tenon}, {"the plan without nomination", f.NotNominated}} {
		if f.Bound > 0 && plan.made.Cost > f.Bound*maxOfBound {
			miss("%s costs %.3f times the bound, want at most %.2f", plan.name, plan.made.Cost/f.Bound, maxOfBound)
		}
		if hand := f.leastByHand(); hand > 0 && f.Unlimited == 0 && plan.made.Cost > hand*maxOfHand {
			miss("%s costs %.3f times what it costs by hand, want at most %.2f", plan.name, plan.made.Cost/hand, maxOfHand)
		}
		if f.Unlimited > 0 && plan.made.Cost > f.Unlimited*maxOfUnlimited {
			miss("%s costs %.3f times what it costs without limits, want at most %.2f", plan.name, plan.made.Cost/f.Unlimited, maxOfUnlimited)
		}
		if plan.made.Unplaced > 0 && !f.Impossible {
			miss("%s leaves %d pods", plan.name, plan.made.Unplaced)
		}
		if f.Bound > 0 && plan.made.Unplaced == 0 && f.Bound > plan.made.Cost*roundOff {
			miss("the bound is $%.4f/h, and %s costs $%.4f/h", f.Bound, plan.name, plan.made.Cost)
		}
	}
	if hand := f.leastByHand(); hand > 0 && f.Bound > hand*roundOff {
		miss("the bound is $%.4f/h, and by hand it costs $%.4f/h", f.Bound, hand)
	}
	if f.Karpenter != nil && f.Karpenter.Unplaced < f.Tenon.Unplaced {
		miss("the plan leaves %d pods, and Karpenter %d", f.Tenon.Unplaced, f.Karpenter.Unplaced)
	}
	for _, s := range standards {
		if !s.rows.MatchString(f.Name) {
			continue
		}
		if s.seconds > 0 && f.Tenon.Seconds > s.seconds {
			miss("planning takes %.2f s, want at most %g", f.Tenon.Seconds, s.seconds)
		}
		if s.mib > 0 && f.PeakMiB > s.mib {
			miss("planning takes %.0f MiB, want at most %g", f.PeakMiB, s.mib)
		}
	}
	return misses
}

// leastByHand returns the lowest price by hand; zero if there is none.
func (f *figure) leastByHand() float64 {
	if f.OneType > 0 {
		return min(f.FirstFit, f.OneType)
	}
	return f.FirstFit
}
