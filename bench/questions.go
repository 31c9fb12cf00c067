package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/tenon-sh/tenon/bench/compare"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/workload"
	"github.com/tenon-sh/tenon/cloud"
)

// questions returns all questions, in the order of the table.
func questions(ctx context.Context) ([]question, error) {
	benchmark := market.Fake(400)
	ec2, err := market.EC2(ctx)
	if err != nil {
		return nil, fmt.Errorf("the instance types of EC2: %w", err)
	}
	progress("EC2 has %d instance types (%s may name a file of others)", len(ec2), market.CatalogueVariable)
	var list []question
	for _, count := range []int{500, 1000, 2000, 5000, 10_000, 20_000, 50_000} {
		list = append(list, question{name: fmt.Sprintf("diverse-%d", count), ask: func() *compare.Question {
			return workload.Ask("diverse", workload.Diverse(count), benchmark, workload.Unlimited())
		}})
	}
	preferring := func(ignore bool) func() *compare.Question {
		return func() *compare.Question {
			q := workload.Ask("preferences", workload.Preferring(4000, "test-zone-1"), benchmark, workload.Unlimited())
			q.IgnorePreferences = ignore
			return q
		}
	}
	list = append(list,
		question{name: "preferences-respect-4000", ask: preferring(false)},
		question{name: "preferences-ignore-4000", ask: preferring(true)},
	)
	return append(list, realQuestions(ec2)...), nil
}

// realQuestions returns the questions about the machines of EC2.
func realQuestions(ec2 []*cloud.InstanceType) []question {
	var list []question
	add := func(name string, nodes, good, impossible int, tenonOnly bool) {
		with := func(impossible int) func() *compare.Question {
			return func() *compare.Question {
				pods := append(workload.Diverse(good), workload.Impossible(impossible)...)
				q := workload.Ask(name, pods, ec2, workload.Unlimited())
				q.Nodes = workload.Nodes(nodes, "default", ec2)
				return q
			}
		}
		q := question{name: name, tenonOnly: tenonOnly, ask: with(impossible)}
		if impossible > 0 {
			q.good = with(0)
		}
		list = append(list, q)
	}
	add("ec2-1000", 0, 1000, 0, false)
	add("ec2-5000", 0, 5000, 0, true)
	add("ec2-2000-nodes-1000", 2000, 1000, 0, false)
	add("ec2-2000-nodes-5000", 2000, 5000, 0, false)
	add("ec2-500-and-500-impossible", 0, 500, 500, false)
	add("ec2-5000-and-5000-impossible", 0, 5000, 5000, true)
	for _, mix := range slices.Concat(workload.Mixes(ec2), workload.OnDemandMixes(ec2)) {
		list = append(list, question{name: mix.Name, ask: func() *compare.Question { return mix }})
	}
	for _, batch := range workload.Unprepared(ec2) {
		list = append(list, question{name: batch.Name, ask: batch.Ask, again: batch.Again})
	}
	return list
}
