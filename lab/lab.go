package lab

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
)

// Lab is a running lab. Its methods may be called from several goroutines.
type Lab struct {
	site
	opts      Options
	lock      *lock
	reserved  reservedPorts
	spawner   *spawner
	progress  *progress
	processes []*process
}

// Start starts a lab, or resumes the one in the directory, and returns when every component is healthy and the resources
// are applied. If it fails, nothing is left running. The context limits only the start; a started lab runs until Stop.
func Start(ctx context.Context, opts Options) (*Lab, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	layout := newLayout(opts.Dir)
	if err := layout.create(); err != nil {
		return nil, err
	}
	lock, err := acquire(layout.lockFile())
	if err != nil {
		return nil, fmt.Errorf("starting a lab in %s: %w", opts.Dir, err)
	}
	l := &Lab{site: site{layout: layout}, opts: opts, lock: lock, progress: newProgress(opts.Progress)}
	if err := l.start(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	if err := killLeftovers(l.layout); err != nil {
		return err
	}
	if l.opts.Supervisor != "" {
		if err := l.layout.writePID(l.opts.Supervisor, os.Getpid()); err != nil {
			return err
		}
	}
	state, reserved, err := openState(l.layout, l.opts.Cluster, l.opts.Provider)
	if err != nil {
		return err
	}
	l.state, l.reserved = state, reserved
	if err := writePKI(l.layout); err != nil {
		return err
	}
	files := files{site: l.site, opts: l.opts}
	if err := files.write(); err != nil {
		return err
	}
	l.spawner = newSpawner()
	for _, spec := range l.specs() {
		if slices.Contains(l.opts.Components, spec.name) {
			l.processes = append(l.processes, &process{spec: spec, layout: l.layout, reserved: l.reserved, spawner: l.spawner, progress: l.progress})
		} else {
			reserved.release(spec.ports...) // another process may run the component there
		}
	}
	resources := resources{site: l.site, bare: l.opts.Bare}
	if err := newStartup(l.processes, resources.apply, l.progress).run(ctx); err != nil {
		return err
	}
	return files.writeEnv()
}

// specs returns the command lines of all components.
func (l *Lab) specs() []spec { return components{site: l.site, opts: l.opts}.specs() }

// Stop ends every process in the reverse order of the start, and frees the directory. Everything that must survive is
// kept. Further calls do nothing.
func (l *Lab) Stop() error {
	for _, p := range slices.Backward(l.processes) {
		p.stop()
	}
	return l.release()
}

// Crash kills every process at once and ends supervision, as a power cut would. Start on the same directory resumes the
// lab.
func (l *Lab) Crash() error {
	for _, p := range l.processes {
		p.crash()
	}
	for _, p := range l.processes {
		p.stop()
	}
	return l.release()
}

// ForgetCluster removes etcd's data, after Stop or Crash. The next Start creates a new cluster of the same name in the
// directory; Temporal and the simulator keep their state.
func (l *Lab) ForgetCluster() error {
	if err := os.RemoveAll(l.layout.etcdData()); err != nil {
		return fmt.Errorf("removing etcd's data: %w", err)
	}
	l.state.DefaultsApplied = false
	return l.state.save(l.layout)
}

func (l *Lab) release() error {
	l.reserved.release(allPorts()...)
	if l.spawner != nil {
		l.spawner.close()
	}
	if l.opts.Supervisor != "" {
		_ = os.Remove(l.layout.pidFile(l.opts.Supervisor))
	}
	return l.lock.release()
}

// Kill sends a signal to a component. If the component dies, supervision restarts it.
func (l *Lab) Kill(c Component, signal syscall.Signal) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	return p.signal(signal)
}

// Halt stops a component gracefully and keeps it stopped until Resume.
func (l *Lab) Halt(c Component) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.stop()
	return nil
}

// Fail kills a component at once, as a machine that breaks does, and keeps it stopped until Resume.
func (l *Lab) Fail(c Component) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.crash()
	p.stop()
	return nil
}

// Resume starts a halted component and waits until it is healthy. For a running component it only waits.
func (l *Lab) Resume(ctx context.Context, c Component) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.start()
	return p.awaitHealthy(ctx)
}

// Reconfigure restarts a component gracefully with args in place of its Options.Args.
func (l *Lab) Reconfigure(ctx context.Context, c Component, args ...string) error {
	p, err := l.process(c)
	if err != nil {
		return err
	}
	p.stop()
	l.opts.Args = maps.Clone(l.opts.Args)
	if l.opts.Args == nil {
		l.opts.Args = map[Component][]string{}
	}
	l.opts.Args[c] = args
	for _, s := range l.specs() {
		if s.name == c {
			p.spec = s
		}
	}
	return l.Resume(ctx, c)
}

// Setenv sets the further variables of a component, as NAME=VALUE, in place of its Options.Env. They count from the next
// Reconfigure on.
func (l *Lab) Setenv(c Component, variables ...string) {
	l.opts.Env = maps.Clone(l.opts.Env)
	if l.opts.Env == nil {
		l.opts.Env = map[Component][]string{}
	}
	l.opts.Env[c] = variables
}

// PID returns a component's current process id, or 0 while it is down.
func (l *Lab) PID(c Component) (int, error) {
	p, err := l.process(c)
	if err != nil {
		return 0, err
	}
	return p.pid(), nil
}

func (l *Lab) process(c Component) (*process, error) {
	for _, p := range l.processes {
		if p.spec.name == c {
			return p, nil
		}
	}
	return nil, fmt.Errorf("this lab runs no %s", c)
}
