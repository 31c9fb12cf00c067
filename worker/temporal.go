package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// A worker needs Temporal to act, but not to run: without Temporal it starts, maintains its mirror, records what the cloud
// announces and closes the nodes that are interrupted. Readiness and a metric show that Temporal is away.

const (
	// askEvery is how often a worker checks whether Temporal answers, and askFor is how long one check may take.
	askEvery, askFor = 5 * time.Second, 5 * time.Second
	// awayAfter is how long Temporal may be silent before the worker reports it away.
	awayAfter = 15 * time.Second
)

// TemporalServer is the server behind a client. It may not answer.
type TemporalServer interface {
	// Ask returns an error unless the server answers for the worker's namespace.
	Ask(ctx context.Context) error
	// CheckAttributes returns an error if the namespace lacks any of these search attributes.
	CheckAttributes(ctx context.Context, attributes []string) error
}

// reach knows whether Temporal answers.
type reach struct {
	ask   func(ctx context.Context) error
	gauge prometheus.Gauge
	log   *zap.Logger
	// first is closed when Temporal has answered once.
	first chan struct{}

	mu sync.Mutex
	// answered is when Temporal answered last, initially when this worker began to ask. err is why it has not answered
	// since.
	answered time.Time
	err      error
}

// newReach returns a reach that has not asked yet.
func newReach(ask func(ctx context.Context) error, registry prometheus.Registerer, log *zap.Logger) (*reach, error) {
	r := &reach{ask: ask, log: log, first: make(chan struct{}), answered: time.Now(), err: errors.New("it was not asked yet"),
		gauge: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tenon", Name: "temporal_up",
			Help: "1 while the Temporal server answers for the worker's namespace; 0 when it has not for 15 seconds."})}
	if err := registry.Register(r.gauge); err != nil {
		return nil, fmt.Errorf("register the metric of Temporal: %w", err)
	}
	return r, nil
}

// run asks until ctx ends.
func (r *reach) run(ctx context.Context) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		asking, stop := context.WithTimeout(ctx, askFor)
		err := r.ask(asking)
		stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.hear(err, time.Now())
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// hear records how Temporal answered at an instant.
func (r *reach) hear(err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		if r.err != nil {
			r.log.Info("Temporal answers")
		}
		r.answered = now
		r.gauge.Set(1)
		select {
		case <-r.first:
		default:
			close(r.first)
		}
	case r.err == nil:
		r.log.Warn("Temporal does not answer", zap.Error(err))
	}
	r.err = err
	if now.Sub(r.answered) >= awayAfter {
		r.gauge.Set(0)
	}
}

// away returns why Temporal counts as away at an instant; nil if it does not.
func (r *reach) away(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent := now.Sub(r.answered)
	select {
	case <-r.first:
		if silent < awayAfter {
			return nil
		}
	default:
	}
	return fmt.Errorf("the Temporal server has not answered for %s: %w", silent.Round(time.Second), r.err)
}

// await returns when Temporal has answered once.
func (r *reach) await(ctx context.Context) error {
	select {
	case <-r.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
