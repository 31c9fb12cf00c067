// Package live keeps up to date what a view of the cluster is made of: the mirror, prices, what Temporal has recorded, and
// why pods wait. The worker's page and `tenon top` look through it, so that both are made of the same.
//
// What is not in the mirror is read in the background. Where that costs something, it is read only while somebody watches.
package live

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
)

const (
	// readEvery is how often Temporal is asked what is under way while somebody watches, and readFor how long that may take.
	readEvery, readFor = 5 * time.Second, 10 * time.Second
	// pricesEvery is how often prices are read, which the provider caches itself.
	pricesEvery = 15 * time.Second
	// whyEvery is how often the pending pods are planned for to tell why they wait, while somebody watches. It is longer where
	// planning takes long, so that it never takes more than whyShare of a processor.
	whyEvery, whyShare = 15 * time.Second, 0.05
	// watchedFor is how long somebody counts as watching after the view has last been looked at.
	watchedFor = 10 * time.Second
)

// Mirror is what a view shows of the cluster.
type Mirror interface {
	Snapshot() *plan.Snapshot
	Fresh(most time.Duration) error
	NodeClasses() []cloud.NodeClass
}

// Recorded is what Temporal has recorded: the workflows under way and the last decisions.
type Recorded interface {
	Read(ctx context.Context) ([]*view.Workflow, []*view.Decision, error)
}

// Options say where a Source reads.
type Options struct {
	Mirror Mirror
	// MaxAge is how old the mirror may be before the view says so.
	MaxAge time.Duration
	// Types returns what a cloud offers for a node class, with prices; nil means that there are none.
	Types func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error)
	// Why says of the snapshot's pending pods why they wait; nil means that nobody is asked.
	Why func(context.Context, *plan.Snapshot) (map[types.UID]string, error)
	// Recorded is what Temporal has recorded; nil means nothing.
	Recorded Recorded
	Log      *zap.Logger
}

// Source is what a view is made of. All methods are safe for concurrent use.
type Source struct {
	options Options

	mu      sync.Mutex
	watched time.Time
	in      view.Input
	// unpriced is why prices are not known.
	unpriced error
}

// New returns a Source. It reads nothing before Run.
func New(options Options) *Source {
	if options.Log == nil {
		options.Log = zap.NewNop()
	}
	return &Source{options: options}
}

// Run reads in the background until ctx ends.
func (s *Source) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return repeat(ctx, pricesEvery, s.readPrices) })
	group.Go(func() error { return repeat(ctx, readEvery, s.readTemporal) })
	group.Go(func() error { return repeat(ctx, whyEvery, s.readReasons) })
	return group.Wait()
}

// ReadAll reads once everything that Run reads in the background.
func (s *Source) ReadAll(ctx context.Context) {
	s.Look(ctx, true)
	var all sync.WaitGroup
	for _, read := range []func(context.Context){s.readPrices, s.readTemporal, s.readReasons} {
		all.Go(func() { read(ctx) })
	}
	all.Wait()
}

// repeat calls a function at once and then again and again, with a pause that is never shorter than every and that leaves the
// calls no more than whyShare of the time. It returns when ctx ends.
func repeat(ctx context.Context, every time.Duration, call func(context.Context)) error {
	for {
		began := time.Now()
		call(ctx)
		select {
		case <-time.After(max(every, time.Duration(float64(time.Since(began))/whyShare))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Look returns what a view is made of. watched says that somebody watches.
func (s *Source) Look(_ context.Context, watched bool) view.Input {
	snapshot := s.options.Mirror.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if watched {
		s.watched = time.Now()
	}
	in := s.in
	in.Snapshot = snapshot
	if err := s.options.Mirror.Fresh(s.options.MaxAge); err != nil {
		in.Stale = err.Error()
	}
	return in
}

// Unpriced returns why the prices of some or of all nodes are not known; nil if all could be read.
func (s *Source) Unpriced() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unpriced
}

// watching reports whether somebody watches.
func (s *Source) watching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.watched) < watchedFor
}

// readPrices reads what instances cost. A class whose types are not known leaves its nodes without a price.
func (s *Source) readPrices(ctx context.Context) {
	if s.options.Types == nil {
		return
	}
	var offered [][]*cloud.InstanceType
	var failed []error
	for _, class := range s.options.Mirror.NodeClasses() {
		kinds, err := s.options.Types(ctx, class)
		if err != nil {
			s.options.Log.Debug("prices for the view", zap.String("class", class.GetName()), zap.Error(err))
			failed = append(failed, err)
			continue
		}
		offered = append(offered, kinds)
	}
	prices := view.NewPriceList(offered...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Prices, s.unpriced = prices.Of, errors.Join(failed...)
}

// readTemporal reads what is under way and what was decided lately.
func (s *Source) readTemporal(ctx context.Context) {
	if s.options.Recorded == nil || !s.watching() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	running, decided, err := s.options.Recorded.Read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.in.Trouble = "workflows and decisions are not up to date: " + err.Error()
		return
	}
	s.in.Workflows, s.in.Decisions, s.in.Trouble = running, decided, ""
}

// readReasons asks why pods wait, unless none does.
func (s *Source) readReasons(ctx context.Context) {
	if s.options.Why == nil || !s.watching() {
		return
	}
	snapshot := s.options.Mirror.Snapshot()
	if !slices.ContainsFunc(snapshot.Pending, func(p *plan.Pod) bool { return p.Unschedulable && !p.Virtual }) {
		return
	}
	said, err := s.options.Why(ctx, snapshot)
	if err != nil {
		s.options.Log.Debug("reasons for the view", zap.Error(err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Reasons = said
}
