package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The pause before a dead component restarts doubles from restartPauseMin to restartPauseMax. It returns to
// restartPauseMin once the component has lived longer than restartForgiven.
const (
	restartPauseMin = 200 * time.Millisecond
	restartPauseMax = 5 * time.Second
	restartForgiven = 10 * time.Second
	// stopGrace is how long a component may take to stop before it is killed.
	stopGrace = 10 * time.Second
	// hopelessDeaths is how many times a component may die without becoming healthy before awaitHealthy gives up.
	hopelessDeaths = 5
	// startTimeout limits how long one component may take to become healthy; a loaded machine needs a tenth of it.
	startTimeout = 3 * time.Minute
)

// spec describes one component: what to run, what must be healthy first, and how to check its own health.
type spec struct {
	name  Component
	needs []Component
	// needsResources makes the component wait for the custom resource definitions and its RBAC roles as well.
	needsResources bool

	// ports are the ports on which the component listens.
	ports []port
	path  string
	args  []string
	env   []string
	// runAs is the user who runs it; the one who runs the lab when nil.
	runAs *syscall.Credential
	// ending is the signal that stops it; SIGTERM when zero.
	ending syscall.Signal
	// prepare runs before every start; it may be nil.
	prepare func(ctx context.Context) error
	healthy func(ctx context.Context) error
}

// process supervises one component.
type process struct {
	spec     spec
	layout   layout
	reserved reservedPorts
	spawner  *spawner
	progress *progress

	mu      sync.Mutex
	cmd     *exec.Cmd     // the running child, nil while it is down
	cancel  func()        // ends supervision, nil while there is none
	done    chan struct{} // closed when supervision has ended and the child is gone
	deaths  int           // since it was last healthy
	failure error         // why it last died
}

// start begins supervision. It does nothing if the component is supervised already.
func (p *process) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done, p.deaths, p.failure = cancel, make(chan struct{}), 0, nil
	go p.supervise(ctx, p.done)
}

// stop ends supervision and the child, with its signal first and SIGKILL after stopGrace.
func (p *process) stop() {
	p.mu.Lock()
	cancel, done := p.cancel, p.done
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	_ = p.signal(cmp.Or(p.spec.ending, syscall.SIGTERM))
	select {
	case <-done:
	case <-time.After(stopGrace):
		p.progress.printf("%s did not stop within %s and is killed", p.spec.name, stopGrace)
		_ = p.signal(syscall.SIGKILL)
		<-done
	}
	p.mu.Lock()
	p.cancel = nil
	p.mu.Unlock()
}

// crash kills the child at once and ends supervision.
func (p *process) crash() {
	p.mu.Lock()
	cancel := p.cancel
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		_ = p.signal(syscall.SIGKILL)
	}
}

// signal sends a signal to the child. It fails while the component is down.
func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("%s is not running", p.spec.name)
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to %s: %w", s, p.spec.name, err)
	}
	return nil
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// supervise runs the child, and restarts it when it dies, until ctx ends.
func (p *process) supervise(ctx context.Context, done chan struct{}) {
	defer close(done)
	pause := restartPauseMin
	for {
		began := time.Now()
		err := p.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > restartForgiven {
			pause = restartPauseMin
		}
		p.mu.Lock()
		p.deaths++
		p.failure = err
		p.mu.Unlock()
		p.progress.printf("%s died (%v); starting it again in %s", p.spec.name, err, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, restartPauseMax)
	}
}

// run starts the child and waits until it exits. It always returns an error, which says how the child ended.
func (p *process) run(ctx context.Context) error {
	if p.spec.prepare != nil {
		if err := p.spec.prepare(ctx); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(p.layout.log(p.spec.name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening its log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(p.spec.path, p.spec.args...)
	cmd.Dir = p.layout.dir
	cmd.Env = p.spec.env
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	cmd.SysProcAttr.Credential = p.spec.runAs
	p.reserved.release(p.spec.ports...)
	if err := p.launch(ctx, cmd); err != nil {
		return err
	}
	if err := p.layout.writePID(string(p.spec.name), cmd.Process.Pid); err != nil {
		p.progress.printf("%v", err)
	}
	err = cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	p.mu.Unlock()
	_ = os.Remove(p.layout.pidFile(string(p.spec.name)))
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// launch starts the child unless supervision has ended. It checks and starts under the mutex, so that a child either
// never starts or receives the signal that stop sends after ending supervision.
func (p *process) launch(ctx context.Context, cmd *exec.Cmd) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.spawner.start(cmd); err != nil {
		return fmt.Errorf("starting %s: %w", p.spec.path, err)
	}
	p.cmd = cmd
	return nil
}

// awaitHealthy waits until the component is healthy. It fails when the component keeps dying, when startTimeout is over
// or when ctx ends; the error contains the end of the component's log.
func (p *process) awaitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not healthy within %s", startTimeout))
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := p.spec.healthy(ctx)
		p.mu.Lock()
		deaths, failure, running := p.deaths, p.failure, p.cmd != nil
		if err == nil && running {
			p.deaths = 0
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
		if deaths >= hopelessDeaths {
			return fmt.Errorf("%s died %d times: %w\n%s", p.spec.name, deaths, failure, p.logTail())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w (last check: %w)\n%s", p.spec.name, context.Cause(ctx), err, p.logTail())
		case <-tick.C:
		}
	}
}

// logTail returns the last lines of the component's log for an error message.
func (p *process) logTail() string {
	const bytes, lines = 8 << 10, 15
	path := p.layout.log(p.spec.name)
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > bytes {
		_, _ = file.Seek(-bytes, io.SeekEnd)
	}
	data, _ := io.ReadAll(file)
	tail := strings.Split(strings.TrimSpace(string(data)), "\n")
	if len(tail) > lines {
		tail = tail[len(tail)-lines:]
	}
	return "the end of " + path + ":\n  " + strings.Join(tail, "\n  ")
}
