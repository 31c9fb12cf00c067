package starter

import (
	"context"
	"time"

	"github.com/tenon-sh/tenon/cluster"
)

// awaitEvents waits for events, at most for wait unless that is zero.
func awaitEvents(ctx context.Context, events *cluster.Subscription, wait time.Duration) []cluster.Event {
	var over <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ctx.Done():
	case <-over:
	case <-events.C:
		return events.Take()
	}
	return nil
}
