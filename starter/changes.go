package starter

import (
	"context"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/tenon-sh/tenon/cluster"
)

// handlers is the number of events handled at once. Each waits some milliseconds for Temporal.
const handlers = 16

// changes looks at each claim and each Node after it has changed, and at all of them at the start.
type changes struct {
	mirror Mirror
	queue  queue
	claims *claims
	nodes  *nodes
	log    *zap.Logger
}

// watch looks at claims and Nodes until ctx ends.
func (c *changes) watch(ctx context.Context) error {
	events := c.mirror.Subscribe(cluster.ClaimChanged, cluster.NodeChanged)
	defer events.Close()
	for _, claim := range c.mirror.Claims() {
		c.queue.Add(claimEvent(claim.Name))
	}
	for _, node := range c.mirror.Nodes() {
		c.queue.Add(cluster.Event{Kind: cluster.NodeChanged, Name: node.Name})
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.forward(ctx, events) })
	for range handlers {
		group.Go(func() error { c.handle(ctx); return nil })
	}
	return group.Wait()
}

// forward moves events into the queue, which merges and retries them.
func (c *changes) forward(ctx context.Context, events *cluster.Subscription) error {
	defer c.queue.ShutDown()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events.C:
			for _, event := range events.Take() {
				c.queue.Add(event)
			}
		}
	}
}

// handle processes the queue. Failures are retried with backoff.
func (c *changes) handle(ctx context.Context) {
	for {
		event, done := c.queue.Get()
		if done {
			return
		}
		var again time.Duration
		var err error
		switch event.Kind {
		case cluster.ClaimChanged:
			again, err = c.claims.changed(ctx, event.Name)
		case cluster.NodeChanged:
			err = c.nodes.changed(ctx, event.Name)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			c.log.Warn("starter will try again", zap.String("event", string(event.Kind)), zap.String("name", event.Name), zap.Error(err))
			c.queue.AddRateLimited(event)
		default:
			c.queue.Forget(event)
			if again > 0 {
				c.queue.AddAfter(event, again)
			}
		}
		c.queue.Done(event)
	}
}
