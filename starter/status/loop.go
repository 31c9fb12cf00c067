package status

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cluster"
)

const (
	// statusEvery is the minimum interval between writes of one object's status.
	statusEvery = 2 * time.Second
	// statusRetry is how long after a failed write it is retried.
	statusRetry = 5 * time.Second
	// atOnce makes the next look follow as soon as it may.
	atOnce = time.Nanosecond
)

// watched is the part of the mirror that a loop watches.
type watched interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
}

// loop keeps the status of the objects of one kind up to date: it looks after every change that may affect it, and
// again when a look says so.
type loop struct {
	// what names what is written.
	what string
	// kinds are the events that may change it.
	kinds []cluster.EventKind
	// rest is the minimum pause after a look.
	rest time.Duration
	// look brings the status up to date, and returns when to look again without a change; zero for never.
	look func(ctx context.Context) (again time.Duration, err error)
}

// run runs the loop until ctx ends. It looks again after statusRetry if a look has failed.
func (l loop) run(ctx context.Context, mirror watched, log *zap.Logger) error {
	if err := mirror.WaitSynced(ctx); err != nil {
		return fmt.Errorf("%s: wait for the mirror: %w", l.what, err)
	}
	events := mirror.Subscribe(l.kinds...)
	defer events.Close()
	for {
		events.Take()
		again, err := l.look(ctx)
		if err != nil && ctx.Err() == nil {
			log.Warn(l.what+" will be written again", zap.Error(err))
			if again != atOnce {
				again = statusRetry
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.rest):
		}
		var over <-chan time.Time
		if again > 0 {
			over = time.After(again)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
		case <-events.C:
		}
	}
}
