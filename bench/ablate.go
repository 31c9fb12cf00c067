package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/tenon"
	"github.com/tenon-sh/tenon/plan"
)

// maxAblated limits the pods of the questions that ablate asks: larger ones take minutes.
const maxAblated = 10_000

// effect is what a strategy contributes over all questions.
type effect struct {
	// gain is the sum of the savings, as parts of the price, and the number of questions.
	gain mean
	// most is the largest saving, and least the smallest: below zero, the plan is cheaper without the strategy.
	most, least     float64
	mostOf, leastOf string
	// with and without are the processor time of all plans with and without the strategy.
	with, without time.Duration
}

func (e *effect) add(question string, with, without spent) {
	if with.unplaced != without.unplaced {
		fmt.Fprintf(os.Stderr, "%s: %d pods are unplaced, and %d without the strategy: not compared\n", question, with.unplaced, without.unplaced)
		return
	}
	if with.cost == 0 {
		return // nothing is bought
	}
	gain := without.cost/with.cost - 1
	if e.gain.of == 0 || gain > e.most {
		e.most, e.mostOf = gain, question
	}
	if e.gain.of == 0 || gain < e.least {
		e.least, e.leastOf = gain, question
	}
	e.gain.add(gain)
	e.with += with.took
	e.without += without.took
}

// spent is the cost of answering a question: the price in US dollars per hour and the processor time.
type spent struct {
	cost     float64
	unplaced int
	took     time.Duration
}

// ablate asks each question with all strategies of the planner and with all but one, and prints what each strategy saves in
// price and costs in time. It does so once for pods that are nominated to their nodes, and once for pods that the
// kube-scheduler places freely, with the price that results in the end (settle.go).
func ablate(ctx context.Context, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	list, err := questions(ctx)
	if err != nil {
		return err
	}
	strategies := plan.Strategies()
	var nominated, settled = make([]effect, len(strategies)), make([]effect, len(strategies))
	large := 0
	for _, q := range list {
		if !pattern.MatchString(q.name) || ctx.Err() != nil {
			continue
		}
		asked := q.ask()
		if len(asked.Pods) > maxAblated {
			large++
			continue
		}
		nominatedPrice(asked, "") // the first run takes longer
		all := nominatedPrice(asked, "")
		for i, s := range strategies {
			nominated[i].add(q.name, all, nominatedPrice(asked, s))
		}
		if plain(asked) {
			all := settledPrice(asked, "")
			for i, s := range strategies {
				settled[i].add(q.name, all, settledPrice(asked, s))
			}
		}
		progress("%s: %d pods, $%.3f/h, %v for one plan", q.name, len(asked.Pods), all.cost, all.took.Round(time.Millisecond))
	}
	if err := printEffects("pods are nominated to their nodes", strategies, nominated); err != nil {
		return err
	}
	if err := printEffects("the kube-scheduler places pods as it likes: the price in the end, of pods without rules", strategies, settled); err != nil {
		return err
	}
	fmt.Printf("%d questions with more than %d pods are left out.\n", large, maxAblated)
	return ctx.Err()
}

// printEffects prints a line for each strategy, the one that saves the most first.
func printEffects(title string, strategies []string, effects []effect) error {
	if len(effects) == 0 || effects[0].gain.of == 0 {
		return nil
	}
	fmt.Printf("Where %s (%d questions):\n\n", title, effects[0].gain.of)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "strategy\tsaves at most\tof\tat least\tof\ton average\ttime")
	order := slices.Collect(maps.Keys(maps.Collect(slices.All(effects))))
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(-cmp.Compare(effects[a].most, effects[b].most), cmp.Compare(a, b))
	})
	for _, i := range order {
		e := &effects[i]
		fmt.Fprintf(w, "%s\t%.2f %%\t%s\t%.2f %%\t%s\t%.2f %%\t× %.2f\n", strategies[i], 100*e.most, e.mostOf, 100*e.least, e.leastOf,
			100*e.gain.sum/float64(e.gain.of), float64(e.with)/float64(e.without))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// nominatedPrice returns the price of the plan without a strategy if every pod goes to the node that the plan has for it.
func nominatedPrice(q *compare.Question, without string) spent {
	a, took := tenon.PlanWithout(q, without)
	return spent{a.Cost(), len(a.Unplaced), took}
}
