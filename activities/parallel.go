package activities

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
)

const (
	// removers is how many nodes of a removal are worked on at once.
	removers = 16
	// triesEach is how often a node is tried that cannot be marked or removed, while others wait for it.
	triesEach = 3
)

// inParallel does something for each of so many nodes, for some at once. What fails for one keeps it from none of the
// others; the first of the errors is returned as it is, since Temporal reads its type.
func inParallel(ctx context.Context, nodes int, do func(ctx context.Context, i int) error) error {
	failed := make([]error, nodes)
	var group errgroup.Group
	group.SetLimit(removers)
	for i := range nodes {
		group.Go(func() error {
			failed[i] = do(ctx, i)
			return nil
		})
	}
	_ = group.Wait() // what failed stands beside each node
	return cmp.Or(failed...)
}
