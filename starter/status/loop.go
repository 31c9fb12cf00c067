package status

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/cluster"
)

const (
	// statusEvery is how often the status of one object is written at most.
	statusEvery = 2 * time.Second
	// statusRetry is how long after a failed write it is tried again.
	statusRetry = 5 * time.Second
	// atOnce has the next look follow as soon as it may.
	atOnce = time.Nanosecond
)

// watched is the mirror as a loop watches it.
type watched interface {
	WaitSynced(ctx context.Context) error
	Subscribe(kinds ...cluster.EventKind) *cluster.Subscription
}

// loop is how what is written about objects of one kind is kept true: it is looked at after every change of what it follows
// from, and again when a look says so.
type loop struct {
	// what is written, in words.
	what string
	// kinds are the events that may change it.
	kinds []cluster.EventKind
	// rest is how long after a look the next one begins at the earliest.
	rest time.Duration
	// look brings it up to date, and says when to look again without a change; zero for never.
	look func(ctx context.Context) (again time.Duration, err error)
}

// run runs the loop until ctx ends. What could not be written is tried again after statusRetry.
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
