package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/tenon-sh/tenon/bench/day"
	"github.com/tenon-sh/tenon/bench/market"
	"github.com/tenon-sh/tenon/bench/tenon"
)

func main() {
	ctx := context.Background()
	catalogue, err := market.Common(ctx)
	if err != nil {
		panic(err)
	}
	type row struct{ s string }
	rows := make([]string, 6)
	var wg sync.WaitGroup
	sem := make(chan bool, 2)
	for i := range rows {
		wg.Add(1)
		go func() {
			defer wg.Done()
			sem <- true
			defer func() { <-sem }()
			o := day.Usual(catalogue)
			o.Seed = uint64(i%5 + 1)
			o.Deployments = 12
			if i >= 5 {
				o.Deployments = 40
				o.Seed = uint64(i - 4)
			}
			a, err := day.Run(ctx, o, day.Empty)
			if err != nil {
				panic(err)
			}
			b, err := day.Run(ctx, o, tenon.Consolidate)
			if err != nil {
				panic(err)
			}
			rows[i] = fmt.Sprintf("%d/%d: saves %.1f moves %d taken %d", o.Deployments, o.Seed, a.Dollars-b.Dollars, b.PodsMoved, b.NodesTaken)
		}()
	}
	wg.Wait()
	for _, r := range rows {
		fmt.Println(os.Getenv("FIELD"), r)
	}
}
