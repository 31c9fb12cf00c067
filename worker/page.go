package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tenon-sh/tenon/cloud"
	"github.com/tenon-sh/tenon/internal/ask"
	"github.com/tenon-sh/tenon/internal/page"
	"github.com/tenon-sh/tenon/internal/recorded"
	"github.com/tenon-sh/tenon/internal/view"
	"github.com/tenon-sh/tenon/plan"
	"github.com/tenon-sh/tenon/workflows"
)

const (
	// readEvery is how often Temporal is asked what is under way while somebody watches, and readFor how long that may take.
	readEvery, readFor = 5 * time.Second, 10 * time.Second
	// pricesEvery is how often prices are read, which the provider caches itself.
	pricesEvery = 15 * time.Second
	// whyEvery is how often the pending pods are planned for to tell why they wait, while somebody watches. It is longer where
	// planning takes long, so that it never takes more than whyShare of a processor.
	whyEvery, whyShare = 15 * time.Second, 0.05
	// watchedFor is how long somebody counts as watching after the page has last looked.
	watchedFor = 10 * time.Second
)

// pageMirror is what the page shows of the mirror.
type pageMirror interface {
	Snapshot() *plan.Snapshot
	Fresh(most time.Duration) error
	NodeClasses() []cloud.NodeClass
}

// pageSource is what the page shows. What is not in the mirror is read in the background, and only while somebody watches.
type pageSource struct {
	mirror pageMirror
	types  func(context.Context, cloud.NodeClass) ([]*cloud.InstanceType, error)
	why    func(context.Context) (map[types.UID]string, error)
	lately *recorded.Lately
	log    *zap.Logger

	mu      sync.Mutex
	watched time.Time
	in      view.Input
}

// servePage serves the page if it has an address.
func servePage(ctx context.Context, config Config, to Connections, mirror pageMirror, why func(context.Context) (map[types.UID]string, error), log *zap.Logger) error {
	if config.UIAddress == "" {
		<-ctx.Done()
		return nil
	}
	name := workflows.Cluster(config.Cluster)
	source := &pageSource{mirror: mirror, types: to.Cloud.InstanceTypes, why: why, lately: recorded.NewLately(recorded.Reader{Temporal: to.Temporal, Cluster: name}), log: log}
	served, err := page.New(page.Options{Cluster: config.Cluster, Source: source, Asker: ask.Asker{Temporal: to.Temporal, Cluster: name},
		TokenFile: config.UITokenFile, TemporalUI: config.UITemporalURL, Namespace: to.Namespace, Log: log})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return served.Run(ctx) })
	group.Go(func() error { return serve(ctx, config.UIAddress, served.Handler()) })
	group.Go(func() error { return repeat(ctx, pricesEvery, source.readPrices) })
	group.Go(func() error { return repeat(ctx, readEvery, source.readTemporal) })
	group.Go(func() error { return repeat(ctx, whyEvery, source.readReasons) })
	return group.Wait()
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

// Look implements page.Source.
func (s *pageSource) Look(_ context.Context, watched bool) view.Input {
	snapshot := s.mirror.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	if watched {
		s.watched = time.Now()
	}
	in := s.in
	in.Snapshot = snapshot
	if err := s.mirror.Fresh(maxMirrorAge); err != nil {
		in.Stale = err.Error()
	}
	return in
}

// watching reports whether somebody watches.
func (s *pageSource) watching() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.watched) < watchedFor
}

// readPrices reads what instances cost. A class whose types are not known leaves its nodes without a price.
func (s *pageSource) readPrices(ctx context.Context) {
	var offered [][]*cloud.InstanceType
	for _, class := range s.mirror.NodeClasses() {
		kinds, err := s.types(ctx, class)
		if err != nil {
			s.log.Debug("prices for the page", zap.String("class", class.GetName()), zap.Error(err))
			continue
		}
		offered = append(offered, kinds)
	}
	prices := view.NewPriceList(offered...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Prices = prices.Of
}

// readTemporal reads what is under way and what was decided lately.
func (s *pageSource) readTemporal(ctx context.Context) {
	if !s.watching() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	running, decided, err := s.lately.Read(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.in.Trouble = "workflows and decisions are not up to date: " + err.Error()
		return
	}
	s.in.Workflows, s.in.Decisions, s.in.Trouble = running, decided, ""
}

// readReasons plans for the pods that wait, unless there are none.
func (s *pageSource) readReasons(ctx context.Context) {
	if !s.watching() || !slices.ContainsFunc(s.mirror.Snapshot().Pending, func(p *plan.Pod) bool { return p.Unschedulable && !p.Virtual }) {
		return
	}
	said, err := s.why(ctx)
	if err != nil {
		s.log.Debug("reasons for the page", zap.Error(err))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.in.Reasons = said
}
