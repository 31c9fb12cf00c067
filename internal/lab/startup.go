package lab

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// startTimeout bounds how long one component may take to become healthy; a loaded machine takes a tenth of it.
const startTimeout = 3 * time.Minute

// startup is what the goroutines that start a lab wait for.
type startup struct {
	healthy map[Component]chan struct{} // closed when the component is healthy; none for one that is left out
	applied chan struct{}               // closed when the resources are applied
}

// startProcesses starts every process as soon as those it needs are healthy, and applies the resources as soon as the
// API server answers. It returns when all are healthy.
func (l *Lab) startProcesses(ctx context.Context) error {
	began := time.Now()
	s := startup{healthy: map[Component]chan struct{}{}, applied: make(chan struct{})}
	for _, p := range l.processes {
		s.healthy[p.spec.name] = make(chan struct{})
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range l.processes {
		group.Go(func() error { return l.startProcess(ctx, p, s) })
	}
	group.Go(func() error {
		if s.healthy[APIServer] != nil {
			if err := await(ctx, s.healthy[APIServer]); err != nil {
				return err
			}
			if err := l.applyResources(ctx); err != nil {
				return err
			}
		}
		close(s.applied)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	l.progress.printf("lab up after %.1f s", time.Since(began).Seconds())
	return nil
}

func (l *Lab) startProcess(ctx context.Context, p *process, s startup) error {
	for _, need := range p.spec.needs {
		if err := await(ctx, s.healthy[need]); err != nil {
			return err
		}
	}
	if p.spec.needsResources {
		if err := await(ctx, s.applied); err != nil {
			return err
		}
	}
	started := time.Now()
	p.start()
	if err := p.awaitHealthy(ctx); err != nil {
		return err
	}
	l.progress.printf("%-24s healthy after %.1f s", p.spec.name, time.Since(started).Seconds())
	close(s.healthy[p.spec.name])
	return nil
}

// await waits until done is closed. A nil channel belongs to a component that is left out and is not waited for.
func await(ctx context.Context, done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
