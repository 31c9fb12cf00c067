package aws

import (
	"context"
	"sync"
	"time"
)

const (
	// batchIdle is how long a batch waits for the next caller.
	batchIdle = 100 * time.Millisecond
	// batchMax is how long a batch waits in total.
	batchMax = time.Second
	// batchSize is how many ids a batch holds.
	batchSize = 500
	// batchTimeout limits the calls of one batch, including retries and waits for tokens.
	batchTimeout = 2 * time.Minute
)

// batcher combines the requests that concurrent callers make about ids into few calls.
type batcher[R any] struct {
	bg *background
	// run answers for all ids of a batch. Ids without an answer are left out of the map.
	run func(ctx context.Context, ids []string) (map[string]R, error)
	// counted is told the size of each batch, and for how long it was open.
	counted func(size int, open time.Duration)

	mu   sync.Mutex
	open *batch[R]
}

type batch[R any] struct {
	ids     map[string]struct{}
	opened  time.Time
	timer   *time.Timer
	done    chan struct{}
	results map[string]R
	err     error
}

func newBatcher[R any](bg *background, run func(context.Context, []string) (map[string]R, error), counted func(size int, open time.Duration)) *batcher[R] {
	return &batcher[R]{bg: bg, run: run, counted: counted}
}

// do returns the answers for ids, together with those for other callers' ids in the same batch.
func (b *batcher[R]) do(ctx context.Context, ids []string) (map[string]R, error) {
	joined := b.join(ids)
	select {
	case <-joined.done:
		return joined.results, joined.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *batcher[R]) join(ids []string) *batch[R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := b.open
	if current == nil {
		current = &batch[R]{ids: make(map[string]struct{}), opened: time.Now(), done: make(chan struct{})}
		current.timer = time.AfterFunc(batchIdle, func() { b.fire(current) })
		b.open = current
	}
	for _, id := range ids {
		current.ids[id] = struct{}{}
	}
	switch {
	case len(current.ids) >= batchSize:
		current.timer.Stop()
		b.open = nil
		go b.execute(current)
	case time.Since(current.opened) < batchMax-batchIdle:
		current.timer.Reset(batchIdle)
	}
	return current
}

// fire closes and executes a batch whose timer has expired.
func (b *batcher[R]) fire(current *batch[R]) {
	b.mu.Lock()
	if b.open != current {
		b.mu.Unlock()
		return
	}
	b.open = nil
	b.mu.Unlock()
	b.execute(current)
}

func (b *batcher[R]) execute(current *batch[R]) {
	defer close(current.done)
	ids := make([]string, 0, len(current.ids))
	for id := range current.ids {
		ids = append(ids, id)
	}
	b.counted(len(ids), time.Since(current.opened))
	ctx, cancel := context.WithTimeout(b.bg.ctx, batchTimeout)
	defer cancel()
	current.results, current.err = b.run(ctx, ids)
}
