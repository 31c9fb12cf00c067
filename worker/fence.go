package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tenon-sh/tenon/starter"
)

// The Lease says who acts on the cluster: this deployment, or another controller such as Karpenter. One replica holds it,
// and all replicas act while one of them does: they poll the task queue, so that workflows decide and activities write, and
// they nominate pods. Otherwise a worker only maintains its mirror. Work that was under way stays in Temporal.
//
// Work takes a moment to stop, and a process that was itself suspended, with its machine, does not know that time has
// passed. So each write to the API server and each change in the cloud passes the fence as well (guard, fencedCloud), and is
// refused if another controller may hold the Lease.

const (
	// holderPrefix begins the identity of every Lease holder that is Tenon's.
	holderPrefix = "tenon_"
	// fenceEvery is how often a worker checks whether it may act.
	fenceEvery = 500 * time.Millisecond
	// heardWithin is how recently the worker must have heard from the API server: a Lease is renewed or lost within that
	// time.
	heardWithin = 15 * time.Second
)

// fence says whether a worker may act.
type fence struct {
	// heard returns an error if the view of the cluster may be older than most.
	heard func(most time.Duration) error
	log   *zap.Logger
	gauge prometheus.Gauge
	// observes keeps the fence closed for ever, whoever holds the Lease.
	observes bool

	mu sync.Mutex
	// holder is who held the Lease at seen, when it was last seen being taken, renewed or released.
	holder string
	seen   time.Time
}

// errObserves is why a worker that was told to observe does not act.
var errObserves = errors.New("it was told to (--observe)")

// newFence returns a fence that is closed.
func newFence(heard func(most time.Duration) error, registry prometheus.Registerer, log *zap.Logger) (*fence, error) {
	f := &fence{heard: heard, log: log, gauge: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "tenon", Name: "acting",
		Help: "1 while this worker acts on the cluster; 0 while it only observes, because another controller holds the Lease or the API server is not heard."})}
	if err := registry.Register(f.gauge); err != nil {
		return nil, fmt.Errorf("register the metric of the Lease: %w", err)
	}
	return f, nil
}

// see records who held the Lease at an instant.
func (f *fence) see(holder string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holder, f.seen = holder, at
}

// closed returns why the worker may not act; nil if it may.
func (f *fence) closed() error {
	if err := f.others(); err != nil {
		return err
	}
	return f.heard(heardWithin)
}

// others returns why the Lease is not Tenon's, or may no longer be; nil if it certainly is.
func (f *fence) others() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.observes:
		return errObserves
	case f.holder == "":
		return errors.New("nobody holds the Lease yet")
	case !strings.HasPrefix(f.holder, holderPrefix):
		return fmt.Errorf("%s holds the Lease", f.holder)
	case time.Since(f.seen) >= starter.LeaseFor:
		return fmt.Errorf("%s has not renewed the Lease for %s", f.holder, starter.LeaseFor)
	}
	return nil
}

// guard passes requests to the API server through the fence: those that write are refused while the Lease is not Tenon's.
func (f *fence) guard(next http.RoundTripper) http.RoundTripper { return guarded{f, next} }

type guarded struct {
	fence *fence
	next  http.RoundTripper
}

// RoundTrip sends a request, unless the fence refuses it.
func (g guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if err := g.fence.others(); err != nil {
			if request.Body != nil {
				_ = request.Body.Close()
			}
			return nil, fmt.Errorf("this worker only observes: %w", err)
		}
	}
	return g.next.RoundTrip(request)
}

// run runs act while the worker may act, and again each time it may act once more. act ends with its context.
func (f *fence) run(ctx context.Context, act func(ctx context.Context) error) error {
	ticker := time.NewTicker(fenceEvery)
	defer ticker.Stop()
	said := ""
	for {
		why := f.closed()
		if why == nil {
			f.log.Info("this worker acts on the cluster")
			f.gauge.Set(1)
			err := f.during(ctx, act)
			f.gauge.Set(0)
			if err != nil {
				return err
			}
			said = ""
			continue
		}
		if said != why.Error() && ctx.Err() == nil {
			said = why.Error()
			f.log.Warn("this worker only observes", zap.Error(why))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// during runs act until the worker may no longer act, which is no error.
func (f *fence) during(ctx context.Context, act func(ctx context.Context) error) error {
	acting, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- act(acting) }()
	ticker := time.NewTicker(fenceEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticker.C:
		}
		if f.closed() != nil {
			stop()
			if err := <-ended; ctx.Err() != nil {
				return err
			}
			return nil
		}
	}
}
