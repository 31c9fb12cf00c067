package lab

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// startup starts the processes of a lab, each as soon as its dependencies are ready.
type startup struct {
	processes []*process
	apply     func(context.Context) error
	progress  *progress
	healthy   map[Component]chan struct{} // closed when healthy; no entry for a component that is left out
	applied   chan struct{}               // closed when the resources are applied
}

func newStartup(processes []*process, apply func(context.Context) error, progress *progress) *startup {
	s := &startup{processes: processes, apply: apply, progress: progress, healthy: map[Component]chan struct{}{}, applied: make(chan struct{})}
	for _, p := range processes {
		s.healthy[p.spec.name] = make(chan struct{})
	}
	return s
}

// run starts every process as soon as those it needs are healthy, and applies the resources as soon as the API server is
// healthy. It returns when all processes are healthy.
func (s *startup) run(ctx context.Context) error {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range s.processes {
		group.Go(func() error { return s.start(ctx, p) })
	}
	group.Go(func() error {
		if s.healthy[APIServer] != nil {
			if err := await(ctx, s.healthy[APIServer]); err != nil {
				return err
			}
			if err := s.apply(ctx); err != nil {
				return err
			}
		}
		close(s.applied)
		return nil
	})
	if err := group.Wait(); err != nil {
		return err
	}
	s.progress.printf("lab up after %.1f s", time.Since(began).Seconds())
	return nil
}

// start starts a process once its dependencies are ready, and returns when it is healthy.
func (s *startup) start(ctx context.Context, p *process) error {
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
	s.progress.printf("%-24s healthy after %.1f s", p.spec.name, time.Since(started).Seconds())
	close(s.healthy[p.spec.name])
	return nil
}

// await waits until done is closed. It returns at once if done is nil, which stands for a component that is left out.
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
