package aws

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/singleflight"
)

// retryRefresh is how long to wait after a failed refresh before the next one.
const retryRefresh = time.Minute

// background runs the refreshes of a provider and stops them when it is closed.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func newBackground() *background {
	ctx, cancel := context.WithCancel(context.Background())
	return &background{ctx: ctx, cancel: cancel}
}

func (b *background) do(f func(context.Context)) {
	if b.ctx.Err() != nil {
		return
	}
	b.wg.Go(func() { f(b.ctx) })
}

func (b *background) close() {
	b.cancel()
	b.wg.Wait()
}

// refreshed is a value that is loaded on first use and loaded again in the background once it is old. Callers wait for
// the first load only. A failed refresh keeps the old value and is logged.
type refreshed[T any] struct {
	name string
	ttl  time.Duration
	load func(context.Context) (T, error)
	now  func() time.Time
	log  *zap.Logger
	bg   *background
	// optional values are empty when their first load fails; it is then retried like a failed refresh.
	optional bool
	// patience, if it is set, is how long callers wait in total for the first load. After that they get an empty value
	// until the load succeeds.
	patience time.Duration

	flight singleflight.Group
	mu     sync.Mutex
	// lost is closed when the patience has run out; nil before the first call.
	lost  chan struct{}
	value T
	seq   uint64 // counts the loads; 0 before the first
	next  time.Time
	busy  bool
}

// get returns the value and the number of its load, which changes whenever the value does.
func (r *refreshed[T]) get(ctx context.Context) (T, uint64, error) {
	r.mu.Lock()
	if r.seq > 0 {
		defer r.mu.Unlock()
		if !r.busy && !r.now().Before(r.next) {
			r.busy = true
			r.bg.do(r.refresh)
		}
		return r.value, r.seq, nil
	}
	if r.lost == nil {
		r.lost = make(chan struct{})
		if r.patience > 0 {
			time.AfterFunc(r.patience, func() { close(r.lost) })
		}
	}
	lost := r.lost
	r.mu.Unlock()
	// The load continues when a caller gives up, because others may be waiting for it.
	done := r.flight.DoChan("", func() (any, error) {
		r.mu.Lock()
		loaded := r.seq > 0
		r.mu.Unlock()
		if loaded {
			return nil, nil
		}
		value, err := r.load(r.bg.ctx)
		if err != nil && !r.optional {
			return nil, err
		}
		r.store(value)
		if err != nil {
			r.failed(err)
		}
		return nil, nil
	})
	var zero T
	select {
	case <-ctx.Done():
		return zero, 0, ctx.Err()
	case <-lost:
		return zero, 0, nil
	case result := <-done:
		if result.Err != nil {
			return zero, 0, result.Err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, r.seq, nil
}

func (r *refreshed[T]) refresh(ctx context.Context) {
	value, err := r.load(ctx)
	if err == nil {
		r.store(value)
		return
	}
	if ctx.Err() == nil {
		r.failed(err)
	}
}

func (r *refreshed[T]) failed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	r.next = r.now().Add(retryRefresh)
	r.log.Warn("refresh failed, the old values stay in use", zap.String("what", r.name), zap.Error(err))
}

func (r *refreshed[T]) store(value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.value, r.busy = value, false
	r.seq++
	r.next = r.now().Add(r.ttl)
}
