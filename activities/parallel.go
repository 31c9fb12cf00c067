package activities

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
)

const (
	// removers is how many nodes of a removal are processed in parallel.
	removers = 16
	// triesEach is how often marking or removing a node is tried while other nodes wait for it.
	triesEach = 3
)

// inParallel calls do for each of the nodes, several at a time. A failure for one node does not stop the others; inParallel
// returns the first of the errors unwrapped, since Temporal reads its type.
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
	_ = group.Wait() // errors are in failed
	return cmp.Or(failed...)
}
